"""Long lists of attributes are arrays: what protobuf reads, read without it."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from burnish.codegen import pipeline
from burnish.codegen.backend import BurnishBackend
from burnish.codegen.errors import ReadError
from burnish.codegen.readers import read
from burnish.codegen.readers.wire import elements, slim
from burnish.codegen.readers.wire.slim import _header, _number
from tests.codegen.readers.hostile import N, info, model

R = np.random.default_rng(0)
EDGES = [*(2 ** (7 * i) - 1 for i in range(1, 10)), *(2 ** (7 * i) for i in range(9))]
INTS = {
    "small": R.integers(0, 100, 5000),
    "two bytes": R.integers(100, 9999, 5000),
    "32 bits": R.integers(0, 2**32, 3000),
    "any": R.integers(-(2**63), 2**63 - 1, 3000),
    "edges": np.asarray(EDGES * 100, np.int64),
    "signs": np.asarray([-1, 0, 1, 2**63 - 1, -(2**63)] * 999),
}
FLOATS = R.normal(size=4000).astype(np.float32)
WORDS = ["LEAF", "BRANCH_LEQ", "", "größer", "x" * 200] * 900


def read_back(data, **options):
    """The values of the attributes of the only node, by name."""
    made, tables = slim(data)
    (node,) = onnx.ModelProto.FromString(made).graph.node
    left = {a.name: elements.table_of(a) for a in node.attribute}
    return {name: tables[number].values for name, number in left.items()}


def holding(**attributes):
    node = helper.make_node("Trees", ["x"], ["y"], domain="d", **attributes)
    return helper.make_model(helper.make_graph([node], "g", [], [])).SerializeToString()


@pytest.mark.parametrize("chunk", [1 << 22, 1000, 64], ids="{} bytes".format)
@pytest.mark.parametrize("name", INTS)
def test_integers_are_those_of_protobuf(name, chunk, monkeypatch):
    monkeypatch.setattr(elements, "_CHUNK", chunk)
    values = INTS[name].tolist()
    found = read_back(holding(a=values, b=values[::-1]))
    assert {k: v.tolist() for k, v in found.items()} == {"a": values, "b": values[::-1]}


def test_floats_and_words_are_those_of_protobuf():
    found = read_back(holding(a=FLOATS.tolist(), b=WORDS))
    np.testing.assert_array_equal(found["a"], FLOATS)
    assert list(found["b"]) == WORDS


def attribute(*fields):
    """A model whose only node has an attribute of these bytes."""
    held = b"".join(fields)
    node = b"".join((_header(5, len(held)), held))
    graph = _header(1, len(node)) + node
    return _header(7, len(graph)) + graph


NAME = helper.make_attribute("a", [0]).SerializeToString()[:3]
KINDS = {"ints": b"\xa0\x01\x07", "floats": b"\xa0\x01\x06", "strings": b"\xa0\x01\x08"}
VARINTS = b"".join(map(_number, INTS["two bytes"].tolist()))
TAGGED = b"".join(b"\x40" + _number(i) for i in INTS["two bytes"].tolist())
RAW = FLOATS.tobytes()
LAYOUTS = {
    "packed integers": ("ints", NAME, _header(8, len(VARINTS)), VARINTS, KINDS["ints"]),
    "packed floats": ("floats", NAME, _header(7, len(RAW)), RAW, KINDS["floats"]),
    "name behind": ("ints", TAGGED, KINDS["ints"], NAME),
    "doc_string behind": ("ints", NAME, TAGGED, KINDS["ints"], b"\x6a\x02hi"),
    "two runs": ("ints", NAME, TAGGED, KINDS["ints"], TAGGED),
    "packed and not": (
        *("ints", NAME, _header(8, len(VARINTS)), VARINTS),
        *(KINDS["ints"], TAGGED),
    ),
    "of two kinds": ("ints", NAME, TAGGED, b"\x3d\0\0\0\0", KINDS["ints"]),
    "long numbers": (
        "ints",
        *(NAME, b"\x40\x81\x80\x80\x00" * 1000, KINDS["ints"]),
    ),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_every_layout_that_protobuf_reads(name):
    field, *parts = LAYOUTS[name]
    data = attribute(*parts)
    (node,) = onnx.ModelProto.FromString(data).graph.node
    made, tables = slim(data)
    (same,) = onnx.ModelProto.FromString(made).graph.node
    number = elements.table_of(same.attribute[0])
    held = same.attribute[0] if number is None else tables[number]
    values = getattr(held, field) if number is None else held.values
    np.testing.assert_array_equal(values, getattr(node.attribute[0], field))
    assert same.attribute[0].name == "a"
    assert same.attribute[0].type == node.attribute[0].type


DAMAGED = {
    "a number without an end": TAGGED + b"\x40" + b"\xff" * 5000,
    "a packed number without an end": _header(8, 5000) + b"\xff" * 5000,
    "a number of 11 bytes": (b"\x40" + b"\x80" * 10 + b"\x01") * 900,
    "bytes that are no floats": _header(7, 5001) + b"\0" * 5001,
    "cut off": TAGGED[:-1],
    "no text": b"".join(b"\x4a\x02\xff\xfe" for _ in range(3000)),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damage_is_one_error(name, tmp_path):
    (tmp_path / "m.onnx").write_bytes(attribute(NAME, DAMAGED[name]))
    with pytest.raises(ReadError):
        read(tmp_path / "m.onnx")


def test_a_list_that_another_attribute_names_is_refused(tmp_path):
    made = onnx.ModelProto.FromString(holding(a=INTS["small"].tolist()))
    made.opset_import.append(helper.make_opsetid("", 18))
    made.graph.output.append(info("y", [2]))
    made.graph.node[0].attribute.append(helper.make_attribute("b", [1]))
    for text in ("\0table 0", "\0table 99", "\0table x"):
        made.graph.node[0].attribute[1].doc_string = text
        (tmp_path / "m.onnx").write_bytes(made.SerializeToString())
        with pytest.raises(ReadError):
            read(tmp_path / "m.onnx")


LONG = R.integers(0, 900, 3000).tolist()


def gathered(values, **options):
    nodes = [
        N("Constant", [], ["c"], value_ints=values),
        N("Gather", ["x", "c"], ["y"]),
    ]
    return model(nodes, [info("x", [900])], **options)


def encoded():
    keys = {"keys_int64s": list(range(3000)), "values_floats": FLOATS[:3000].tolist()}
    node = helper.make_node(
        "LabelEncoder", ["i"], ["y"], domain="ai.onnx.ml", default_float=0.5, **keys
    )
    cast = N("Cast", ["x"], ["i"], to=TensorProto.INT64)
    made = model([cast, node], [info("x", [900])])
    made.opset_import.append(helper.make_opsetid("ai.onnx.ml", 2))
    return made


def branches():
    """Two branches whose lists differ in the middle alone."""
    other = [*LONG[:1500], 7 if LONG[1500] != 7 else 8, *LONG[1501:]]
    bodies = [
        helper.make_graph(
            [
                N("Constant", [], [f"c{i}"], value_ints=v),
                N("Gather", ["x", f"c{i}"], [f"y{i}"]),
            ],
            f"b{i}",
            [],
            [info(f"y{i}", [3000])],
        )
        for i, v in enumerate((LONG, other))
    ]
    nodes = [
        N("ReduceSum", ["x"], ["s"], keepdims=0),
        N("Constant", [], ["zero"], value_float=0.0),
        N("Greater", ["s", "zero"], ["c"]),
        N("If", ["c"], ["y"], then_branch=bodies[0], else_branch=bodies[1]),
    ]
    return model(nodes, [info("x", [900])])


MODELS = {
    "a constant": lambda: gathered(LONG),
    "a constant of opset 13": lambda: gathered(LONG, opset=13),
    "a table of labels": encoded,
    "branches": branches,
}


@pytest.mark.oracle
@pytest.mark.parametrize("name", MODELS)
def test_numbers_are_those_of_onnxruntime(name):
    import onnxruntime

    made = MODELS[name]()
    x = np.arange(900, dtype=np.float32)
    for given in (x, -x):
        session = onnxruntime.InferenceSession(made.SerializeToString())
        (wanted,) = session.run(None, {"x": given})
        (y,) = BurnishBackend.run_model(made, [given])
        np.testing.assert_array_equal(y, wanted)


def test_axes_are_never_a_long_list(tmp_path):
    node = N("Pad", ["x"], ["y"], pads=[0] * 5000)
    onnx.save(model([node], [info("x", [2])], opset=10), tmp_path / "m.onnx")
    with pytest.raises(ReadError, match="axes, got a long list"):
        pipeline.generate(tmp_path / "m.onnx")
