"""States of loops that grow or shrink from round to round, whatever the file says."""

import numpy as np
import onnx
import pytest

from tests.codegen.readers.peers import check, onnxruntime_on, ours


def collecting(body, start, declared=True):
    """Rounds over the rows of x; the file says the shape of the first round."""
    numbers = ", ".join(map(str, start.ravel()))
    made = onnx.parser.parse_model(f"""
        <ir_version: 9, opset_import: ["" : 18]>
        agraph (float[n, 4] x) => (float y)
        <float[{start.shape[0]}, 4] start = {{{numbers}}}> {{
            zero = Constant<value_int=0>() first = Constant<value_ints=[0]>()
            one = Constant<value_ints=[1]>() two = Constant<value_int=2>()
            far = Constant<value_ints=[99]>() go = Constant<value=bool {{1}}>()
            sizes = Shape<start=0, end=1>(x) n = Squeeze(sizes)
            y = Loop<body = rounds
                (int64 i, bool c, float[{start.shape[0]}, 4] state)
                => (bool d, float next) {{
                d = Identity(c) row = Gather(x, i) part = Unsqueeze(row, zero) {body}
            }}>(n, go, start)
        }}""")
    loop = made.graph.node[-1].attribute[0].g
    branches = [a.g for node in loop.node for a in node.attribute if a.HasField("g")]
    open_ = [*made.graph.output, *loop.output[1:], *(g.output[0] for g in branches)]
    for value in [*open_, *([] if declared else loop.input[2:])]:
        value.type.tensor_type.ClearField("shape")
    return made


@pytest.mark.parametrize(
    ("body", "start"),
    [
        ("next = Concat<axis=0>(state, part)", np.zeros((0, 4))),
        ("next = Concat<axis=0>(part, state)", np.ones((1, 4))),
        ("more = Concat<axis=0>(state, part) next = Relu(more)", np.zeros((0, 4))),
        (
            """odd = Mod(i, two) is = Cast<to=9>(odd)
            next = If(is)<then_branch = a () => (float t) {
                t = Concat<axis=0>(state, part) },
            else_branch = b () => (float e) { e = Identity(state) }>""",
            np.zeros((0, 4)),
        ),
        ("next = Slice(state, one, far, first)", np.ones((9, 4))),
        (
            """more = Concat<axis=0>(state, part) rows = Shape<start=0, end=1>(more)
            all = Squeeze(rows) step = Constant<value_int=1>()
            places = Range(i, all, step) next = Gather(more, places)""",
            np.ones((3, 4)),
        ),
        (
            """rows = Shape<start=0, end=1>(state) fewer = Sub(rows, one)
            next, places = TopK<axis=0>(state, fewer)""",
            np.ones((9, 4)),
        ),
        (
            """rows = Shape<start=0, end=1>(state) fewer = Sub(rows, one)
            parts = Concat<axis=0>(one, fewer) top, next = Split(state, parts)""",
            np.ones((9, 4)),
        ),
    ],
    ids=[
        *("empty", "in front", "activated", "in a branch", "shorter"),
        *("gathered", "sorted", "split"),
    ],
)
@pytest.mark.parametrize("declared", [True, False])
def test_what_a_loop_carries_may_grow(body, start, declared):
    made, twin = (
        collecting(body, start.astype(np.float32), said) for said in (declared, False)
    )
    feeds = {"x": np.arange(12, dtype=np.float32).reshape(3, 4)}
    check(ours(made, feeds), onnxruntime_on(twin, feeds))
