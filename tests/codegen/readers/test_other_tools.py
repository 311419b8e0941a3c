"""What tools other than PyTorch write: numbers equal onnxruntime's, or a plain twin's.

A twin says the same as the specification asks for it; it judges where onnxruntime of
today refuses what older ones ran.
"""

from functools import partial

import numpy as np
import onnx
import pytest
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper

from burnish.codegen.errors import ReadError
from tests.codegen.readers.hostile import N, floats, info, ints, model
from tests.codegen.readers.peers import check, onnxruntime_on, ours
from tests.harness.source import source_of

X = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)


# --- names of axes ---

AXES = [
    ["-1", "-1", 4],
    ["?", "?", "?"],
    ["", "", 4],
    ["batch size", "my dim", 4],
    ["in", "class", "lambda"],
    ["2x", "3", "4.0"],
    ["batch*2", "seq + 1", "h//2"],
    ["unk__6", "None", "True"],
    ["x:0", "a/b", "a.b"],
    ['a"b', "a'b", "a\\b"],
    ["a\nb", "üñï", "日本"],
    ["self", "x", "ops"],
    ["...", "_", "__"],
    ["[a]", "a,b", "(n)"],
    ["len", "range", "nn"],
    ["0", "1", "2"],
    [" ", " ", 4],
    [" -1", "+1", "\t"],
    [-1, -1, 4],
]


@pytest.mark.oracle
@pytest.mark.parametrize("axes", AXES, ids=repr)
def test_axes_of_any_name(axes):
    nodes = [
        N("Shape", ["x"], ["s"]),
        N("Gather", ["s", "zero"], ["batch"]),
        N("Unsqueeze", ["batch", "front"], ["first"]),
        N("Concat", ["first", "rest"], ["sizes"], axis=0),
        N("Reshape", ["x", "sizes"], ["y"]),
    ]
    tensors = [ints("zero", 0), ints("front", [0]), ints("rest", [-1])]
    made = model(nodes, [info("x", axes)], [info("y", axes[:2])], tensors)
    check(ours(made, {"x": X}), onnxruntime_on(made, {"x": X}))


@pytest.mark.oracle
def test_a_declared_size_of_none_at_all():
    made = model([N("Relu", ["x"], ["y"])], [info("x", [0, 3, 4])])
    check(ours(made, {"x": X[:0]}), onnxruntime_on(made, {"x": X[:0]}))


# --- bodies that declare what they read from outside ---


def graph(nodes, inputs, outputs):
    return h.make_graph(nodes, "body", inputs, outputs)


COUNTER = [info("i", [], T.INT64), info("go", [], T.BOOL)]


def nested(declares, opset=20):
    """A Scan in a Loop in an If; all of them read from the main graph."""

    def seen(*names):
        return [info(name) for name in names] if declares else []

    rows = graph(
        [
            N("Mul", ["row", "w"], ["scaled"]),
            N("Add", ["state", "scaled"], ["next"]),
            N("Identity", ["next"], ["out"]),
        ],
        [info("state"), info("row"), *seen("w")],
        [info("next"), info("out")],
    )
    loop = graph(
        [
            N("Scan", ["start", "all"], ["", "summed"], body=rows, num_scan_inputs=1),
            N("Identity", ["go"], ["on"]),
        ],
        [*COUNTER, info("all"), *seen("start", "w")],
        [info("on", [], T.BOOL), info("summed")],
    )
    then = graph(
        [N("Loop", ["trips", "true", "x"], ["looped"], body=loop)],
        [*seen("x", "start", "w"), *([info("trips", [], T.INT64)] if declares else [])],
        [info("looped")],
    )
    other = graph([N("Neg", ["x"], ["turned"])], seen("x"), [info("turned")])
    nodes = [
        N("ReduceSum", ["x"], ["sum"], keepdims=0),
        N("Greater", ["sum", "least"], ["positive"]),
        N("If", ["positive"], ["y"], then_branch=then, else_branch=other),
    ]
    tensors = [
        floats("least", -100),
        ints("trips", 3),
        onnx.numpy_helper.from_array(np.array(True), "true"),
        floats("w", np.arange(4)),
        floats("start", np.zeros((3, 4))),
    ]
    return model(nodes, [info("x", [2, 3, 4])], tensors=tensors, opset=opset)


def test_bodies_that_declare_what_they_read_from_outside():
    check(ours(nested(True), {"x": X}), ours(nested(False), {"x": X}))
    rows = X.copy()
    for _ in range(3):
        rows = np.cumsum(rows * np.arange(4, dtype=np.float32), axis=0)
    np.testing.assert_allclose(ours(nested(True), {"x": X})[0], rows, rtol=1e-4)


def test_a_body_that_declares_what_nobody_has():
    body = graph(
        [N("Add", ["a", "lost"], ["b"]), N("Identity", ["go"], ["on"])],
        [*COUNTER, info("a"), info("lost")],
        [info("on", [], T.BOOL), info("b")],
    )
    made = model(
        [N("Loop", ["n", "", "x"], ["y"], body=body, name="again")],
        [info("x", [2, 3, 4])],
        tensors=[ints("n", 2)],
    )
    with pytest.raises(ReadError, match=r"'again' \(Loop\): expected .* got 'lost'"):
        ours(made, {"x": X})


# --- numbers in PaddlePaddle's operators ---


@pytest.mark.parametrize(
    ("kind", "name", "trains"),
    [
        ("Mul", "helper.constant.3", False),
        ("Add", "helper.constant.3", False),
        ("Add", "p2o.pd_op.full.0.0", False),
        ("Mul", "auto.cast.6", False),
        ("Add", "auto.cast.6", True),  # a bias of float16
        ("Mul", "p2o.pd_op.reshape.0.0", True),
        ("Mul", "my_layer_0.w_0", True),
    ],
)
def test_a_number_of_paddle_s_operator_is_no_parameter(kind, name, trains, tmp_path):
    factor = numpy_helper.from_array(np.array([0.35], np.float32), name)
    made = model(
        [N(kind, ["x", name], ["y"])], [info("x", [2, 3, 4])], tensors=[factor]
    )
    expected = X * np.float32(0.35) if kind == "Mul" else X + np.float32(0.35)
    text, run = source_of(made, tmp_path)
    np.testing.assert_allclose(np.asarray(run(X)), expected, 1e-6)
    assert ("nn.Param(" in text) is trains


# --- scalars where a list is asked for ---


@pytest.mark.parametrize("given", [True, False], ids=["inputs", "constants"])
@pytest.mark.parametrize("axes", [None, 1, [1], [-2]], ids=repr)
@pytest.mark.parametrize("end", [1, [3]], ids=repr)
def test_slices_with_bounds_of_rank_0(given, axes, end):
    bounds = {"start": np.array(0), "end": np.array(end)}
    inputs = ["x", "start", "end", *([] if axes is None else ["axes"])]
    tensors = [] if axes is None else [ints("axes", axes)]
    ports = [info(n, v.shape, T.INT64) for n, v in bounds.items()] if given else []
    tensors += [] if given else [ints(n, v) for n, v in bounds.items()]
    made = model(
        [N("Slice", inputs, ["y"])], [info("x", [2, 3, 4]), *ports], tensors=tensors
    )
    feeds = {"x": X, **(bounds if given else {})}
    stop = int(np.ravel(end)[0])
    expected = X[:stop] if axes is None else X[:, :stop]
    np.testing.assert_array_equal(ours(made, feeds)[0], expected)


@pytest.mark.oracle
@pytest.mark.parametrize("given", [True, False], ids=["inputs", "constants"])
@pytest.mark.parametrize("start", [-200, -4, -3, -1, 0, 2, 200])
def test_slices_backwards_start_at_the_first_place_at_least(given, start):
    bounds = {"start": start, "end": -(2**40), "axis": 1, "step": -1}
    bounds = {name: np.array([number]) for name, number in bounds.items()}
    ports = [info(n, v.shape, T.INT64) for n, v in bounds.items()] if given else []
    held = [] if given else [ints(n, v) for n, v in bounds.items()]
    x, made = info("x", [2, 3, 4]), N("Slice", ["x", *bounds], ["y"])
    made = model([made], [x, *ports], tensors=held)
    feeds = {"x": X, **(bounds if given else {})}
    np.testing.assert_array_equal(ours(made, feeds)[0], onnxruntime_on(made, feeds)[0])


def test_slices_in_a_body_by_its_counter():
    body = graph(
        [
            N("Add", ["i", "one"], ["after"]),
            N("Slice", ["x", "i", "after", "one"], ["column"]),
            N("Identity", ["go"], ["on"]),
        ],
        COUNTER,
        [info("on", [], T.BOOL), info("column")],
    )
    made = model(
        [N("Loop", ["three", ""], ["y"], body=body)],
        [info("x", [2, 3, 4])],
        tensors=[ints("three", 3), ints("one", 1)],
    )
    expected = np.stack([X[:, i : i + 1] for i in range(3)])
    np.testing.assert_array_equal(ours(made, {"x": X})[0], expected)


def test_the_size_of_a_slice_whose_bounds_only_the_run_knows():
    made = model(
        [N("Slice", ["x", "start", "end"], ["part"]), N("Shape", ["part"], ["y"])],
        [info("x", [2, 3, 4]), *(info(n, [1], T.INT64) for n in ("start", "end"))],
    )
    bounds = {"start": np.array([1]), "end": np.array([9])}
    np.testing.assert_array_equal(ours(made, {"x": X, **bounds})[0], [1, 3, 4])


def test_slices_along_axes_that_only_the_run_knows():
    ports = [info(n, [], T.INT64) for n in ("start", "end", "axes")]
    made = model(
        [N("Slice", ["x", "start", "end", "axes"], ["y"])],
        [info("x", [2, 3, 4]), *ports],
    )
    bounds = {"start": np.array(1), "end": np.array(3), "axes": np.array(2)}
    np.testing.assert_array_equal(ours(made, {"x": X, **bounds})[0], X[..., 1:3])


# --- products of integers ---

LEFT = np.random.default_rng(1).integers(0, 255, (2, 3, 4)).astype(np.uint8)
RIGHT = np.random.default_rng(2).integers(-128, 127, (2, 4, 5)).astype(np.int8)
FACTORS = {
    "matrices": (LEFT[0], RIGHT[0]),
    "a vector on the left": (LEFT[0, 0], RIGHT[0]),
    "a vector on the right": (LEFT[0], RIGHT[0, :, 0]),
    "two vectors": (LEFT[0, 0], RIGHT[0, :, 0]),
    "batches and a matrix": (LEFT, RIGHT[0]),
    "batches and a vector": (LEFT, RIGHT[0, :, 0]),
    "a vector and batches": (LEFT[0, 0], RIGHT),
}


@pytest.mark.parametrize("known", [True, False], ids=["weights", "inputs"])
@pytest.mark.parametrize("zero", [2, [2], "columns"], ids=repr)
@pytest.mark.parametrize("factors", FACTORS.values(), ids=FACTORS)
def test_products_of_integers(factors, zero, known):
    a, b = factors
    if zero == "columns":
        zero = np.arange(b.shape[-1]) if b.ndim == 2 else 2
    zero = np.asarray(zero, np.int8)
    from_array = onnx.numpy_helper.from_array
    tensors = [from_array(np.uint8(3), "za"), from_array(zero, "zb")]
    ports = [info("a", a.shape, T.UINT8)]
    if known:
        tensors.append(from_array(b, "b"))
    else:
        ports.append(info("b", b.shape, T.INT8))
    node = N("MatMulInteger", ["a", "b", "za", "zb"], ["y"])
    made = model([node], ports, tensors=tensors, dtype=T.INT32)
    (got,) = ours(made, {"a": a} if known else {"a": a, "b": b})
    expected = (a.astype(np.int32) - 3) @ (b.astype(np.int32) - zero)
    np.testing.assert_array_equal(got, expected)
    assert got.dtype == np.int32


# --- old spellings ---


def squeezed(opset):
    """Axes as attributes; shape arithmetic, a body and a softmax of old meaning."""
    then = graph(
        [
            N("Unsqueeze", ["x"], ["inner"], axes=[0]),
            N("Squeeze", ["inner"], ["same"], axes=[0]),
        ],
        [],
        [info("same")],
    )
    other = graph([N("Neg", ["x"], ["turned"])], [], [info("turned")])
    nodes = [
        N("ReduceSum", ["x"], ["sum"], keepdims=0),
        N("Greater", ["sum", "least"], ["positive"]),
        N("If", ["positive"], ["chosen"], then_branch=then, else_branch=other),
        N("Unsqueeze", ["chosen"], ["u"], axes=[1]),
        N("Squeeze", ["u"], ["q"], axes=[1]),
        N("Shape", ["x"], ["s"]),
        N("Gather", ["s", "zero"], ["n"]),
        N("Unsqueeze", ["n"], ["first"], axes=[0]),
        N("Squeeze", ["first"], ["again"], axes=[0]),
        N("Unsqueeze", ["again"], ["back"], axes=[0]),
        N("Concat", ["back", "rest"], ["sizes"], axis=0),
        N("Reshape", ["q", "sizes"], ["rows"]),
        N("Softmax", ["rows"], ["soft"], axis=1),
        N("ReduceSum", ["soft"], ["total"], axes=[1], keepdims=1),
        N("Add", ["rows", "total"], ["y"]),
    ]
    tensors = [floats("least", -100), ints("zero", 0), ints("rest", [-1])]
    return model(nodes, [info("x", ["n", 3, 4])], tensors=tensors, opset=opset)


def upsampled(opset):
    nodes = [
        N("Unsqueeze", ["x"], ["u"], axes=[1]),
        N("Upsample", ["u", "scales"], ["large"], mode="nearest"),
        N("Squeeze", ["large"], ["y"], axes=[1]),
    ]
    scales = floats("scales", [1, 1, 2, 2])
    return model(nodes, [info("x", [2, 3, 4])], tensors=[scales], opset=opset)


def twice():
    nodes = [N("Relu", ["x"], ["y"]), N("Neg", ["y"], ["z"])]
    return model(nodes, [info("x", [2, 3, 4])], ["y", "z", "y"])


def replaceable():
    """Weights that a caller may replace; IR 4 and later list them as inputs."""
    bounds = [floats("low", -0.5), floats("high", 0.5)]
    ports = [info("x", [2, 3, 4]), info("low", []), info("high", [])]
    return model([N("Clip", ["x", "low", "high"], ["y"])], ports, tensors=bounds)


def unused_function():
    functions = [
        h.make_function(
            "own",
            "Never",
            ["a"],
            ["b"],
            [N("Relu", ["a"], ["b"])],
            [h.make_opsetid("", 20)],
        )
    ]
    nodes = [N("Relu", ["x"], ["y"])]
    return model(nodes, [info("x", [2, 3, 4])], functions=functions, domains=["own"])


def unread_sum():
    """beta=0: whatever the summand is, even NaN, takes no part."""
    tensors = [floats("w", np.ones((4, 5))), floats("b", np.full(5, np.nan))]
    node = N("Gemm", ["x", "w", "b"], ["y"], beta=0.0)
    return model(
        [N("Flatten", ["a"], ["x"], axis=2), node],
        [info("a", [2, 3, 4])],
        tensors=tensors,
    )


WRITTEN = {
    **{f"Squeeze of opset {v}": partial(squeezed, v) for v in (8, 9, 10, 11, 12)},
    "Upsample between Unsqueeze and Squeeze": partial(upsampled, 9),
    "one output twice": twice,
    "weights among the inputs": replaceable,
    "a function that nobody calls": unused_function,
    "a summand times nothing": unread_sum,
}


@pytest.mark.oracle
@pytest.mark.parametrize("build", WRITTEN.values(), ids=WRITTEN)
def test_files_as_tools_write_them(build):
    made = build()
    name = made.graph.input[0].name
    check(ours(made, {name: X}), onnxruntime_on(made, {name: X}))


def test_functions_that_call_each_other():
    def calling(name, other):
        node = N(other, ["a"], ["b"], domain="own")
        opsets = [h.make_opsetid("", 20), h.make_opsetid("own", 1)]
        return h.make_function("own", name, ["a"], ["b"], [node], opsets)

    functions = [calling("U", "V"), calling("V", "U")]
    nodes = [N("Relu", ["x"], ["y"])]
    made = model(nodes, ["x"], functions=functions, domains=["own"])
    with pytest.raises(ReadError, match="without recursion, got U -> V -> U"):
        ours(made, {"x": X})
