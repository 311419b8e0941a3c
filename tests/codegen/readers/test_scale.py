"""A million of anything is refused at once; a few thousand cost in proportion."""

import sys
import time

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

from burnish.codegen import pipeline
from burnish.codegen.errors import ConversionError
from tests.codegen.readers.hostile import N, info, model
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
def test_a_million_is_refused_at_once(name, server, tmp_path):
    path, out = tmp_path / "model.onnx", tmp_path / "out"
    out.mkdir()
    path.write_bytes(CASES[name]())
    megabytes = path.stat().st_size / MEGABYTE
    told = server.run(f"{NAME}:refused", str(path), str(out), folder=out)
    assert told["outcome"] == "done", told
    assert "expected at most" in told["text"]
    assert told["megabytes"] < 64 + 10 * megabytes, told
    assert told["seconds"] < 2 + megabytes, told


def chain(count):
    nodes = [N("Relu", [f"v{i}"], [f"v{i + 1}"]) for i in range(count)]
    return model(nodes, [info("v0", [2])], [f"v{count}"])


def wide(count):
    nodes = [N("Relu", ["x"], [f"a{i}"]) for i in range(count)]
    nodes.append(N("Sum", [f"a{i}" for i in range(count)], ["y"]))
    return model(nodes, [info("x", [2])])


def parameters(count):
    names = [f"x{i}" for i in range(count)]
    return model([N("Sum", names, ["y"])], [info(name, [2]) for name in names])


GRAPHS = {"a chain": chain, "branches": wide, "inputs": parameters}


@pytest.mark.parametrize("build", GRAPHS.values(), ids=GRAPHS)
def test_time_grows_with_the_graph(build, tmp_path):
    """Four times the nodes take less than seven times as long."""
    taken = []
    for count in (20, 200, 800):
        path = tmp_path / "model.onnx"
        path.write_bytes(build(count).SerializeToString())
        start = time.process_time()
        pipeline.generate(path)
        taken.append(time.process_time() - start)
    assert taken[2] < 7 * taken[1] + 0.5, taken
