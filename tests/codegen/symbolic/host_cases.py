"""Graphs of shape arithmetic: each operator on the open sizes of `x`."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

N = helper.make_node
CASES = []


def i64(*numbers):
    return np.array(numbers, np.int64)


def chain(label, *steps, **consts):
    """A row: steps on `s`, the shape of x, that end in `y`."""
    CASES.append(pytest.param([N("Shape", ["x"], ["s"]), *steps], consts, id=label))


def alone(label, node):
    CASES.append(pytest.param([node], {}, id=label))


A_B = [N("Gather", ["s", "i0"], ["a"]), N("Gather", ["s", "i1"], ["b"])]
PICK = {"i0": np.array(0), "i1": np.array(1)}
for st, en in [
    (0, None),
    (1, None),
    (-2, None),
    (0, -1),
    (1, 2),
    (-1, None),
    (2, 1),
    (-9, 9),
]:
    ends = {} if en is None else {"end": en}
    alone(f"Shape {st} {en}", N("Shape", ["x"], ["y"], start=st, **ends))
alone("Size", N("Size", ["x"], ["y"]))
chain("Gather neg", N("Gather", ["s", "i"], ["y"]), i=np.array(-1))
chain("Gather neg sym", N("Gather", ["s", "i"], ["y"]), i=np.array(-3))
chain("Gather vec", N("Gather", ["s", "i"], ["y"]), i=i64(-1, 0, 1))
chain("Gather mat", N("Gather", ["s", "i"], ["y"]), i=np.array([[0, 1], [-1, -2]]))
for a, e, st in [
    (0, 2, 1),
    (-1, -9, -1),
    (2, 0, -1),
    (-1, -4, -2),
    (0, 2**63 - 1, 2),
    (1, 1, 1),
    (-2, -1, 1),
    (5, 9, 1),
    (9, -9, -1),
    (2, -(2**63), -1),
]:
    chain(
        f"Slice {a}:{e}:{st}",
        N("Slice", ["s", "a", "e", "ax", "st"], ["y"]),
        a=i64(a),
        e=i64(e),
        ax=i64(0),
        st=i64(st),
    )
chain("Slice noaxes", N("Slice", ["s", "a", "e"], ["y"]), a=i64(1), e=i64(3))
chain("Concat", N("Concat", ["s", "c", "s"], ["y"], axis=0), c=i64(7))
chain("Concat neg", N("Concat", ["s", "c"], ["y"], axis=-1), c=i64(7))
chain("Unsqueeze", N("Unsqueeze", ["s", "ax"], ["y"]), ax=i64(0))
chain("Unsqueeze2", N("Unsqueeze", ["s", "ax"], ["y"]), ax=i64(0, -1))
chain(
    "Squeeze",
    N("Unsqueeze", ["s", "ax"], ["u"]),
    N("Squeeze", ["u", "ax"], ["y"]),
    ax=i64(-1),
)
chain(
    "Squeeze all",
    N("Slice", ["s", "z", "o"], ["u"]),
    N("Squeeze", ["u"], ["y"]),
    z=i64(0),
    o=i64(1),
)
for op in [
    "Add",
    "Sub",
    "Mul",
    "Div",
    "Min",
    "Max",
    "Mod",
    "Equal",
    "Less",
    "Greater",
    "LessOrEqual",
    "GreaterOrEqual",
]:
    chain(op, *A_B, N(op, ["a", "b"], ["y"]), **PICK)
    chain(op + " vec", N(op, ["s", "c"], ["y"]), c=i64(3, -2, 7))
    chain(
        op + " const first",
        N(op, ["c", "s"], ["y"]),
        c=i64(-3, 5, 0) if op not in ("Div", "Mod") else i64(-7, 9, -9),
    )
for c in (-2, -3, 2, 3):
    chain(
        f"Div by {c} of negative",
        *A_B,
        N("Sub", ["b", "a"], ["d"]),
        N("Sub", ["d", "five"], ["d5"]),
        N("Div", ["d5", "c"], ["y"]),
        c=np.array(c),
        five=np.array(5),
        **PICK,
    )
    chain(
        f"Mod by {c} of negative",
        *A_B,
        N("Sub", ["b", "a"], ["d"]),
        N("Sub", ["d", "five"], ["d5"]),
        N("Mod", ["d5", "c"], ["y"]),
        c=np.array(c),
        five=np.array(5),
        **PICK,
    )
    chain(
        f"FMod by {c} of negative",
        *A_B,
        N("Sub", ["b", "a"], ["d"]),
        N("Sub", ["d", "five"], ["d5"]),
        N("Mod", ["d5", "c"], ["y"], fmod=1),
        c=np.array(c),
        five=np.array(5),
        **PICK,
    )
for op in ["Neg", "Abs", "Sign"]:
    chain(op, *A_B, N("Sub", ["a", "b"], ["d"]), N(op, ["d"], ["y"]), **PICK)
for to in (
    TensorProto.FLOAT,
    TensorProto.INT32,
    TensorProto.DOUBLE,
    TensorProto.BOOL,
    TensorProto.FLOAT16,
    TensorProto.UINT8,
):
    chain(f"Cast {to}", N("Cast", ["s"], ["y"], to=to))
    chain(f"Cast scalar {to}", *A_B, N("Cast", ["a"], ["y"], to=to), **PICK)
for op in ("Floor", "Ceil", "Sqrt", "Round", "Exp"):
    chain(
        op,
        *A_B,
        N("Cast", ["b"], ["f"], to=1),
        N("Mul", ["f", "h"], ["g"]),
        N(op, ["g"], ["k"]),
        N("Cast", ["k"], ["y"], to=7),
        h=np.float32(1.5),
        **PICK,
    )
    chain(
        op + " float",
        *A_B,
        N("Cast", ["b"], ["f"], to=1),
        N("Mul", ["f", "h"], ["g"]),
        N(op, ["g"], ["y"]),
        h=np.float32(0.7),
        **PICK,
    )
chain(
    "float div",
    *A_B,
    N("Cast", ["b"], ["f"], to=1),
    N("Cast", ["a"], ["g"], to=1),
    N("Div", ["f", "g"], ["y"]),
    **PICK,
)
chain(
    "float times x",
    *A_B,
    N("Cast", ["b"], ["f"], to=1),
    N("Div", ["x", "f"], ["y"]),
    **PICK,
)
chain(
    "double into x",
    *A_B,
    N("Cast", ["b"], ["f"], to=11),
    N("Cast", ["x"], ["xd"], to=11),
    N("Div", ["xd", "f"], ["y"]),
    **PICK,
)
chain(
    "int times float cast",
    *A_B,
    N("Cast", ["x"], ["xi"], to=6),
    N("Cast", ["b"], ["bi"], to=6),
    N("Mul", ["xi", "bi"], ["y"]),
    **PICK,
)
chain(
    "int64 mix",
    *A_B,
    N("Cast", ["x"], ["xi"], to=7),
    N("Mul", ["xi", "b"], ["y"]),
    **PICK,
)
chain(
    "Where",
    *A_B,
    N("Less", ["a", "b"], ["c"]),
    N("Where", ["c", "a", "b"], ["y"]),
    **PICK,
)
chain(
    "Where minus one",
    N("Equal", ["t", "m"], ["e"]),
    N("Where", ["e", "s", "t"], ["y"]),
    t=i64(-1, 7, -1),
    m=i64(-1),
)
chain(
    "And Or Not",
    *A_B,
    N("Less", ["a", "b"], ["c"]),
    N("Not", ["c"], ["n"]),
    N("Greater", ["a", "one"], ["d"]),
    N("And", ["n", "d"], ["e"]),
    N("Or", ["e", "c"], ["y"]),
    one=np.array(1),
    **PICK,
)
for op in ("Xor", "Equal"):
    chain(
        f"Not of {op}",
        *A_B,
        N("Less", ["a", "b"], ["c"]),
        N("Greater", ["a", "one"], ["d"]),
        N(op, ["c", "d"], ["e"]),
        N("Not", ["e"], ["n"]),
        N("And", ["n", "c"], ["y"]),
        one=np.array(1),
        **PICK,
    )
chain(
    "Not of a size",
    *A_B,
    N("Cast", ["b"], ["c"], to=TensorProto.BOOL),
    N("Not", ["c"], ["y"]),
    **PICK,
)
for op in ("ReduceProd", "ReduceSum", "ReduceMax", "ReduceMin"):
    for kd in (0, 1):
        chain(f"{op} {kd}", N(op, ["s"], ["y"], keepdims=kd))
        chain(f"{op} {kd} axes", N(op, ["s", "ax"], ["y"], keepdims=kd), ax=i64(-1))
chain(
    "Range",
    *A_B,
    N("Range", ["z", "b", "o"], ["y"]),
    z=np.array(0),
    o=np.array(1),
    **PICK,
)
chain(
    "Range neg",
    *A_B,
    N("Range", ["b", "m", "d"], ["y"]),
    m=np.array(-2),
    d=np.array(-2),
    **PICK,
)
chain(
    "Range float",
    *A_B,
    N("Cast", ["b"], ["f"], to=1),
    N("Range", ["z", "f", "h"], ["y"]),
    z=np.float32(0),
    h=np.float32(0.5),
    **PICK,
)
chain("ConstantOfShape", N("ConstantOfShape", ["s"], ["y"]))
chain(
    "ConstantOfShape vec",
    N("Shape", ["s"], ["r"]),
    N("ConstantOfShape", ["r"], ["k"], value=numpy_helper.from_array(i64(2))),
    N("Mul", ["k", "s"], ["y"]),
)
chain("Expand scalar", *A_B, N("Expand", ["a", "sh"], ["y"]), sh=i64(3), **PICK)
chain("Expand s", N("Expand", ["s", "sh"], ["y"]), sh=i64(2, 3))
chain(
    "Expand x",
    *A_B,
    N("Slice", ["x", "z", "o", "tt"], ["x1"]),
    N("Expand", ["x1", "s"], ["y"]),
    z=i64(0),
    o=i64(1),
    tt=i64(1),
    **PICK,
)
chain("Reshape of shape", N("Reshape", ["s", "sh"], ["y"]), sh=i64(3, 1))
chain("Reshape of shape -1", N("Reshape", ["s", "sh"], ["y"]), sh=i64(-1, 1))
chain("Reshape of shape 0", N("Reshape", ["s", "sh"], ["y"]), sh=i64(0, 1))
chain(
    "Reshape scalar to vec", *A_B, N("Reshape", ["a", "sh"], ["y"]), sh=i64(-1), **PICK
)
chain(
    "Reshape vec to scalar",
    N("Slice", ["s", "z", "o"], ["u"]),
    N("Reshape", ["u", "sh"], ["y"]),
    z=i64(0),
    o=i64(1),
    sh=np.zeros(0, np.int64),
)
chain(
    "Reshape x",
    *A_B,
    N("Mul", ["a", "b"], ["ab"]),
    N("Unsqueeze", ["ab", "ax"], ["u"]),
    N("Concat", ["u", "m"], ["sh"], axis=0),
    N("Reshape", ["x", "sh"], ["y"]),
    ax=i64(0),
    m=i64(-1),
    **PICK,
)
chain(
    "Slice x",
    *A_B,
    N("Div", ["b", "two"], ["h"]),
    N("Unsqueeze", ["h", "ax"], ["u"]),
    N("Slice", ["x", "z", "u", "o"], ["y"]),
    two=np.array(2),
    ax=i64(0),
    z=i64(0),
    o=i64(1),
    **PICK,
)
chain(
    "Slice x neg",
    *A_B,
    N("Neg", ["b"], ["h"]),
    N("Unsqueeze", ["h", "ax"], ["u"]),
    N("Slice", ["x", "u", "e", "o"], ["y"]),
    e=i64(2**63 - 1),
    ax=i64(0),
    o=i64(1),
    **PICK,
)
chain(
    "Tile",
    *A_B,
    N("Unsqueeze", ["a", "ax"], ["u"]),
    N("Concat", ["u", "m"], ["t"], axis=0),
    N("Tile", ["x", "t"], ["y"]),
    ax=i64(0),
    m=i64(1, 2),
    **PICK,
)
chain(
    "Pad",
    *A_B,
    N("Unsqueeze", ["a", "ax"], ["u"]),
    N("Concat", ["m", "u", "k"], ["t"], axis=0),
    N("Pad", ["x", "t"], ["y"]),
    ax=i64(0),
    m=i64(0, 1, 0, 0),
    k=i64(2),
    **PICK,
)
chain(
    "Gather x by size",
    *A_B,
    N("Sub", ["b", "o"], ["l"]),
    N("Gather", ["x", "l"], ["y"], axis=1),
    o=np.array(1),
    **PICK,
)
chain(
    "Gather const by size",
    *A_B,
    N("Gather", ["c", "a"], ["y"]),
    c=np.arange(20.0, dtype=np.float32),
    **PICK,
)
chain("Scatter shape", N("ScatterElements", ["s", "i", "u"], ["y"]), i=i64(1), u=i64(9))
chain(
    "TopK",
    *A_B,
    N("Unsqueeze", ["b", "ax"], ["k"]),
    N("TopK", ["x", "k"], ["v", "y"], axis=1),
    ax=i64(0),
    **PICK,
)
chain("CumSum", N("CumSum", ["s", "ax"], ["y"]), ax=np.array(0))
chain("Pow", *A_B, N("Pow", ["a", "two"], ["y"]), two=np.array(2), **PICK)
chain("Sum", N("Sum", ["s", "s"], ["y"]))
chain("Split", N("Split", ["s"], ["p", "q", "y"], num_outputs=3))
chain("Split uneven", N("Split", ["s"], ["y", "q"], num_outputs=2))
chain("Split sizes", N("Split", ["s", "n"], ["p", "y", "q"]), n=i64(1, 0, 2))
chain(
    "Split into pads",
    N("Split", ["s"], ["p", "q", "r"], num_outputs=3),
    N("Concat", ["q", "z", "p", "z"], ["t"], axis=0),
    N("Pad", ["x", "t"], ["y"]),
    z=i64(0, 0),
)
chain("Flatten", N("Flatten", ["s"], ["y"], axis=0))
chain("Transpose", N("Transpose", ["s"], ["y"]))
chain(
    "Mean of sizes",
    *A_B,
    N("Cast", ["s"], ["f"], to=1),
    N("ReduceMean", ["f"], ["y"], keepdims=0),
    **PICK,
)
chain(
    "Clip",
    *A_B,
    N("Clip", ["b", "lo", "hi"], ["y"]),
    lo=np.array(2),
    hi=np.array(2),
    **PICK,
)
chain("Identity out", N("Identity", ["s"], ["y"]))
chain("Max3", *A_B, N("Max", ["a", "b", "t"], ["y"]), t=np.array(2), **PICK)
chain(
    "Where tensor",
    *A_B,
    N("Less", ["a", "b"], ["c"]),
    N("Where", ["c", "x", "z"], ["y"]),
    z=np.float32(0),
    **PICK,
)
chain(
    "Equal tensor",
    N("Cast", ["x"], ["xi"], to=7),
    *A_B,
    N("Equal", ["xi", "b"], ["y"]),
    **PICK,
)
chain(
    "Less in float",
    *A_B,
    N("Cast", ["b"], ["f"], to=1),
    N("Less", ["x", "f"], ["y"]),
    **PICK,
)
chain(
    "Range x",
    *A_B,
    N("Range", ["z", "b", "o"], ["r"]),
    N("Cast", ["r"], ["rf"], to=1),
    N("Unsqueeze", ["rf", "ax"], ["ru"]),
    N("Add", ["x", "ru"], ["y"]),
    z=np.array(0),
    o=np.array(1),
    ax=i64(1),
    **PICK,
)

for by in (2, -3):
    chain(f"Mod {by}", N("Mod", ["s", "k"], ["y"]), k=i64(by))
    chain(
        f"floor division by {by}",  # as PyTorch's exporter writes it
        N("Div", ["s", "k"], ["q"]),
        N("Less", ["s", "zero"], ["n"]),
        N("Xor", ["n", "opposite"], ["d"]),
        N("Mod", ["s", "k"], ["r"]),
        N("Equal", ["r", "zero"], ["e"]),
        N("Not", ["e"], ["f"]),
        N("And", ["d", "f"], ["c"]),
        N("Sub", ["q", "one"], ["p"]),
        N("Where", ["c", "p", "q"], ["y"]),
        k=i64(by),
        zero=i64(0),
        one=i64(1),
        opposite=np.array([by < 0]),
    )
