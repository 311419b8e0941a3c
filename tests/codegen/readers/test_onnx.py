"""The ONNX reader: what it normalises, what it refuses, and how it says so."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from burnish.codegen.errors import ConversionError, ReadError, UnsupportedError
from burnish.codegen.readers import FileTensor, read
from tests.harness.examples import examples
from tests.harness.reference import judged


def info(name, shape=None, dtype=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, dtype, shape)


def tensor(name, array):
    return numpy_helper.from_array(np.asarray(array), name)


def make(nodes, inputs, outputs, weights=(), opset=18, **options):
    graph = helper.make_graph(nodes, "g", inputs, outputs, weights)
    imports = options.pop("imports", [helper.make_opsetid("", opset)])
    return helper.make_model(
        graph, opset_imports=imports, ir_version=options.pop("ir_version", 9), **options
    )


def linear(**options):
    weight = np.arange(512, dtype=np.float32).reshape(8, 64)
    return make(
        [helper.make_node("MatMul", ["x", "w"], ["y"], name="/fc/MatMul")],
        [info("x", ["batch", 8])],
        [info("y", ["batch", 64])],
        [tensor("w", weight)],
        **options,
    )


def saved(path: Path, model) -> Path:
    path.write_bytes(model.SerializeToString())
    return path


def run(model, feeds):
    return judged(model, feeds)


def same(path: Path, **feeds):
    """The file as read gives the numbers of the file as written."""
    source = read(path)
    got = run(ir.to_proto(source.model), feeds)
    for mine, theirs in zip(got, run(onnx.load(path), feeds), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-6)
    return source


X = np.linspace(-1, 1, 16, dtype=np.float32).reshape(2, 8)


def test_large_weights_stay_in_the_file(tmp_path):
    source = same(saved(tmp_path / "m.onnx", linear()), x=X)
    weight = source.model.graph.initializers["w"].const_value
    assert isinstance(weight, FileTensor)
    assert not weight.numpy().flags.owndata
    assert source.opset == 18
    assert [str(d) for d in source.model.graph.inputs[0].shape] == ["batch", "8"]
    weight.release()
    with (tmp_path / "w").open("wb") as out:
        weight.tofile(out)
    assert (tmp_path / "w").read_bytes() == weight.numpy().tobytes()


def test_data_location_after_raw_data_does_not_hide_the_data(tmp_path):
    model = linear()
    model.graph.initializer[0].data_location = TensorProto.DEFAULT
    same(saved(tmp_path / "m.onnx", model), x=X)


@pytest.mark.parametrize(
    "dtype",
    ["INT4", "UINT4", "FLOAT4E2M1", "BFLOAT16", "FLOAT8E4M3FN", "BOOL", "COMPLEX64"],
)
def test_every_width_is_mapped_as_onnx_reads_it(tmp_path, dtype):
    kind = ir.DataType[dtype]
    array = np.arange(4001) % 2
    raw = ir.to_proto(ir.tensor(array.astype(kind.numpy()), dtype=kind, name="w"))
    model = make(
        [helper.make_node("Identity", ["w"], ["y"])], [], [info("y", None, kind)], [raw]
    )
    found = read(saved(tmp_path / "m.onnx", model)).model.graph
    got = next(iter(found.initializers.values())).const_value
    assert isinstance(got, FileTensor)
    np.testing.assert_array_equal(got.numpy(), array.astype(kind.numpy()))


# what is normalised


def test_both_spellings_of_the_default_domain(tmp_path):
    model = linear(imports=[helper.make_opsetid("ai.onnx", 18)])
    model.graph.node[0].domain = "ai.onnx"
    source = read(saved(tmp_path / "m.onnx", model))
    assert source.model.opset_imports == {"": 18}
    assert source.model.graph[0].domain == ""


def test_unsorted_nodes_are_sorted(tmp_path):
    nodes = [
        helper.make_node("Relu", ["a"], ["y"], name="second"),
        helper.make_node("Neg", ["x"], ["a"], name="first"),
    ]
    model = make(nodes, [info("x", [2])], [info("y", [2])])
    source = read(saved(tmp_path / "m.onnx", model))
    assert [node.name for node in source.model.graph] == ["first", "second"]


def test_constants_become_initializers_also_in_subgraphs(tmp_path):
    then = helper.make_graph(
        [
            helper.make_node("Constant", [], ["c"], value_float=2.0),
            helper.make_node("Add", ["x", "c"], ["t"]),
        ],
        "then",
        [],
        [info("t", [2])],
    )
    other = helper.make_graph(
        [helper.make_node("Neg", ["x"], ["e"])], "else", [], [info("e", [2])]
    )
    model = make(
        [helper.make_node("If", ["p"], ["y"], then_branch=then, else_branch=other)],
        [info("x", [2]), info("p", [], TensorProto.BOOL)],
        [info("y", [2])],
    )
    path = saved(tmp_path / "m.onnx", model)
    source = same(path, x=X[0, :2], p=np.array(True))
    assert list(source.model.graph.initializers) == ["c"]


def test_initializers_that_are_inputs_are_weights(tmp_path):
    model = linear()
    model.graph.input.append(info("w", [8, 64]))
    model.graph.initializer.append(tensor("b", np.zeros(64, np.float32)))
    model.graph.input.append(info("b", [64]))
    source = read(saved(tmp_path / "m.onnx", model))
    assert [v.name for v in source.model.graph.inputs] == ["x"]
    assert source.notes[0].endswith(": 'w' and 1 more")


def test_sparse_initializer_is_made_dense(tmp_path):
    sparse = helper.make_sparse_tensor(
        tensor("w", np.array([3.0, 5.0], np.float32)),
        tensor("i", np.array([1, 5], np.int64)),
        [2, 3],
    )
    node = helper.make_node("Add", ["x", "w"], ["y"])
    model = make([node], [info("x", [2, 3])], [info("y", [2, 3])])
    model.graph.sparse_initializer.append(sparse)
    weights = read(saved(tmp_path / "m.onnx", model)).model.graph.initializers
    expected = [[0, 3, 0], [0, 0, 5]]
    np.testing.assert_array_equal(weights["w"].const_value.numpy(), expected)


def test_training_info_is_left_out_and_reported(tmp_path):
    model = linear()
    model.training_info.add().algorithm.name = "train"
    assert "training_info" in read(saved(tmp_path / "m.onnx", model)).notes[0]


def test_domain_without_opset_is_reported(tmp_path):
    model = linear()
    model.graph.node.append(
        helper.make_node("Trilu", ["y"], ["z"], domain="com.microsoft")
    )
    source = read(saved(tmp_path / "m.onnx", model))
    assert source.model.opset_imports["com.microsoft"] == 1
    assert "com.microsoft" in source.notes[0]


def test_duplicate_node_names_become_unique(tmp_path):
    nodes = [
        helper.make_node("Neg", ["x"], ["a"], name="n"),
        helper.make_node("Neg", ["a"], ["y"], name="n"),
    ]
    model = make(nodes, [info("x", [2])], [info("y", [2])])
    names = [n.name for n in read(saved(tmp_path / "m.onnx", model)).model.graph]
    assert len(set(names)) == 2


def test_rank_zero_shapes_are_inferred(tmp_path):
    nodes = [
        helper.make_node("ReduceSum", ["x"], ["s"], keepdims=0),
        helper.make_node("Neg", ["s"], ["y"]),
    ]
    model = make(nodes, [info("x", ["n"])], [info("y")])
    graph = read(saved(tmp_path / "m.onnx", model)).model.graph
    assert graph[0].outputs[0].shape == ir.Shape([])


# functions


def block(name, nodes, opset=18):
    return helper.make_function(
        "my", name, ["x"], ["y"], nodes, [helper.make_opsetid("", opset), MY]
    )


MY = helper.make_opsetid("my", 1)


def with_functions(*functions):
    model = make(
        [
            helper.make_node("Block", ["x"], ["a"], name="blocks.0", domain="my"),
            helper.make_node("Block", ["a"], ["y"], name="blocks.1", domain="my"),
        ],
        [info("x", [2])],
        [info("y", [2])],
        imports=[helper.make_opsetid("", 18), MY],
    )
    model.functions.extend(functions)
    return model


def test_functions_are_inlined_and_leave_their_scope(tmp_path):
    leaf = block("Leaf", [helper.make_node("Neg", ["x"], ["y"], name="neg")])
    outer = block(
        "Block",
        [
            helper.make_node("Leaf", ["x"], ["h"], name="mlp", domain="my"),
            helper.make_node("Exp", ["h"], ["y"], name="exp"),
        ],
    )
    path = saved(tmp_path / "m.onnx", with_functions(leaf, outer))
    source = same(path, x=X[0, :2])
    scopes = [
        n.metadata_props["pkg.torch.onnx.name_scopes"] for n in source.model.graph
    ]
    assert scopes[0] == repr(["", "blocks.0", "blocks.0.mlp", "neg"])
    kinds = source.model.graph[0].metadata_props["pkg.torch.onnx.class_hierarchy"]
    assert kinds == repr(["Model", "Block", "Leaf", "Neg"])
    assert not source.model.functions


def test_functions_of_another_opset_keep_it(tmp_path):
    body = [helper.make_node("ReduceSum", ["x"], ["y"], keepdims=1)]
    path = saved(tmp_path / "m.onnx", with_functions(block("Block", body, opset=17)))
    source = read(path)
    assert not source.notes
    assert {n.version for n in source.model.graph if n.op_type == "ReduceSum"} == {17}


def test_recursive_functions_are_refused(tmp_path):
    body = [helper.make_node("Block", ["x"], ["y"], domain="my")]
    path = saved(tmp_path / "m.onnx", with_functions(block("Block", body)))
    with pytest.raises(ReadError, match="recursion, got Block -> Block"):
        read(path)


# opsets


def test_old_opset_is_upgraded_with_metadata_and_reported(tmp_path):
    model = make(
        [
            helper.make_node("MatMul", ["x", "w"], ["m"], name="mm"),
            # no rule says what it was in opset 9
            helper.make_node("TopK", ["m"], ["a", "places"], name="top", k=64),
            helper.make_node("Dropout", ["a"], ["b"], name="drop", ratio=0.3),
            helper.make_node("Squeeze", ["b"], ["y"], name="sq", axes=[1]),
        ],
        [info("x", ["n", 1, 8])],
        [info("y", ["n", 64])],
        [tensor("w", np.ones((8, 64), np.float32))],
        opset=9,
        ir_version=6,
    )
    entry = model.graph.node[0].metadata_props.add()
    entry.key, entry.value = "scope", "a"
    source = same(saved(tmp_path / "m.onnx", model), x=X[:, None])
    assert source.model.opset_imports[""] == 16
    assert source.opset == 9
    assert source.notes == ("opset 9 was upgraded to 16",)
    assert source.model.graph[0].metadata_props["scope"] == "a"
    assert isinstance(source.model.graph.initializers["w"].const_value, FileTensor)


def test_old_opset_with_rules_of_its_own_is_read_as_it_is(tmp_path):
    nodes = [helper.make_node("Softmax", ["x"], ["y"], axis=1)]
    model = make(nodes, [info("x", ["n", 1, 8])], [info("y", ["n", 1, 8])], opset=11)
    source = same(saved(tmp_path / "m.onnx", model), x=X[:, None])
    assert source.model.opset_imports[""] == source.opset == 11
    assert source.notes == ()


def test_opset_newer_than_known_is_refused(tmp_path):
    with pytest.raises(UnsupportedError, match="opset 16 to 28, got 99"):
        read(saved(tmp_path / "m.onnx", linear(opset=99)))


# external data


def external(folder: Path, location="weights.bin", length=None) -> Path:
    model = linear()
    weight = model.graph.initializer[0]
    (folder / "weights.bin").write_bytes(weight.raw_data)
    weight.ClearField("raw_data")
    weight.data_location = TensorProto.EXTERNAL
    entries = {"location": location} | ({"length": str(length)} if length else {})
    for key, value in entries.items():
        entry = weight.external_data.add()
        entry.key, entry.value = key, value
    return saved(folder / "m.onnx", model)


def test_external_data_is_mapped(tmp_path):
    same(external(tmp_path), x=X)


@pytest.mark.parametrize(
    "location",
    ["/etc/passwd", "../weights.bin", "a/../../weights.bin", "..\\w", "C:\\w", ""],
)
def test_external_data_outside_the_folder_is_refused(tmp_path, location):
    with pytest.raises(ReadError, match="outside the model's folder: refused"):
        read(external(tmp_path, location))


def test_external_data_through_a_link_is_refused(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "secret").write_bytes(b"x" * 4096)
    os.symlink(tmp_path / "secret", folder / "link")
    with pytest.raises(ReadError, match="'link' is outside the model's folder"):
        read(external(folder, "link"))


def test_missing_and_short_external_data_are_named_together(tmp_path):
    path = external(tmp_path)
    model = onnx.load(path, load_external_data=False)
    second = model.graph.initializer.add()
    second.CopyFrom(model.graph.initializer[0])
    second.name, second.external_data[0].value = "v", "gone.bin"
    saved(path, model)
    (tmp_path / "weights.bin").write_bytes(b"short")
    with pytest.raises(ReadError, match=r"holds 5 bytes.*; 'gone.bin' is missing"):
        read(path)


# what is no model


def zipped(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", b"")


FILES = {
    "an empty file": lambda p: p.write_bytes(b""),
    "a text file": lambda p: p.write_text("hello\n"),
    "text form": lambda p: p.write_text('<ir_version: 8, opset_import: ["":18]>'),
    "PyTorch": zipped,
    "a pickle": lambda p: p.write_bytes(b"\x80\x02}q\x00."),
    "HDF5": lambda p: p.write_bytes(b"\x89HDF\r\n\x1a\n" + b"\0" * 9),
    "TensorFlow Lite": lambda p: p.write_bytes(b"\x1c\0\0\0TFL3" + b"\0" * 9),
    "safetensors": lambda p: p.write_bytes(b"\x02" + b"\0" * 7 + b"{}"),
    "git lfs pull": lambda p: p.write_text("version https://git-lfs.github.com/x\n"),
    "without a graph": lambda p: saved(p, onnx.ModelProto(ir_version=8)),
    "no known format": lambda p: p.write_bytes(bytes(range(255, 155, -1))),
    "a folder": lambda p: p.mkdir(),
    "there is none": lambda p: None,
}


@pytest.mark.parametrize("says", FILES)
def test_a_file_that_is_no_model_is_named(tmp_path, says):
    path = tmp_path / "m.onnx"
    FILES[says](path)
    with pytest.raises(ReadError, match=says) as error:
        read(path)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


BROKEN = {
    "reads 'gone'": [helper.make_node("Neg", ["gone"], ["y"], name="n")],
    "output 'y'": [],
    "cycles, got one through nodes '": [
        helper.make_node("Neg", ["u"], ["v"], name="a"),
        helper.make_node("Neg", ["v"], ["u"], name="b"),
        helper.make_node("Add", ["u", "x"], ["y"], name="c"),
    ],
    "redeclared": [
        helper.make_node("Neg", ["x"], ["y"]),
        helper.make_node("Exp", ["x"], ["y"]),
    ],
}


@pytest.mark.parametrize("says", BROKEN)
def test_a_graph_that_does_not_hold_together(tmp_path, says):
    model = make(BROKEN[says], [info("x", [2])], [info("y", [2])])
    with pytest.raises(ReadError, match=says):
        read(saved(tmp_path / "m.onnx", model))


def test_a_tensor_shorter_than_its_shape(tmp_path):
    model = linear()
    model.graph.initializer[0].dims[0] = 9
    with pytest.raises(ReadError, match="needs 2304 bytes"):
        read(saved(tmp_path / "m.onnx", model))
    model.graph.initializer[0].CopyFrom(tensor("w", np.ones(3, np.float32)))
    model.graph.initializer[0].dims[0] = 4
    with pytest.raises(ReadError, match=r"expected 4 elements for shape \[4\], got 3"):
        read(saved(tmp_path / "m.onnx", model))


def test_missing_opset_is_an_error(tmp_path):
    with pytest.raises(ReadError, match="expected an opset"):
        read(saved(tmp_path / "m.onnx", linear(imports=[])))


def read_or_refuse(path: Path, data: bytes):
    """Nothing but a ConversionError may come of reading `data`."""
    path.write_bytes(data)
    try:
        model = read(path).model
    except ConversionError:
        return
    for value in model.graph.initializers.values():
        value.const_value.numpy()


SMALL = with_functions(
    block("Block", [helper.make_node("Neg", ["x"], ["y"], name="neg")])
).SerializeToString()


@pytest.mark.parametrize("data", [SMALL, linear().SerializeToString()])
def test_truncated_anywhere(tmp_path, data):
    step = max(1, len(data) // 400)
    for size in range(0, len(data), step):
        read_or_refuse(tmp_path / "m.onnx", data[:size])


@settings(max_examples=examples(150), deadline=None)
@given(at=st.integers(0, len(SMALL) - 1), byte=st.integers(0, 255))
def test_any_byte_damaged(tmp_path_factory, at, byte):
    path = tmp_path_factory.getbasetemp() / "damaged.onnx"
    read_or_refuse(path, SMALL[:at] + bytes([byte]) + SMALL[at + 1 :])
