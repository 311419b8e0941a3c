"""NamedTensor gives what a Tensor gives whose axes were put in order by hand."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest

from burnish import Tensor, ops
from burnish.errors import InputError
from burnish.named import NamedTensor

RNG = np.random.default_rng(0)
X = RNG.uniform(0.5, 2, (2, 3, 4))
X[0, 0, 0] = 1.0


def named(array: np.ndarray, names: str) -> NamedTensor:
    return NamedTensor(array, *names.split())


def same(found: NamedTensor, names: str, array: Any) -> None:
    assert found.names == tuple(names.split())
    np.testing.assert_allclose(found.tensor.numpy(), array, 1e-12)


OPERATORS = [
    operator.add, operator.sub, operator.mul, operator.truediv, operator.pow,
    operator.floordiv, operator.mod,
    operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge,
]  # fmt: skip


@pytest.mark.parametrize("op", OPERATORS)
@pytest.mark.parametrize(
    ("names", "array", "aligned", "result"),
    [
        ("a b c", X + 1, X + 1, "a b c"),
        ("c a b", X.transpose(2, 0, 1), X, "a b c"),
        ("c", X[0, 0], X[0, 0], "a b c"),
        ("b a", X[:, :, 1].T, X[:, :, 1:2], "a b c"),
        ("", X[0, 0, 0], X[0, 0, 0], "a b c"),
    ],
)
def test_operators_align_names(
    op: Any, names: str, array: np.ndarray, aligned: np.ndarray, result: str
) -> None:
    x, y = named(X, "a b c"), named(array, names)
    same(op(x, y), result, op(X, aligned))
    order = y.names if len(names.split()) == 3 else tuple(result.split())
    same(op(y, x).permute(*result.split()), result, op(aligned, X))
    assert op(y, x).names == order


@pytest.mark.parametrize("op", OPERATORS)
@pytest.mark.parametrize("number", [2, 1.0, np.float64(1.5), Tensor(2.0)])
def test_numbers_have_no_names(op: Any, number: Any) -> None:
    same(op(named(X, "a b c"), number), "a b c", op(X, np.asarray(number)))


@pytest.mark.parametrize("op", OPERATORS)
def test_numbers_on_the_left(op: Any) -> None:
    same(op(2, named(X, "a b c")), "a b c", op(2, X))


@pytest.mark.parametrize("method", ["sum", "mean", "prod", "max", "min", "var", "std"])
@pytest.mark.parametrize(
    ("names", "axes", "rest"),
    [("b", 1, "a c"), ("c a", (2, 0), "b"), ("", None, ""), ("a b c", None, "")],
)
def test_reductions_go_by_name(method: str, names: str, axes: Any, rest: str) -> None:
    found = getattr(named(X, "a b c"), method)(*names.split())
    same(found, rest, getattr(Tensor(X), method)(axis=axes).numpy())


def test_the_place_of_the_largest() -> None:
    same(named(X, "a b c").argmax("b"), "a c", X.argmax(1))


@pytest.mark.parametrize(
    ("left", "right", "equation", "result"),
    [
        ("b t k", "b k n", "btk,bkn->btn", "b t n"),
        ("b t k", "k n", "btk,kn->btn", "b t n"),
        ("t k", "b k n", "tk,bkn->tbn", "t b n"),
        ("t b k", "b k n", "tbk,bkn->tbn", "t b n"),
        ("t k", "k", "tk,k->t", "t"),
        ("k", "k n", "k,kn->n", "n"),
        ("k", "k", "k,k->", ""),
    ],
)
def test_matmul(left: str, right: str, equation: str, result: str) -> None:
    sizes = {"b": 2, "t": 3, "k": 4, "n": 5}
    a = RNG.normal(size=[sizes[n] for n in left.split()])
    b = RNG.normal(size=[sizes[n] for n in right.split()])
    same(named(a, left) @ named(b, right), result, np.einsum(equation, a, b))


@pytest.mark.parametrize(
    ("left", "right", "names", "equation", "result"),
    [
        ("k b t", "t b k", "k", "kbt,tbk->bt", "b t"),
        ("b t k", "k n b", "k b", "btk,knb->tn", "t n"),
        ("t k", "n m k", "k", "tk,nmk->tnm", "t n m"),
        ("k t", "k t", "t k", "kt,kt->", ""),
    ],
)
def test_dot_sums_over_names_wherever_they_are(
    left: str, right: str, names: str, equation: str, result: str
) -> None:
    sizes = {"b": 2, "t": 3, "k": 4, "n": 5, "m": 6}
    a = RNG.normal(size=[sizes[n] for n in left.split()])
    b = RNG.normal(size=[sizes[n] for n in right.split()])
    found = named(a, left).dot(named(b, right), *names.split())
    same(found, result, np.einsum(equation, a, b))


def test_shapes_go_by_name() -> None:
    x = named(X, "a b c")
    assert x.sizes == {"a": 2, "b": 3, "c": 4}
    same(x.permute("c", "a", "b"), "c a b", X.transpose(2, 0, 1))
    same(x.swap("a", "c"), "c b a", X.transpose(2, 1, 0))
    same(x.rename(a="b", b="a"), "b a c", X)
    same(x.select(b=1), "a c", X[:, 1])
    same(x.select(c=slice(1, 3), a=-1), "b c", X[-1, :, 1:3])
    same(-x, "a b c", -X)
    same(abs(-x), "a b c", X)
    same(x.map(ops.exp), "a b c", np.exp(X))
    shares = np.exp(X) / np.exp(X).sum(1, keepdims=True)
    same(x.map(ops.softmax, "b"), "a b c", shares)
    assert repr(x).startswith("NamedTensor(a 2, b 3, c 4): Tensor(")


def test_gradients_are_those_of_tensors() -> None:
    w = RNG.normal(size=(4, 5))

    def value(x: Any, w: Any) -> Any:
        return (ops.softmax(ops.matmul(x, w), axis=1) * x[:, :, :1]).mean()

    plain = Tensor(X).require_grad(), Tensor(w).require_grad()
    expected = value(*plain).backward()
    x, weights = named(X, "a b c").require_grad(), named(w, "c d").require_grad()
    shares = weights.dot(x, "c").map(ops.softmax, "b")
    gradients = (shares * x.select(c=0)).mean().backward()
    for leaf, tensor in zip((x, weights), plain, strict=True):
        found = leaf.grad(gradients)
        assert found is not None
        same(found, " ".join(leaf.names), tensor.grad(expected).numpy())
    assert named(X, "a b c").require_grad().grad(gradients) is None


x, flat = named(X, "a b c"), named(X[0], "b c")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: named(X, "a b"), "expected 3 different names.*got 'a', 'b'"),
        (lambda: named(X, "a b a"), "3 different names"),
        (lambda: NamedTensor(X, "a", "b", 3), "3 different names"),
        (lambda: x + named(X[0], "b d"), "add.*'d' is not among 'a', 'b', 'c'"),
        (lambda: x * named(X, "a b d"), "mul.*a 2, b 3, c 4.*a 2, b 3, d 4"),
        (lambda: x - flat.select(c=slice(3)), "one size of 'c'.*c 4.*c 3"),
        (lambda: flat / flat.select(c=slice(1)), "one size of 'c'"),
        (lambda: x + X, r"number beside \(a 2, .*ndarray of shape \(2, 3, 4\)"),
        (lambda: X + x, "give its axes names"),
        (lambda: x + Tensor(X), "Tensor of shape"),
        (lambda: operator.add(x, [1.0, 2.0]), r"list of shape \(2,\)"),
        (lambda: x @ flat, "last name 'c' as the right's last but one.*dot"),
        (lambda: x @ named(X[0].T, "c b"), "different names of rows.*'b'"),
        (lambda: x @ Tensor(X), "matmul: expected two named tensors.*Tensor"),
        (lambda: x.dot(flat), "dot.*names of axes to sum over"),
        (lambda: x.dot(X, "c"), "dot: expected a NamedTensor.*ndarray"),
        (lambda: x.dot(flat, "a"), "dot.*out of 'b', 'c', got 'a'"),
        (lambda: flat.dot(x.select(b=slice(2)), "c"), "dot: .* size of 'b'"),
        (lambda: x.sum("d"), "sum: expected a name out of 'a', 'b', 'c', got 'd'"),
        (lambda: x.sum("b", "b"), "sum: expected different names, got 'b', 'b'"),
        (lambda: x.dot(flat, "c", "c"), "dot: expected different names"),
        (lambda: x.argmax("d"), "argmax.*got 'd'"),
        (lambda: x.permute("a", "b"), "permute.*got 'a', 'b'"),
        (lambda: x.swap("a", "d"), "swap.*got 'd'"),
        (lambda: x.rename(d="e"), "rename.*got 'd'"),
        (lambda: x.rename(a="b"), "different names.*'b', 'b', 'c'"),
        (lambda: x.select(d=0), "select.*got 'd'"),
        (lambda: x.map(ops.reduce_sum), "map: expected.*keeps the shape"),
        (lambda: x.map(ops.softmax, "d"), "map.*got 'd'"),
    ],
)  # fmt: skip
def test_errors_say_which_names(call: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        call()
