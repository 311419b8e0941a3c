"""Every method of a tensor beside PyTorch's: values, gradients, kinds of dtype.

A row is a name, what Burnish and PyTorch call it, and what it takes. Arrays are of any
shape that fits, empty ones and ones without axes among them, of several dtypes and any
strides; axes count from either end. PyTorch's arrays are contiguous copies.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from burnish import Tensor, ops
from tests.harness.examples import examples

torch = pytest.importorskip("torch")
F = torch.nn.functional
pytestmark = pytest.mark.oracle

FLOATS = ("float32", "float64")
NUMBERS = (*FLOATS, "int64")
SMALL = ("uint8", "int8", "int16")
INTEGERS = ("int64", "uint8")
ALL = (*NUMBERS, "bool")


@dataclass
class Row:
    """One method.

    ours, theirs: functions of the arrays, then of what is drawn. arrays: how many; they
    broadcast. rank: the fewest and most axes. low, high: the range of floats. distinct:
    no two elements are equal, so that places are too. empty: whether a length of 0 is
    allowed. draw: a strategy for more arguments, made from the first array's shape.
    """

    name: str
    ours: Callable[..., Any]
    theirs: Callable[..., Any]
    arrays: int = 1
    rank: tuple[int, int] = (0, 3)
    dtypes: tuple[str, ...] = FLOATS
    low: float = -3.0
    high: float = 3.0
    distinct: bool = False
    empty: bool = True
    alike: bool = False
    grad: bool = True
    draw: Callable[[tuple[int, ...]], Any] | None = None
    rtol: float = 1.0

    def __str__(self) -> str:
        return self.name


# --- what else is drawn ---


def an_axis(shape):
    return st.tuples(an_axis_of(shape))


def an_axis_of(shape):
    """A scalar is a vector of one."""
    rank = max(len(shape), 1)
    return st.integers(-rank, rank - 1)


def an_axis_kept(shape):
    return st.tuples(an_axis_of(shape), st.booleans())


def any_axes(shape):
    """None or some axes, each from either end; and whether they are kept."""
    rank = len(shape)
    some = st.sets(st.integers(0, rank - 1), min_size=1) if rank else st.nothing()
    turned = some.flatmap(
        lambda axes: st.tuples(*(st.sampled_from((a, a - rank)) for a in axes))
    )
    return st.tuples(st.none() | turned, st.booleans())


def two_axes(shape):
    return st.tuples(an_axis_of(shape), an_axis_of(shape))


def a_shift(shape):
    return st.tuples(st.integers(-3, 3))


def along(most):
    """An axis and a number of elements that it has; `most` adds to the length."""

    def draw(shape):
        axis = st.integers(-len(shape), len(shape) - 1)
        return axis.flatmap(
            lambda a: st.tuples(st.just(a), st.integers(0, shape[a] + most))
        )

    return draw


def picks(shape):
    """An axis and numbers of slices along it, some twice, of either sign."""

    def numbers(axis):
        n = shape[axis]
        one = st.integers(-n, n - 1) if n else st.nothing()
        return st.tuples(st.just(axis), st.lists(one, max_size=5 if n else 0))

    return st.integers(-len(shape), len(shape) - 1).flatmap(numbers)


def a_mask(shape):
    return st.integers(0, 2**31).map(
        lambda seed: (np.random.default_rng(seed).random(shape) < 0.5,)
    )


def an_index(shape):
    """Indices that NumPy and PyTorch both take: integers, slices, None, Ellipsis."""
    one = st.none()
    if shape:
        one = one | st.just(Ellipsis)

    def parts(shape):
        items = []
        for n in shape:
            bound = st.none() | st.integers(-n - 1, n + 1)
            step = st.integers(1, 3)
            item = st.builds(slice, bound, bound, step)
            items.append(item | st.integers(-n, n - 1) if n else item)
        return st.tuples(*items)

    full = parts(shape)
    return st.tuples(full | full.map(lambda index: (Ellipsis, *index[1:])) | one)


def pads(shape):
    pair = st.tuples(st.integers(0, 2), st.integers(0, 2))
    return st.tuples(st.tuples(*(pair for _ in shape)))


def torch_pads(pairs):
    return [n for pair in reversed(pairs) for n in pair]


def windows(shape):
    def draw(axis):
        n = shape[axis]
        return st.tuples(st.just(axis), st.integers(1, max(n, 1)), st.integers(1, 3))

    return st.integers(-len(shape), len(shape) - 1).flatmap(draw)


# --- the table ---


def same(name, theirs=None, **options):
    """A method of the same name without arguments, or with those that are drawn."""
    other = theirs or name
    return Row(
        name,
        lambda *args: getattr(args[0], name)(*args[1:]),
        lambda *args: getattr(args[0], other)(*args[1:]),
        **options,
    )


def reduced(name, theirs, **options):
    """Over axes: theirs takes a tensor, a tuple of axes or None, and keepdim."""

    def call(x, axes, keep):
        axes = tuple(range(x.ndim)) if axes is None else axes
        return theirs(x, axes, keep) if axes else theirs(x[None], (0,), False)

    return Row(
        name,
        lambda x, axes, keep: getattr(x, name)(axis=axes, keepdims=keep),
        call,
        draw=any_axes,
        **options,
    )


def variance(x, axes, keep):
    return torch.var(x, axes, correction=0, keepdim=keep)


def turned(order):
    return lambda x: x.permute(order(x.ndim))


def logical(name):
    return same(f"logical_{name}", arrays=2, dtypes=ALL)


POSITIVE = {"low": 0.1}
UNIT = {"low": -0.95, "high": 0.95}
BITS = {"arrays": 2, "dtypes": ("int64", "bool"), "alike": True}

TABLE = [
    # one array, element by element
    same("abs", dtypes=NUMBERS),
    same("sign", dtypes=NUMBERS),
    same("square", dtypes=NUMBERS),
    same("floor"),
    same("ceil"),
    same("round"),
    same("trunc"),
    same("exp"),
    same("expm1"),
    same("log", **POSITIVE),
    same("log1p", **POSITIVE),
    same("sqrt", **POSITIVE),
    same("reciprocal", **POSITIVE),
    *(same(f, rtol=20) for f in ("sin", "cos", "sinh", "cosh", "tanh", "asinh")),
    same("tan", low=-1, high=1),
    *(same(f, **UNIT) for f in ("asin", "acos", "atan", "atanh")),
    same("acosh", low=1.1),
    same("erf", rtol=20),
    same("deg2rad"),
    same("rad2deg"),
    same("relu"),
    same("sigmoid"),
    same("is_nan", "isnan"),
    same("is_inf", "isinf"),
    same("is_finite", "isfinite"),
    same("logical_not", dtypes=ALL),
    *(same(f, dtypes=ALL) for f in ("float", "double", "long", "int", "bool")),
    Row("neg", lambda x: -x, lambda x: -x, dtypes=NUMBERS),
    Row("invert", lambda x: ~x, lambda x: ~x, dtypes=("int64", "bool")),
    Row("clip", lambda x: x.clip(-1, 1.5), lambda x: x.clamp(-1, 1.5)),
    Row("clip low", lambda x: x.clip(min=0), lambda x: x.clamp(0), dtypes=NUMBERS),
    Row("power", lambda x: x**3, lambda x: x**3, dtypes=NUMBERS),
    Row("root", lambda x: x**0.5, lambda x: x**0.5, **POSITIVE),
    # two arrays that broadcast
    Row("add", lambda x, y: x + y, lambda x, y: x + y, 2, dtypes=NUMBERS),
    Row("sub", lambda x, y: x - y, lambda x, y: x - y, 2, dtypes=NUMBERS),
    Row("mul", lambda x, y: x * y, lambda x, y: x * y, 2, dtypes=NUMBERS),
    Row("div", lambda x, y: x / y, lambda x, y: x / y, 2, **POSITIVE),
    Row("mod", lambda x, y: x % y, lambda x, y: x % y, 2, **POSITIVE),
    Row(
        "floor_div", lambda x, y: x // y, lambda x, y: x // y, 2, grad=False, **POSITIVE
    ),
    Row("pow", lambda x, y: x**y, lambda x, y: x**y, 2, rtol=20, **POSITIVE),
    same("fmod", arrays=2, **POSITIVE),
    same("maximum", arrays=2, dtypes=NUMBERS),
    same("minimum", arrays=2, dtypes=NUMBERS),
    same("hypot", arrays=2, **POSITIVE),
    same("atan2", arrays=2, **POSITIVE),
    *map(logical, ("and", "or", "xor")),
    Row("and", lambda x, y: x & y, lambda x, y: x & y, **BITS),
    Row("or", lambda x, y: x | y, lambda x, y: x | y, **BITS),
    Row("xor", lambda x, y: x ^ y, lambda x, y: x ^ y, **BITS),
    *(
        Row(
            name,
            lambda x, y, n=name: getattr(x, n)(y),
            lambda x, y, n=name: getattr(x, n)(y),
            arrays=2,
            dtypes=ALL,
        )
        for name in ("__eq__", "__ne__", "__gt__", "__ge__", "__lt__", "__le__")
    ),
    Row(
        "is_close",
        lambda x, y: x.is_close(y, rtol=0.1, atol=0.2),
        lambda x, y: torch.isclose(x, y.expand(y.shape), 0.1, 0.2),
        2,
        alike=True,
    ),
    Row(
        "where",
        lambda x, y: ops.where(x > 0, x, y),
        lambda x, y: torch.where(x > 0, x, y),
        2,
    ),
    # over axes
    reduced("sum", lambda x, a, k: x.sum(a, keepdim=k), dtypes=(*ALL, *SMALL)),
    reduced("mean", lambda x, a, k: x.mean(a, keepdim=k), empty=False),
    reduced("max", lambda x, a, k: x.amax(a, keepdim=k), dtypes=ALL, empty=False),
    reduced("min", lambda x, a, k: x.amin(a, keepdim=k), dtypes=ALL, empty=False),
    reduced("any", lambda x, a, k: x.any(a, keepdim=k), dtypes=ALL),
    reduced("all", lambda x, a, k: x.all(a, keepdim=k), dtypes=ALL),
    reduced(
        "logsumexp", lambda x, a, k: x.logsumexp(a, keepdim=k), empty=False, rtol=10
    ),
    reduced("norm", lambda x, a, k: torch.linalg.vector_norm(x, 2, a, k)),
    reduced("var", variance, empty=False, rtol=20),
    reduced("std", lambda x, a, k: variance(x, a, k).sqrt(), empty=False, grad=False),
    *(
        Row(
            f"norm p={p}",
            lambda x, axes, keep, p=p: x.norm(p, axes, keep),
            lambda x, axes, keep, p=p: torch.linalg.vector_norm(x, p, axes, keep),
            draw=any_axes,
            empty=False,
            distinct=abs(p) == np.inf,
            rtol=10,
            low=0.2,
        )
        for p in (0, 0.5, 1, 3, -2, np.inf, -np.inf)
    ),
    Row(
        "prod",
        lambda x, a, k: x.prod(axis=a, keepdims=k),
        lambda x, a, k: x.prod(a, keepdim=k),
        rank=(1, 3),
        dtypes=(*ALL, *SMALL),
        draw=an_axis_kept,
        rtol=10,
    ),
    Row(
        "var_mean",
        lambda x, a, k: x.var_mean(a, k, correction=0.5),
        lambda x, a, k: torch.var_mean(x, a, correction=0.5, keepdim=k),
        draw=any_axes,
        empty=False,
        rtol=20,
    ),
    Row(
        "std",
        lambda x, a, k: x.std(a, k),
        lambda x, a, k: torch.std(x, a, correction=0, keepdim=k),
        draw=any_axes,
        empty=False,
        rtol=20,
    ),
    # along one axis
    *(
        same(name, draw=an_axis, dtypes=(*ALL, *SMALL), rtol=10)
        for name in ("cumsum", "cumprod")
    ),
    *(
        Row(
            f"{name} {part}",
            ours,
            lambda x, axis, n=name, p=part: getattr(getattr(x, n)(axis), p),
            rank=(1, 3),
            dtypes=(*NUMBERS, "uint8"),
            draw=an_axis,
            empty=False,
        )
        for name, part, ours in (
            ("cummax", "values", lambda x, axis: x.cum_max(axis)),
            ("cummin", "values", lambda x, axis: x.cum_min(axis)),
            ("cummax", "indices", lambda x, axis: ops.cum_max_places(x, axis=axis)),
            ("cummin", "indices", lambda x, axis: ops.cum_min_places(x, axis=axis)),
        )
    ),
    *(
        same(name, draw=an_axis, empty=False, rtol=10)
        for name in ("softmax", "log_softmax")
    ),
    *(
        same(name, dtypes=NUMBERS, draw=an_axis_kept, **DISTINCT)
        for name in ("argmax", "argmin")
        for DISTINCT in ({"distinct": True, "empty": False},)
    ),
    *(
        Row(
            f"{name}_with_indices",
            lambda x, a, k, n=name: getattr(x, f"{n}_with_indices")(a, k),
            lambda x, a, k, n=name: tuple(getattr(x, n)(a, k)),
            dtypes=NUMBERS,
            distinct=True,
            empty=False,
            draw=an_axis_kept,
        )
        for name in ("max", "min", "median")
    ),
    Row(
        "median of ties",
        lambda x, a, k: x.median_with_indices(a, k)[0],
        lambda x, a, k: x.median(a, k).values,
        dtypes=(*NUMBERS, "uint8"),
        empty=False,
        grad=False,
        draw=an_axis_kept,
    ),
    Row(
        "median of all",
        lambda x: x.median(),
        lambda x: x.quantile(0.5),
        distinct=True,
        empty=False,
    ),
    *(
        Row(
            f"sort {down}",
            lambda x, a, d=down: x.sort_with_indices(a, d),
            lambda x, a, d=down: tuple(x.sort(dim=a, descending=d, stable=True)),
            dtypes=NUMBERS,
            draw=an_axis,
        )
        for down in (False, True)
    ),
    Row(
        "argsort",
        lambda x, a: x.argsort(a, True),
        lambda x, a: x.argsort(stable=True, dim=a, descending=True),
        draw=an_axis,
    ),
    *(
        Row(
            f"top_k {largest}",
            lambda x, a, k, g=largest: x.top_k(k, a, g),
            lambda x, a, k, g=largest: tuple(x.topk(k, a, largest=g)),
            rank=(1, 3),
            dtypes=NUMBERS,
            distinct=True,
            draw=along(0),
        )
        for largest in (False, True)
    ),
    # shapes
    Row("T", lambda x: x.T, turned(lambda n: tuple(reversed(range(n)))), dtypes=ALL),
    same("t", rank=(0, 2)),
    Row("mT", lambda x: x.mT, lambda x: x.mT, rank=(2, 4)),
    Row("flatten", lambda x: x.flatten(), lambda x: x.flatten(), dtypes=ALL),
    Row(
        "flatten tail",
        lambda x: x.flatten(1),
        lambda x: x.flatten(1),
        rank=(2, 4),
        empty=False,
    ),
    Row("reshape", lambda x: x.reshape(-1), lambda x: x.reshape(-1), empty=False),
    same("swapaxes", rank=(0, 4), draw=two_axes),
    same("moveaxis", rank=(0, 4), draw=two_axes),
    same("squeeze"),
    same("unbind", rank=(1, 3), draw=an_axis, empty=False),
    Row(
        "unsqueeze",
        lambda x, a: x.unsqueeze(a),
        lambda x, a: x.unsqueeze(a),
        draw=lambda s: st.tuples(st.integers(-len(s) - 1, len(s))),
    ),
    Row("expand", lambda x: x.expand(2, *x.shape), lambda x: x.expand(2, *x.shape)),
    Row(
        "expand own",
        lambda x: x.expand(2, *(-1,) * x.ndim),
        lambda x: x.expand(2, *(-1,) * x.ndim),
    ),
    Row(
        "tile",
        lambda x, repeats: x.tile(*repeats),
        lambda x, repeats: x.tile(repeats),
        draw=lambda s: st.tuples(st.lists(st.integers(1, 3), min_size=1, max_size=4)),
    ),
    Row(
        "flip",
        lambda x, a: x.flip(a),
        lambda x, a: x.flip(a),
        draw=an_axis,
    ),
    Row(
        "roll",
        lambda x, a, n: x.roll(n, a),
        lambda x, a, n: x.roll(n, a),
        rank=(1, 3),
        draw=along(4),
    ),
    Row("roll all", lambda x, n: x.roll(n), lambda x, n: x.roll(n), draw=a_shift),
    Row(
        "chunk",
        lambda x, a, n: x.chunk(n + 1, a),
        lambda x, a, n: tuple(x.chunk(n + 1, a)),
        rank=(1, 3),
        draw=along(0),
    ),
    Row(
        "split",
        lambda x, a, n: x.split(n + 1, a),
        lambda x, a, n: tuple(x.split(n + 1, a)),
        rank=(1, 3),
        draw=along(1),
    ),
    Row(
        "tril",
        lambda x, k: x.tril(k=k),
        lambda x, k: x.tril(k),
        rank=(2, 4),
        draw=a_shift,
        dtypes=ALL,
    ),
    Row(
        "triu",
        lambda x, k: x.triu(k=k),
        lambda x, k: x.triu(k),
        rank=(2, 4),
        draw=a_shift,
        dtypes=ALL,
    ),
    Row(
        "pad",
        lambda x, p: x.pad(p, constant_values=2),
        lambda x, p: F.pad(x, torch_pads(p), value=2),
        rank=(1, 3),
        dtypes=NUMBERS,
        draw=pads,
    ),
    Row(
        "unfold",
        lambda x, *a: x.unfold(*a),
        lambda x, *a: x.unfold(*a),
        rank=(1, 3),
        draw=windows,
        empty=False,
    ),
    # elements
    Row("getitem", lambda x, i: x[i], lambda x, i: x[i], dtypes=ALL, draw=an_index),
    Row("mask", lambda x, m: x[m], lambda x, m: x[torch.tensor(m)], draw=a_mask),
    Row(
        "masked_fill",
        lambda x, m: x.masked_fill(m, 2.0),
        lambda x, m: x.masked_fill(torch.tensor(m), 2.0),
        draw=a_mask,
    ),
    Row(
        "index_select",
        lambda x, a, i: x.take(np.array(i, int), axis=a),
        lambda x, a, i: x.index_select(
            a, torch.tensor(i, dtype=int) % max(x.shape[a], 1)
        ),
        rank=(1, 3),
        dtypes=ALL,
        draw=picks,
    ),
    Row(
        "take",
        lambda x, i: x.take(np.array(i, int)),
        lambda x, i: x.take(torch.tensor(i, dtype=int)),
        draw=lambda s: st.tuples(
            st.lists(st.integers(-int(np.prod(s)), int(np.prod(s)) - 1), max_size=5)
        ),
        empty=False,
    ),
    Row(
        "scatter_slices",
        lambda x, a, i: x.scatter_slices(
            np.array(i, int),
            2 * x.take(np.array(i, int), axis=a),
            axis=a,
            reduction="add",
        ),
        lambda x, a, i: x.index_add(
            a,
            torch.tensor(i, dtype=int) % max(x.shape[a], 1),
            2 * x.index_select(a, torch.tensor(i, dtype=int) % max(x.shape[a], 1)),
        ),
        rank=(1, 3),
        draw=picks,
    ),
    Row(
        "argwhere",
        lambda x: x.argwhere(),
        lambda x: x.argwhere(),
        rank=(1, 3),
        dtypes=ALL,
    ),
    Row(
        "diagonal",
        lambda x, k: x.diagonal(offset=k),
        lambda x, k: x.diagonal(k),
        rank=(2, 4),
        draw=lambda s: st.tuples(st.integers(-s[0], s[1])),
        empty=False,
    ),
    Row("trace", lambda x: x.trace(), lambda x: x.trace(), rank=(2, 2)),
    Row(
        "diag",
        lambda x, k: x.diag(k),
        lambda x, k: x.diag(k),
        rank=(1, 1),
        draw=a_shift,
    ),
    # products
    Row("gram", lambda x: x @ x.mT, lambda x: x @ x.mT, rank=(2, 4), rtol=10),
    Row("outer", lambda x: x.outer(x), lambda x: x.outer(x), rank=(1, 1)),
    Row("dot", lambda x: x.dot(x), lambda x: x.dot(x), rank=(1, 1), rtol=10),
    Row(
        "cov",
        lambda x: x.cov(correction=0),
        lambda x: torch.cov(x, correction=0).reshape(len(x), -1),
        rank=(2, 2),
        empty=False,
        rtol=20,
    ),
    Row(
        "qr",
        lambda x: ops.qr(x),
        lambda x: tuple(torch.linalg.qr(x)),
        rank=(2, 2),
        dtypes=("float64",),
        distinct=True,
        empty=False,
        grad=False,
    ),
    Row(
        "lu",
        lambda x: ops.lu(x),
        lambda x: tuple(torch.linalg.lu(x)),
        rank=(2, 4),
        dtypes=("float64",),
        distinct=True,
        empty=False,
        grad=False,
    ),
]


# --- arrays of any layout ---


@st.composite
def arrays(draw, row):
    """The row's arrays: shapes that broadcast, one dtype, any strides."""
    side = st.integers(0 if row.empty else 1, 4)
    rank = st.integers(*row.rank)
    shape = draw(rank.flatmap(lambda n: st.tuples(*(side for _ in range(n)))))
    dtype = draw(st.sampled_from(row.dtypes))
    made = [draw(array(row, shape, dtype))]
    for _ in range(row.arrays - 1):
        other = shape
        if not row.alike:
            other = tuple(draw(st.sampled_from((n, 1))) for n in shape)
            other = other[draw(st.integers(0, len(shape))) :]
        made.append(draw(array(row, other, dtype)))
    return made


@st.composite
def array(draw, row, shape, dtype):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    stretched = tuple(n * draw(st.sampled_from((1, 1, 2))) for n in shape)
    count = int(np.prod(stretched))
    if dtype == "bool":
        values = rng.random(count) < 0.5
    elif row.distinct:
        spread = np.linspace(row.low, row.high, count + 2)[1:-1]
        values = rng.permutation(count) if "int" in dtype else rng.permutation(spread)
    elif "int" in dtype:
        values = rng.integers(0 if dtype == "uint8" else -3, 4, count)
    else:  # quarters: ties and kinks are common
        quarters = np.arange(np.ceil(row.low * 4), np.floor(row.high * 4) + 1) / 4
        values = rng.choice(quarters, count)
    order = draw(st.permutations(range(len(shape))))
    base = np.empty([stretched[i] for i in order], dtype)
    view = base.transpose(np.argsort(order))
    view[...] = values.reshape(stretched).astype(dtype)
    steps = [2 if long > n else 1 for long, n in zip(stretched, shape, strict=True)]
    turns = [draw(st.sampled_from((1, 1, -1))) for _ in shape]
    view = view[tuple(slice(None, None, k) for k in steps)]
    return view[tuple(slice(None, None, k) for k in turns)]


# --- the test ---


@pytest.mark.parametrize("row", TABLE, ids=str)
@settings(max_examples=examples(25), deadline=None)
@given(data=st.data())
def test_method(row, data):
    inputs = data.draw(arrays(row))
    extra = data.draw(row.draw(inputs[0].shape)) if row.draw else ()
    leaves = row.grad and inputs[0].dtype.kind == "f"
    mine = [Tensor(a).require_grad() if leaves else Tensor(a) for a in inputs]
    peers = [torch.tensor(a.copy(), requires_grad=leaves) for a in inputs]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch warns of .T and of deprecated words
        wanted = several(row.theirs(*peers, *extra))
    got = several(row.ours(*mine, *extra))
    assert len(got) == len(wanted)
    bound = row.rtol * (1e-6 if inputs[0].dtype == np.float32 else 1e-12)
    for one, other in zip(got, wanted, strict=True):
        expected = other.detach().numpy()
        assert one.shape == expected.shape
        assert one.dtype.kind == expected.dtype.kind
        if one.dtype.kind == "f":
            assert one.dtype == expected.dtype
        np.testing.assert_allclose(one.numpy(), expected, bound, bound)
    if leaves:
        check_gradients(mine, peers, got, wanted, 10 * bound)


def check_gradients(mine, peers, got, wanted, bound):
    """Of a weighted sum of everything that is differentiable."""
    rng = np.random.default_rng(1)
    total, other_total = 0, 0
    for one, other in zip(got, wanted, strict=True):
        if not other.requires_grad:
            continue
        weight = rng.normal(size=one.shape).astype(one.dtype)
        total = total + (one * weight).sum()
        other_total = other_total + (other * torch.tensor(weight)).sum()
    if isinstance(other_total, int):
        return
    other_total.backward()
    gradients = total.backward() if isinstance(total, Tensor) and total.node else None
    for leaf, peer in zip(mine, peers, strict=True):
        expected = np.zeros(leaf.shape) if peer.grad is None else peer.grad.numpy()
        assume(np.isfinite(expected).all())
        found = None if gradients is None else leaf.grad(gradients)
        found = np.zeros(leaf.shape) if found is None else found.numpy()
        np.testing.assert_allclose(found, expected, bound, bound)


def several(results):
    return results if isinstance(results, tuple | list) else (results,)
