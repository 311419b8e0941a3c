"""A million of anything is refused at once; a few thousand cost in proportion."""

import json
import sys
from cProfile import Profile

import numpy as np
import onnx_ir as ir
import pytest
from onnx import (
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    StringStringEntryProto,
    TensorProto,
    ValueInfoProto,
)
from onnx.helper import make_function, make_graph, make_opsetid

from burnish.codegen import pipeline
from burnish.codegen.errors import ConversionError
from burnish.codegen.readers.inlining.inline import inline_calls
from tests.codegen.readers.hostile import N, floats, info, model
from tests.harness.attempts import measured
from tests.harness.limited import MEGABYTE, Limited

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="limits memory, and reads /proc"
)

NAME = "tests.codegen.readers.test_scale"
MILLION = 10**6
RELU = N("Relu", ["x"], ["y"])
GOOD = model([RELU], [info("x", [2])])


def length(data):
    """A length as protobuf writes it, before the bytes."""
    size, made = len(data), b""
    while size > 127:
        made, size = made + bytes([size & 127 | 128]), size >> 7
    return made + bytes([size]) + data


def field(number, data):
    return (
        bytes([number << 3 & 127 | 2 | (128 if number > 15 else 0)])
        + (bytes([number >> 4]) if number > 15 else b"")
        + length(data)
    )


def in_graph(number, message):
    """The good model with a million more messages in a field of its graph."""
    more = field(number, message.SerializeToString()) * MILLION
    return GOOD.SerializeToString() + field(7, more)


def in_model(number, message):
    more = field(number, message.SerializeToString()) * MILLION
    return GOOD.SerializeToString() + more


def in_node(number, data):
    node = RELU.SerializeToString() + field(number, data) * MILLION
    return GOOD.SerializeToString() + field(7, field(1, node))


NUMBER = GraphProto.DESCRIPTOR.fields_by_name
MODEL = ModelProto.DESCRIPTOR.fields_by_name
NODE = NodeProto.DESCRIPTOR.fields_by_name
ENTRY = StringStringEntryProto(key="k", value="v")
WEIGHT = TensorProto(name="w", data_type=1, dims=[0])
CASES = {
    "nodes": lambda: in_graph(NUMBER["node"].number, RELU),
    "initializers": lambda: in_graph(NUMBER["initializer"].number, WEIGHT),
    "inputs": lambda: in_graph(NUMBER["input"].number, ValueInfoProto(name="i")),
    "outputs": lambda: in_graph(NUMBER["output"].number, ValueInfoProto(name="y")),
    "values": lambda: in_graph(NUMBER["value_info"].number, ValueInfoProto(name="v")),
    "functions": lambda: in_model(MODEL["functions"].number, FunctionProto(name="f")),
    "metadata": lambda: in_model(MODEL["metadata_props"].number, ENTRY),
    "names": lambda: in_node(NODE["input"].number, b"x"),
    "attributes": lambda: in_node(NODE["attribute"].number, b"\x0a\x01a"),
}


SIZES = ("hidden_size", "intermediate_size", "vocab_size", "max_position_embeddings")
BERT = dict.fromkeys((*SIZES, "num_hidden_layers", "num_attention_heads"), 2)
BERT |= {"model_type": "bert", "type_vocab_size": 2, "architectures": ["BertModel"]}


@pytest.fixture(scope="module")
def server():
    with Limited(NAME) as server:
        yield server


def refused(path, _out):
    """The message of the error."""
    with pytest.raises(ConversionError) as caught:
        pipeline.generate(path)
    return str(caught.value)


@pytest.mark.parametrize("name", CASES)
@measured
def test_a_million_is_refused_at_once(name, server, tmp_path):
    path, out = tmp_path / "model.onnx", tmp_path / "out"
    out.mkdir(exist_ok=True)
    path.write_bytes(CASES[name]())
    megabytes = path.stat().st_size / MEGABYTE
    report = server.run(f"{NAME}:refused", str(path), str(out), folder=out)
    assert report["outcome"] == "done", report
    assert "expected at most" in report["text"]
    assert report["megabytes"] < 64 + 10 * megabytes, report
    assert report["seconds"] < 2 + megabytes, report


@measured
def test_a_folder_of_many_tensors(server, tmp_path):
    """Names that no model has, in a Hugging Face folder: all are hashed."""
    count, out = 10_000, tmp_path / "out"
    out.mkdir(exist_ok=True)
    entries = {
        f"n{i}": {"dtype": "U8", "shape": [1], "data_offsets": [i, i + 1]}
        for i in range(count)
    }
    head = json.dumps(entries).encode()
    data = len(head).to_bytes(8, "little") + head + bytes(count)
    (tmp_path / "model.safetensors").write_bytes(data)
    (tmp_path / "config.json").write_text(json.dumps(BERT))
    report = server.run(f"{NAME}:refused", str(tmp_path), str(out), folder=out)
    assert report["outcome"] == "done", report
    assert "weights do not fit config.json: missing" in report["text"]
    assert report["megabytes"] < 64 + 10 * len(data) / MEGABYTE, report


def chain(count):
    nodes = [N("Relu", [f"v{i}"], [f"v{i + 1}"]) for i in range(count)]
    return model(nodes, [info("v0", [2])], [f"v{count}"])


def wide(count):
    nodes = [N("Relu", ["x"], [f"a{i}"]) for i in range(count)]
    nodes.append(N("Sum", [f"a{i}" for i in range(count)], ["y"]))
    return model(nodes, [info("x", [2])])


def kept(count):
    """Every value lives to the end."""
    count //= 2
    nodes = [N("Relu", [f"v{i}"], [f"v{i + 1}"]) for i in range(count)]
    sums = [N("Add", [f"s{i}", f"v{i}"], [f"s{i + 1}"]) for i in range(1, count)]
    first = N("Neg", [f"v{count}"], ["s1"])
    return model([*nodes, first, *sums], [info("v0", [2])], [f"s{count}"])


def parameters(count):
    names = [f"x{i}" for i in range(count)]
    return model([N("Sum", names, ["y"])], [info(name, [2]) for name in names])


def results(count):
    names = [f"y{i}" for i in range(count)]
    nodes = [N("Relu", ["x"], [name]) for name in names]
    return model(nodes, [info("x", [2])], names)


def regions(count):
    """Each layer and its sum around those that come later."""
    down = [N("MatMul", [f"v{i}", "w"], [f"v{i + 1}"]) for i in range(count // 2)]
    up = [N("Add", [f"s{i + 1}", f"v{i}"], [f"s{i}"]) for i in range(count // 2)]
    turn = N("Relu", [f"v{count // 2}"], [f"s{count // 2}"])
    tensors = [floats("w", np.eye(2, dtype=np.float32))]
    inputs = [info("v0", [2, 2])]
    return model([*down, turn, *reversed(up)], inputs, ["s0"], tensors=tensors)


def shared_names(count):
    """Inputs that name their axes alike."""
    names = [f"x{i}" for i in range(count)]
    nodes = [N("Relu", [name], [f"y{name}"]) for name in names]
    inputs = [info(name, ["N", "M"]) for name in names]
    return model(nodes, inputs, [f"y{name}" for name in names])


def same_names(count):
    made = chain(count)
    for node in made.graph.node:
        node.name = "n"
    return made


def scopes(count):
    """Modules in modules, eight deep, each of two."""
    made = chain(count)
    for i, node in enumerate(made.graph.node):
        path = "/".join(f"m{depth}.{i >> depth & 1}" for depth in range(8, 0, -1))
        node.name = f"/{path}/Relu"
    return made


def branches(count):
    def body(op, i):
        return make_graph([N(op, [f"v{i}"], [f"{op}{i}"])], op, [], [info(f"{op}{i}")])

    nodes = [
        N(
            "If",
            ["c"],
            [f"v{i + 1}"],
            then_branch=body("Relu", i),
            else_branch=body("Neg", i),
        )
        for i in range(count // 2)
    ]
    inputs = [info("v0", [2]), info("c", [], TensorProto.BOOL)]
    return model(nodes, inputs, [f"v{count // 2}"])


def expanded(count):
    """No rule, but a body in the specification: functions that are made here."""
    nodes = []
    for i in range(count // 8):
        held = [f"q{i}", f"s{i}", f"z{i}"]
        nodes.append(N("DynamicQuantizeLinear", [f"v{i}"], held))
        nodes.append(N("DequantizeLinear", held, [f"v{i + 1}"]))
    return model(nodes, [info("v0", [2])], [f"v{count // 8}"])


def function(name, *nodes):
    opsets = [make_opsetid("", 20), make_opsetid("f", 1)]
    return make_function("f", name, ["a"], ["b"], nodes, opsets)


def called(names, functions):
    nodes = [
        N(name, [f"v{i}"], [f"v{i + 1}"], domain="f") for i, name in enumerate(names)
    ]
    made = model(nodes, [info("v0", [2])], [f"v{len(names)}"])
    made.opset_import.append(make_opsetid("f", 1))
    made.functions.extend(functions)
    return made


BODY = (N("Relu", ["a"], ["t"]), N("Neg", ["t"], ["b"]))


def calls(count):
    """One function, called often."""
    return called(["F"] * (count // 2), [function("F", *BODY)])


def functions(count):
    names = [f"F{i}" for i in range(count // 2)]
    return called(names, [function(name, *BODY) for name in names])


def nested(count):
    """Functions that call one another, ten deep."""
    made = [
        function(f"F{i}", N(f"F{i + 1}", ["a"], ["t"], domain="f"), *BODY[1:])
        for i in range(10)
    ]
    return called(["F0"] * (count // 10), [*made, function("F10", *BODY)])


GRAPHS = [
    *(chain, wide, kept, parameters, results, same_names, scopes, branches, expanded),
    *(regions, shared_names, calls, functions, nested),
]


def work(path):
    """How many calls the interpreter makes to generate source."""
    with Profile() as profile:
        pipeline.generate(path)
    return sum(entry.callcount for entry in profile.getstats())


@pytest.mark.parametrize("build", GRAPHS, ids=lambda build: build.__name__)
def test_work_grows_with_the_graph(build, tmp_path):
    """Twice the nodes are twice the work, and not four times."""
    path, taken = tmp_path / "model.onnx", []
    for count in (8, 32, 64, 128):  # the first imports
        path.write_bytes(build(count).SerializeToString())
        taken.append(work(path))
    _, one, two, four = taken
    assert four - two < 2.7 * (two - one), taken


def lines(action):
    """How many lines the interpreter runs: loops that call nothing count too."""
    count = 0

    def heard(_frame, event, _argument):
        nonlocal count
        count += event == "line"
        return heard

    sys.settrace(heard)
    try:
        action()
    finally:
        sys.settrace(None)
    return count


@pytest.mark.parametrize("build", [calls, functions])
def test_inlining_grows_with_what_is_called(build):
    models = [ir.from_proto(build(count)) for count in (50, 100, 200)]
    one, two, four = (lines(lambda m=made: inline_calls(m)) for made in models)
    assert [len(made.graph) for made in models] == [50, 100, 200]
    assert four - two < 2.2 * (two - one)
