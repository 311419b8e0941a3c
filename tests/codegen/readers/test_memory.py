"""A model of 256 MB in one file: what reading and going through it may cost."""

from __future__ import annotations

import subprocess
import sys

import pytest
from onnx import TensorProto, helper

from burnish.codegen.readers import read
from burnish.codegen.readers.wire import elements, slim
from burnish.codegen.readers.wire.fields import fields as _fields
from burnish.codegen.readers.wire.slim import _header, _number
from tests.harness.attempts import measured

COUNT, ROWS = 16, 2048
SIZE = ROWS * ROWS * 4

CHILD = """
import resource, sys
import burnish.codegen.readers as readers
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
before = peak()
model = readers.read(sys.argv[1]).model
after = peak()
for value in model.graph.initializers.values():
    value.const_value.numpy().max()
print(after - before, peak() - before)
"""


@pytest.fixture
def giant(tmp_path):
    """16 weights of 16 MB; zeros that take no room on the disk."""
    heads = []
    for index in range(COUNT):
        tensor = TensorProto(name=f"w{index}", dims=[ROWS, ROWS], data_type=1)
        head = tensor.SerializeToString() + _header(9, SIZE)
        heads.append(_header(5, len(head) + SIZE) + head)
    nodes = [
        helper.make_node("MatMul", [f"x{i}", f"w{i}"], [f"x{i + 1}"])
        for i in range(COUNT)
    ]
    ports = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", ROWS])
        for name in ("x0", f"x{COUNT}")
    ]
    rest = helper.make_graph(nodes, "g", ports[:1], ports[1:]).SerializeToString()
    model = helper.make_model(
        helper.make_graph([], "", [], []),
        opset_imports=[helper.make_opsetid("", 18)],
        ir_version=9,
    )
    model.ClearField("graph")
    path = tmp_path / "giant.onnx"
    with path.open("wb") as file:
        file.write(model.SerializeToString())
        size = len(rest) + sum(len(head) + SIZE for head in heads)
        file.write(_number(7 << 3 | 2) + _number(size) + rest)
        for head in heads:
            file.write(head)
            file.seek(SIZE - 1, 1)
            file.write(b"\0")
    return path


@pytest.mark.skipif(sys.platform != "linux", reason="counts resident memory in KiB")
@measured
def test_reading_copies_nothing(giant):
    child = subprocess.run(
        [sys.executable, "-c", CHILD, str(giant)],
        capture_output=True,
        text=True,
        check=True,
    )
    reading, going_through = map(int, child.stdout.split())
    assert reading < 50
    assert going_through < 100  # MB: one weight at a time, with room to spare


def test_pages_go_with_the_array(giant, monkeypatch):
    model = read(giant).model
    tensor = model.graph.initializers["w3"].const_value
    released = []
    monkeypatch.setattr(
        type(tensor.file), "release", lambda self, *span: released.append(span)
    )
    array = tensor.numpy().T[0]
    assert not released
    del array
    assert released == [(tensor.offset, SIZE)]


def test_lists_of_numbers_are_not_gone_through_one_by_one(monkeypatch):
    """Of trees, which have millions in attributes."""
    seen = []
    for module in (sys.modules[slim.__module__], elements):
        monkeypatch.setattr(module, "fields", lambda *a: _counted(seen, *a))
    lists = {"floats": [0.5] * 5000, "ints": [7] * 5000, "texts": ["LEAF"] * 5000}
    node = helper.make_node("Trees", ["x"], ["y"], domain="d", **lists)
    graph = helper.make_graph([node], "g", [], [])
    made, tables = slim(helper.make_model(graph).SerializeToString())
    assert [list(table.values) for table in tables.values()] == list(lists.values())
    assert len(made) < 500
    assert len(seen) < 60


def _counted(seen, *args):
    for field in _fields(*args):
        seen.append(field)
        yield field
