"""Odd but valid ONNX files: each is a model and what it is called with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import AttributeProto, ModelProto, helper, numpy_helper
from onnx import TensorProto as T

from tests.codegen.readers.hostile import N, floats, info, ints, model

Case = tuple[ModelProto, list[tuple[Any, ...]]]
CASES: dict[str, Callable[[], Case]] = {}
RANDOM = np.random.default_rng(0)
YES, NO = np.array(True), np.array(False)
AXES = (
    *("class", "", "my batch", "é", "def f(", "-1", "9lives", "a.b", "x" * 300),
    *("0x10", "(1)", "1_0+2", "1.5", "?", "..."),
)
NAMES = (
    *("np", "nn", "ops", "self", "forward", "Model", "import", "print", "Tensor"),
    *("x.y/z:0", "日本語", "1", "__class__", "train", "weight", "a" * 2000, "None"),
)


def x(*shape: int) -> np.ndarray:
    return RANDOM.normal(size=shape).astype(np.float32)


def held(name: str, array: Any) -> Any:
    return numpy_helper.from_array(np.asarray(array), name)


def case(name: str) -> Callable[[Callable[[], Case]], Callable[[], Case]]:
    def keep(build: Callable[[], Case]) -> Callable[[], Case]:
        CASES[name] = build
        return build

    return keep


def body(nodes: Any, inputs: Any, outputs: Any, tensors: Any = ()) -> Any:
    """A branch or the body of a loop; ports are names, or infos."""
    ports = [
        [info(port) if isinstance(port, str) else port for port in each]
        for each in (inputs, outputs)
    ]
    return helper.make_graph(list(nodes), "b", *ports, list(tensors))


def branch(result: str, *nodes: Any, tensors: Any = ()) -> Any:
    return body(nodes, [], [result], tensors)


def either(condition: str, result: str, then: Any, other: Any) -> Any:
    return N("If", [condition], [result], then_branch=then, else_branch=other)


def rounds(nodes: Any, state: dict[str, str], seen: Any = (), mark: str = "") -> Any:
    """The body of a Loop that never stops early; state: names in and out."""
    going = N("Identity", [f"{mark}go"], [f"{mark}on"])
    counter = info(f"{mark}i", [], T.INT64)
    asked, answer = (info(f"{mark}{word}", [], T.BOOL) for word in ("go", "on"))
    inputs = [counter, asked, *state]
    return body([*nodes, going], inputs, [answer, *state.values(), *seen])


def loop(count: str, initial: str, results: list[str], inner: Any) -> Any:
    return N("Loop", [count, "", initial], results, body=inner)


def choices(nodes: Any, outputs: Any = ("y",), tensors: Any = ()) -> Case:
    """A model of x (2, 3) and a condition, called with both."""
    inputs = [info("x", [2, 3]), info("c", [], T.BOOL)]
    given = x(2, 3)
    made = model(nodes, inputs, outputs, tensors)
    return made, [(given, YES), (given, NO)]


def plain(*nodes: Any, outputs: Any = ("y",), **options: Any) -> Case:
    """A model of x (2, 3)."""
    return model(nodes, [info("x", [2, 3])], outputs, **options), [(x(2, 3),)]


for word in AXES:

    @case(f"an axis named {word[:9]!r}")
    def axis(word: str = word) -> Case:
        nodes = [N("Shape", ["t"], ["s"]), N("Reshape", ["x", "s"], ["y"])]
        made = model([N("Relu", ["x"], ["t"]), *nodes], [info("x", [word, 4])])
        return made, [(x(2, 4),)]


for word in NAMES:

    @case(f"values named {word[:9]!r}")
    def values(word: str = word) -> Case:
        weight, bias, h, y = (f"{word}{end}" for end in ("_w", "/b", "_h", "_y"))
        nodes = [N("MatMul", [word, weight], [h]), N("Add", [h, bias], [y])]
        tensors = [floats(weight, x(4, 3)), floats(bias, x(3))]
        return model(nodes, [info(word, ["N", 4])], [y], tensors), [(x(2, 4),)]

    @case(f"weights named {word[:9]!r}")
    def weights(word: str = word) -> Case:
        other = f"{word}.weight"
        nodes = [N("MatMul", ["x", word], ["t"]), N("MatMul", ["t", other], ["y"])]
        tensors = [floats(word, x(3, 5)), floats(other, x(5, 3))]
        return plain(*nodes, tensors=tensors)


@case("names that differ in punctuation")
def punctuation() -> Case:
    names = ["a.b", "a_b", "a/b", "A.b"]
    nodes = [
        N("Sub", ["a.b", "a_b"], ["t"]),
        N("Div", ["t", "a/b"], ["u"]),
        N("Mul", ["u", "A.b"], ["y"]),
    ]
    return model(nodes, [info(n, [2]) for n in names]), [tuple(x(2) for _ in names)]


@case("branches in branches, with values from outside")
def branches() -> Case:
    inner = either(
        "c",
        "i",
        branch("i1", N("Mul", ["k", "w"], ["i1"])),
        branch("i2", N("Add", ["x", "k"], ["i2"])),
    )
    middle = either(
        "c",
        "m",
        branch("m1", N("Relu", ["x"], ["k"]), inner, N("Neg", ["i"], ["m1"])),
        branch("m2", N("Identity", ["x"], ["m2"])),
    )
    outer = either(
        "c",
        "y",
        branch("o1", middle, N("Add", ["m", "w"], ["o1"])),
        branch("o2", N("Sub", ["x", "w"], ["o2"])),
    )
    return choices([outer], tensors=[floats("w", x(3))])


@case("branches with the same names inside")
def shadowed() -> Case:
    one = branch("r", N("Relu", ["x"], ["t"]), N("Add", ["t", "x"], ["r"]))
    two = branch("r", N("Neg", ["x"], ["t"]), N("Mul", ["t", "x"], ["r"]))
    nodes = [either("c", "y", one, two), either("c", "z", two, one)]
    return choices(nodes, ["y", "z"])


@case("branches of other ranks")
def ranks() -> Case:
    total = branch("a", N("ReduceSum", ["x"], ["a"], keepdims=0))
    return choices([either("c", "y", total, branch("b", N("Identity", ["x"], ["b"])))])


@case("weights in a branch and a loop's body")
def inside() -> Case:
    one = branch("r", N("MatMul", ["x", "wa"], ["r"]), tensors=[floats("wa", x(3, 3))])
    made = N("Constant", [], ["wb"], value=held("v", x(3, 3)))
    two = branch("q", made, N("MatMul", ["x", "wb"], ["q"]))
    turns = rounds([N("Gemm", ["h", "wl"], ["h2"])], {"h": "h2"})
    turns.initializer.append(floats("wl", x(3, 3)))
    nodes = [either("c", "t", one, two), loop("n", "t", ["y"], turns)]
    return choices(nodes, tensors=[held("n", 2)])


@case("a loop with collected values, and of no rounds")
def collected() -> Case:
    inner = [N("MatMul", ["h", "w"], ["m"]), N("Tanh", ["m"], ["h2"])]
    state = info("h", [2, 3]), info("h2", [2, 3])
    turns = rounds(inner, {"h": "h2"}, ["m"])
    turns.input[2].CopyFrom(state[0])
    turns.output[1].CopyFrom(state[1])
    turns.output[2].CopyFrom(info("m", [2, 3]))
    inputs = [info("x", [2, 3]), info("n", [], T.INT64)]
    nodes = [loop("n", "x", ["y", "s"], turns)]
    made = model(nodes, inputs, ["y", "s"], [floats("w", x(3, 3))])
    return made, [(x(2, 3), np.array(count)) for count in (4, 0)]


@case("a loop in a loop, with the same names")
def loops() -> Case:
    inner = rounds([N("Add", ["q", "x"], ["q2"])], {"q": "q2"}, mark="j")
    outer = rounds(
        [loop("two", "h", ["g"], inner), N("Mul", ["g", "w"], ["h2"])], {"h": "h2"}
    )
    numbers = [held("two", 2), held("three", 3), floats("w", x(3))]
    return plain(loop("three", "x", ["y"], outer), tensors=numbers)


@case("a loop whose state grows")
def grows() -> Case:
    turns = rounds([N("Concat", ["h", "x"], ["h2"], axis=0)], {"h": "h2"})
    return plain(loop("n", "x", ["y"], turns), tensors=[held("n", 3)])


@case("a scan backwards, along other axes")
def scan() -> Case:
    inner = body(
        [N("Add", ["h", "e"], ["h2"]), N("Relu", ["h2"], ["o"])],
        [info("h", [2]), info("e", [2])],
        [info("h2", [2]), info("o", [2])],
    )
    directions = {"scan_input_directions": [1], "scan_output_directions": [1]}
    axes = {"scan_input_axes": [1], "scan_output_axes": [-1], "num_scan_inputs": 1}
    node = N("Scan", ["s", "x"], ["f", "y"], body=inner, **axes, **directions)
    return plain(node, outputs=["f", "y"], tensors=[floats("s", x(2))])


@case("a sequence that a loop makes")
def sequence() -> Case:
    kind = helper.make_tensor_sequence_value_info
    turns = rounds([N("SequenceInsert", ["s", "x"], ["s2"])], {"s": "s2"})
    turns.input[2].CopyFrom(kind("s", T.FLOAT, None))
    turns.output[1].CopyFrom(kind("s2", T.FLOAT, None))
    nodes = [
        N("SequenceEmpty", [], ["e"], dtype=T.FLOAT),
        N("Loop", ["n", "go", "e"], ["o"], body=turns),
        N("SequenceAt", ["o", "z"], ["y"]),
        N("ConcatFromSequence", ["o"], ["k"], axis=0, new_axis=1),
    ]
    tensors = [held("n", 3), held("z", -1), held("go", True)]
    return plain(*nodes, outputs=["y", "k"], tensors=tensors)


@case("an optional that a branch fills")
def optional() -> Case:
    tensor = helper.make_tensor_type_proto(T.FLOAT, None)
    kind = helper.make_optional_type_proto(tensor)
    full, empty = (helper.make_value_info(name, kind) for name in ("o1", "o2"))
    one = body([N("Optional", ["x"], ["o1"])], [], [full])
    two = body([N("Optional", [], ["o2"], type=tensor)], [], [empty])
    got = branch("v", N("OptionalGetElement", ["o"], ["v"]))
    nodes = [
        either("c", "o", one, two),
        N("OptionalHasElement", ["o"], ["has"]),
        either("has", "y", got, branch("u", N("Neg", ["x"], ["u"]))),
    ]
    return choices(nodes)


@case("an LSTM whose optional inputs are empty")
def lstm() -> Case:
    names = ["x", "w", "r", "", "", "h0", "", "p"]
    node = N("LSTM", names, ["y", "", "c"], hidden_size=5)
    sizes = {"w": (1, 20, 3), "r": (1, 20, 5), "p": (1, 15), "h0": (1, 2, 5)}
    tensors = [floats(name, x(*shape)) for name, shape in sizes.items()]
    made = model([node], [info("x", [4, 2, 3])], ["y"], tensors)
    return made, [(x(4, 2, 3),)]


@case("an axis of size 0")
def empty_axis() -> Case:
    nodes = [
        N("MatMul", ["x", "w"], ["t"]),
        N("ReduceSum", ["t"], ["s"], keepdims=0),
        N("Softmax", ["t"], ["y"]),
    ]
    made = model(nodes, [info("x", ["N", 4])], ["y", "s"], [floats("w", x(4, 3))])
    return made, [(x(0, 4),), (x(2, 4),)]


@case("quantizers of no example")
def empty_quantizers() -> Case:
    nodes = [
        N("QuantizeLinear", ["x", "s", "z"], ["q"]),
        N("DequantizeLinear", ["q", "s", "z"], ["d"]),
        N("DequantizeLinear", ["w", "ws", "wz"], ["wd"], axis=0),
        N("Conv", ["d", "wd"], ["c"]),
        N("QuantizeLinear", ["c", "s", "z"], ["r"]),
        N("DequantizeLinear", ["r", "s", "z"], ["e"]),
        N("Resize", ["e", "", "", "to"], ["y"]),
        N("Flatten", ["e"], ["f"]),
        N("Hardmax", ["f"], ["h"]),
    ]
    tensors = [floats("s", 0.1), held("z", np.uint8(3)), floats("ws", [0.0137, 0.0291])]
    tensors += [
        held("wz", np.zeros(2, np.int8)),
        held("w", np.ones((2, 2, 3, 3), "i1")),
    ]
    inputs = [info("x", ["N", 2, 4, 4]), info("to", [4], T.INT64)]
    made = model(nodes, inputs, ["y", "h"], tensors)
    return made, [(x(n, 2, 4, 4), np.array([n, 2, 4, 4])) for n in (2, 0)]


@case("weights of size 0")
def empty_weights() -> Case:
    nodes = [
        N("Concat", ["x", "e"], ["t"], axis=0),
        N("MatMul", ["t", "k"], ["u"]),
        N("MatMul", ["u", "k2"], ["y"]),
    ]
    sizes = {"e": (0, 3), "k": (3, 0), "k2": (0, 4)}
    return plain(*nodes, tensors=[floats(n, x(*s)) for n, s in sizes.items()])


@case("scalars")
def scalars() -> Case:
    nodes = [
        N("Mul", ["x", "w"], ["t"]),
        N("Unsqueeze", ["t", "z"], ["v"]),
        N("Squeeze", ["v"], ["y"]),
        N("Shape", ["x"], ["s"]),
    ]
    tensors = [floats("w", 2.0), ints("z", [0])]
    outputs = ["y", info("s", [0], T.INT64)]
    return model(nodes, [info("x", [])], outputs, tensors), [(np.array(1.5, "f4"),)]


def function(name: str, inputs: Any, outputs: Any, nodes: Any, opset: int = 20) -> Any:
    used = [helper.make_opsetid("", opset), helper.make_opsetid("f", 1)]
    return helper.make_function("f", name, inputs, outputs, nodes, used)


def called(*nodes: Any, functions: Any) -> Case:
    return plain(*nodes, functions=functions, domains=["f"])


@case("a function with a reference to its attribute")
def reference() -> Case:
    inner = N("LeakyRelu", ["a"], ["b"])
    inner.attribute.add(name="alpha", ref_attr_name="slope", type=AttributeProto.FLOAT)
    leak = function("Leak", ["a"], ["b"], [inner])
    leak.attribute.append("slope")
    nodes = [
        N("Leak", ["x"], ["t"], domain="f", slope=0.2),
        N("Leak", ["t"], ["y"], domain="f", slope=2.0),
    ]
    return called(*nodes, functions=[leak])


@case("functions that call each other, with a branch inside")
def calls() -> Case:
    test = N("Less", ["m", "z"], ["c"])
    nodes = [
        N("ReduceSum", ["a"], ["m"], keepdims=0),
        N("Constant", [], ["z"], value_float=0.0),
        test,
        either(
            "c",
            "b",
            branch("r", N("Neg", ["a"], ["r"])),
            branch("r", N("Abs", ["a"], ["r"])),
        ),
    ]
    inner = function("Inner", ["a"], ["b"], nodes)
    call = N("Inner", ["a"], ["t"], domain="f")
    outer = function("Outer", ["a"], ["b"], [call, N("Relu", ["t"], ["b"])])
    return called(N("Outer", ["x"], ["y"], domain="f"), functions=[inner, outer])


@case("overloaded functions")
def overloaded() -> Case:
    made = [function("O", ["a"], ["b"], [N(k, ["a"], ["b"])]) for k in ("Relu", "Neg")]
    nodes = [N("O", ["x"], ["t"], domain="f"), N("O", ["t"], ["y"], domain="f")]
    for number, (one, node) in enumerate(zip(made, nodes, strict=True)):
        one.overload = node.overload = f"form {number}"
    return called(*nodes, functions=made)


@case("an initializer that is a result, and an input that is one")
def ports() -> Case:
    return plain(
        N("MatMul", ["x", "w"], ["y"]),
        outputs=["y", info("w", [3, 4]), info("x", [2, 3])],
        tensors=[floats("w", x(3, 4))],
    )


@case("no nodes")
def nothing() -> Case:
    return plain(outputs=[info("x", [2, 3])])


@case("no inputs")
def constant() -> Case:
    return model([N("Relu", ["w"], ["y"])], [], ["y"], [floats("w", x(3))]), [()]


@case("results that are read again, and equal ones")
def again() -> Case:
    nodes = [
        N("Relu", ["x"], ["y"]),
        N("Neg", ["y"], ["z"]),
        N("Identity", ["z"], ["k"]),
        N("Identity", ["x"], ["l"]),
    ]
    return plain(*nodes, outputs=["l", "k", "z", "y"])


for kind in ("FLOAT16", "BFLOAT16", "FLOAT8E4M3FN", "FLOAT8E5M2"):

    @case(f"weights of {kind}")
    def small_floats(kind: str = kind) -> Case:
        numbers = [0.5, 1, -2, 0.25, 3, 0, 1, -1, 0.125, 2, 4, -0.5]
        weight = helper.make_tensor("w", getattr(T, kind), [3, 4], numbers)
        nodes = [N("Cast", ["w"], ["f"], to=T.FLOAT), N("MatMul", ["x", "f"], ["y"])]
        return plain(*nodes, tensors=[weight])


@case("weights of 4 bits in blocks")
def four_bits() -> Case:
    weight = helper.make_tensor(
        "w", T.INT4, [4, 3], [1, 2, 3, 4, 5, -6, 7, 0, -1] + [2] * 3
    )
    scale = floats("s", np.abs(x(2, 3)))
    unpack = N("DequantizeLinear", ["w", "s"], ["f"], axis=0, block_size=2)
    nodes = [unpack, N("MatMul", ["x", "f"], ["y"])]
    made = model(nodes, [info("x", [2, 4])], ["y"], [weight, scale], opset=21)
    return made, [(x(2, 4),)]


@case("text of the file that looks like code")
def code() -> Case:
    made, given = plain(N("MatMul", ["x", "w"], ["y"]), tensors=[floats("w", x(3, 3))])
    made.training_info.add().algorithm.CopyFrom(branch("q", N("Relu", ["x"], ["q"])))
    helper.set_model_props(made, {'"""': '"""; import os', "k\n": "\\", "b": "{{ x }}"})
    made.doc_string = '""" quotes \\ {{ }} {% raw %}'
    made.producer_name = 'p"""q'
    return made, given


@case("sparse weights")
def sparse() -> Case:
    numbers = held("w", np.array([1, 2, 3], np.float32))
    places = held("", np.array([[0, 1], [2, 0], [1, 2]]))
    weight = helper.make_sparse_tensor(numbers, places, [3, 3])
    return plain(N("MatMul", ["x", "w"], ["y"]), sparse=[weight])


for kind in ("ReduceMean", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp"):

    @case(f"{kind} of integers")
    def of_integers(kind: str = kind) -> Case:
        given = np.array([[1, 2, 4], [1, 1, 7]], np.int32)
        node = N(kind, ["x"], ["y"], axes=[1], keepdims=0)
        inputs = [info("x", [2, 3], T.INT32)]
        return model([node], inputs, [info("y", None, T.INT32)], opset=16), [(given,)]


@case("one number where only an array fits")
def one_number() -> Case:
    held_ones = held("w", np.float32([[0.3]])), held("slope", np.float32(-0.2))
    nodes = [
        *(N("MatMul", ["x", "w"], ["t"]), N("MatMul", ["t", "w1"], ["u"])),
        N("PRelu", ["u", "slope"], ["y"]),
    ]
    held_ones += (held("w1", np.float32([2])),)
    return model(nodes, [info("x", ["N", 1])], tensors=held_ones), [(x(4, 1),)]


@case("a weight that is only asked for its size")
def only_its_size() -> Case:
    nodes = [
        N("MatMul", ["x", "w"], ["t"]),
        *(N("Shape", ["t"], ["s"]), N("ConstantOfShape", ["s"], ["y"])),
    ]
    return model(nodes, [info("x", ["N", 3])], tensors=[held("w", x(3, 5))]), [
        (x(2, 3),)
    ]
