"""What tools other than PyTorch write: numbers equal onnxruntime's, or a plain twin's.

A twin says the same as the specification asks for it; it judges where onnxruntime of
today refuses what older ones ran.
"""

import itertools
from functools import partial

import numpy as np
import onnx
import pytest
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper

from burnish.codegen.backend import BurnishBackend
from burnish.codegen.errors import ReadError
from tests.codegen.readers.hostile import N, floats, info, ints, model
from tests.harness.source import source_of

X = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)


def onnxruntime_on(made, feeds):
    runtime = pytest.importorskip("onnxruntime")
    options = runtime.SessionOptions()
    options.log_severity_level = 4
    session = runtime.InferenceSession(made.SerializeToString(), options)
    return session.run(None, {i.name: feeds[i.name] for i in session.get_inputs()})


def ours(made, feeds):
    return BurnishBackend.run_model(made, list(feeds.values()))


def check(got, expected):
    for one, wanted in zip(got, expected, strict=True):
        assert one.dtype == wanted.dtype
        assert one.shape == wanted.shape
        wanted = np.where(wanted == np.finfo(np.float32).min, -np.inf, wanted)
        np.testing.assert_allclose(one, wanted, rtol=1e-4, atol=1e-5)


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


# --- Attention ---


def attention(mode, mask, past, softcap, causal, opset):
    random = np.random.default_rng(3)

    def normal(*shape):
        return random.normal(size=shape).astype(np.float32)

    keys = 9 if past else 4
    feeds = {"q": normal(2, 6, 4, 8), "k": normal(2, 3, 4, 8), "v": normal(2, 3, 4, 8)}
    if mask is not None:
        chosen = random.integers(0, 2, (4, keys))
        chosen[:, 0] = 1
        feeds["mask"] = chosen.astype(mask)
    inputs = [*"qkv", "mask" if mask is not None else ""]
    if past:
        feeds |= {"pk": normal(2, 3, 5, 8), "pv": normal(2, 3, 5, 8)}
        inputs += ["pk", "pv"]
    outputs = ["y", *(["all_k", "all_v"] if past else ["", ""]), "scores"]
    node = N(
        *("Attention", inputs, outputs),
        **{"qk_matmul_output_mode": mode, "softcap": softcap, "is_causal": causal},
    )
    dtype_of = h.np_dtype_to_tensor_dtype
    ports = [info(n, v.shape, dtype_of(v.dtype)) for n, v in feeds.items()]
    return model([node], ports, [n for n in outputs if n], opset=opset), feeds


INTEGERS = [np.int64, np.int32, np.uint8]
MASKS = [None, np.float32, np.bool_, *INTEGERS]


@pytest.mark.oracle
@pytest.mark.parametrize("opset", [23, 24])
@pytest.mark.parametrize("past", [True, False], ids=["past", "no past"])
@pytest.mark.parametrize("mode", [0, 1, 2, 3])
@pytest.mark.parametrize("mask", MASKS, ids=str)
def test_attention_with_its_scores(mask, mode, past, opset):
    for softcap, causal in itertools.product((0.0, 2.0), (0, 1)):
        if causal and mask in INTEGERS:
            continue  # onnxruntime adds -inf as an integer
        made, feeds = attention(mode, mask, past, softcap, causal, opset)
        check(ours(made, feeds), onnxruntime_on(made, feeds))


@pytest.mark.parametrize("plain", [True, False], ids=["plain", "scores"])
@pytest.mark.parametrize("past", [True, False], ids=["past", "no past"])
@pytest.mark.parametrize("mask", INTEGERS, ids=str)
def test_attention_adds_a_mask_of_integers(mask, past, plain):
    made, feeds = attention(2, mask, past, 2.0, 1, 23)
    if plain:
        del made.graph.node[0].output[1:], made.graph.output[1:]
    twin = onnx.ModelProto.FromString(made.SerializeToString())
    twin.graph.input[3].type.tensor_type.elem_type = T.FLOAT
    wide = {**feeds, "mask": feeds["mask"].astype(np.float32)}
    check(ours(made, feeds), ours(twin, wide))


# --- what a loop carries ---


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
