"""Sizes are followed through the graph, and chains of views are as short as can be."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

from burnish.codegen import passes
from burnish.codegen.account import Account
from tests.codegen.passes.forms import becomes, form
from tests.codegen.passes.models import model_of, twin
from tests.harness.source import graph, node

X = np.random.default_rng(0).standard_normal((2, 3, 8)).astype(np.float32)

#: text -> the operators that are left of it; x is (b, t, 8) with two names.
CHAINS = {
    "a swap through three reshapes": (
        """a = Constant<value_ints=[0, 0, 2, 4]>() h = Reshape(x, a)
        p = Transpose<perm=[0, 2, 1, 3]>(h) k = Identity(p) r = Relu(k)
        s = Shape(r) i = Constant<value_int=2>() t = Gather(s, i)
        ax = Constant<value_ints=[0]>() tu = Unsqueeze(t, ax)
        m = Constant<value_ints=[-1]>() four = Constant<value_ints=[4]>()
        c = Concat<axis=0>(m, tu, four) f = Reshape(r, c)
        w = Transpose<perm=[0, 2, 1]>(f) j = Constant<value_int=0>() b = Gather(s, j)
        bu = Unsqueeze(b, ax) two = Constant<value_ints=[2]>()
        d = Concat<axis=0>(bu, two, four, tu) y = Reshape(w, d)""",
        ["Reshape", "Transpose", "Relu", "Transpose"],
    ),
    "an axis that comes and goes": (
        """a = Constant<value_ints=[0]>() u = Unsqueeze(x, a)
        p = Transpose<perm=[2, 1, 0, 3]>(u) q = Constant<value_ints=[2]>()
        y = Squeeze(p, q)""",
        ["Transpose"],
    ),
    "there and back": (
        "p = Transpose<perm=[2, 0, 1]>(x) q = Transpose<perm=[1, 2, 0]>(p) y = Relu(q)",
        ["Relu"],
    ),
    "two reshapes": (
        """a = Constant<value_ints=[0, -1]>() b = Constant<value_ints=[0, 4, -1]>()
        h = Reshape(x, a) y = Reshape(h, b)""",
        ["Reshape"],
    ),
    "heads are split and moved": (
        """a = Constant<value_ints=[0, 0, 2, 4]>() h = Reshape(x, a)
        y = Transpose<perm=[0, 2, 3, 1]>(h)""",
        ["Reshape", "Transpose"],
    ),
    "what is read between stays": (
        """p = Transpose<perm=[2, 0, 1]>(x) q = Transpose<perm=[1, 2, 0]>(p)
        r = Transpose<perm=[1, 2, 0]>(p) y = Add(q, r)""",
        ["Transpose", "Transpose", "Transpose", "Add"],
    ),
    "a reshape across the parts": (
        """a = Constant<value_ints=[0, 8, 3]>() h = Reshape(x, a)
        p = Transpose<perm=[0, 2, 1]>(h) y = Relu(p)""",
        ["Reshape", "Transpose", "Relu"],
    ),
}


@pytest.mark.parametrize("case", CHAINS)
def test_chains_of_views(case):
    text, expected = CHAINS[case]
    shape = "2,3,8" if "across" in case else "b,t,8"
    left, _ = twin(model_of(text, x=shape), x=X)
    assert left == expected


SIZES = {
    "of an expand": (
        """s = Shape(x) m = Constant<value_ints=[-1]>()
        o = Constant<value_ints=[1, 1, 1]>()
        e = Equal(s, m) w = Where(e, o, s) y = Expand(x, w)""",
        ["b", "t", 8],
    ),
    "of -1": (
        "a = Constant<value_ints=[0, 0, 2, -1]>() y = Reshape(x, a)",
        ["b", "t", 2, 4],
    ),
    "of a product": (
        "a = Constant<value_ints=[-1, 8]>() y = Reshape(x, a)",
        ["b*t", 8],
    ),
    "of what is repeated": (
        "a = Constant<value_ints=[3, 1, 2]>() y = Tile(x, a)",
        ["3*b", "t", 16],
    ),
    "of an example": ("y = Transpose<perm=[1, 0, 2]>(x)", ["t", "b", 8]),
}


@pytest.mark.parametrize("case", SIZES)
def test_sizes_are_worked_out(case):
    text, expected = SIZES[case]
    model = model_of(text, x="b,t,8")
    output = model.graph.outputs[0]
    output.shape = ir.Shape([5] * len(expected))  # what a file says of an example
    passes.propagate_sizes(model, Account())
    assert [d if isinstance(d, int) else d.value for d in output.shape] == expected


def test_counted_names_of_inputs_are_roles():
    model = model_of("y = Relu(x)", x="s77,s3,8")
    passes.propagate_sizes(model, Account())
    assert [getattr(d, "value", d) for d in model.graph.outputs[0].shape] == [
        "batch",
        "time",
        8,
    ]


SEVERAL = {
    "all but the last": ("b,t,8", "b, t, _ = x.shape"),
    "the first of many": ("b,t,2,2,2", "b, t = x.shape[:2]"),
    "by their axes, where they have no names": ("s1,s2,8", "batch, time, _ = x.shape"),
}


@pytest.mark.parametrize("case", SEVERAL)
def test_sizes_of_one_tensor_are_asked_at_once(case):
    shape, line = SEVERAL[case]
    text = """i0 = Constant<value_ints=[0]>() i1 = Constant<value_ints=[1]>()
    s = Shape(x) n0 = Gather(s, i0) n1 = Gather(s, i1) m = Constant<value_ints=[-1]>()
    c = Concat<axis=0>(n1, n0, m) r = Reshape(x, c) q = Relu(r)
    o = Concat<axis=0>(n0, n1, m) z = Reshape(q, o) y = Neg(z)"""
    becomes(form(text, x=shape), line)


SLICES = {
    "backwards": ("[-1]", "[-9223372036854775807]", "[-1]", "x[:, ::-1]"),
    "to the end": ("[2]", "[6]", "[1]", "x[:, 2:]"),
    "all": ("[0]", "[6]", "[1]", "x"),
    "a part": ("[0]", "[5]", "[1]", "x[:, :5]"),
}


@pytest.mark.parametrize("case", SLICES)
def test_slices_say_what_they_take(case):
    start, end, step, words = SLICES[case]
    text = f"""a = Constant<value_ints={start}>() b = Constant<value_ints={end}>()
    s = Constant<value_ints={step}>() ax = Constant<value_ints=[1]>()
    c = Slice(x, a, b, ax, s) y = Neg(c)"""
    becomes(form(text, x="2,6"), f"return -{words}")


def test_what_adds_nothing_to_whole_numbers_is_gone():
    text = """o = Constant<value_int=1>() z = Constant<value_int=0>()
    i = Cast<to=7>(x) a = Mul(o, i) b = Add(a, z) c = Add(b, i) y = Cast<to=1>(c)"""
    left, _ = twin(model_of(text, x="2,3,8"), x=X)
    assert left == ["Cast", "Add", "Cast"]


STRIDED = """m = Constant<value_ints=[-1]>() f = Reshape(x, m)
    zero = Constant<value_int=0>() one = Constant<value_int=1>()
    s = Shape(x) n = Gather(s, zero) count = Range(zero, n, one)
    step = Constant<value_int={0}>() far = Mul(count, step)
    behind = Constant<value_ints=[1, 2]>() u = Unsqueeze(far, behind)
    a = Add(u, rows) b = Add(a, columns) v = Gather(f, b) y = Relu(v)"""


@pytest.mark.parametrize(
    ("step", "rows", "source"),
    [
        (6, [[[0], [2], [4]]], "return ops.relu(x)"),
        (6, [[[4], [2], [0]]], None),  # rows in another order
        (0, [[[0], [2], [4]]], None),  # one example again and again
    ],
)
def test_a_view_by_strides_that_moves_nothing_is_gone(step, rows, source):
    weights = {"rows": np.array(rows), "columns": np.array([[[0, 1]]])}
    model = form(STRIDED.format(step), weights=weights, x="n,3,2")
    text = becomes(model, *([source] if source else []))
    assert ("arange" in text) == (source is None)


def test_views_of_files_that_have_axes_as_attributes():
    """What views merge into is written as of opset 13, whatever the file's opset is."""
    nodes = [
        node("Transpose", "x", "t", perm=[0, 2, 1]),
        node("Reshape", "t rows", "r"),
        node("Tanh", "r", "s"),
        node("Reshape", "s back", "u"),
        node("Transpose", "u", "y", perm=[0, 2, 1]),
    ]
    held = {"rows": np.array([2, 3]), "back": np.array([2, 3, 1])}
    text = becomes(graph(nodes, held, opset=11, x=(2, 1, 3)))
    assert "squeeze(" in text
