"""Small ONNX files that ask for much: each a kind, built in a few lines.

`python -m tests.codegen.readers.hostile [name ...]` prints what each costs.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from onnx import (
    AttributeProto,
    FunctionProto,
    ModelProto,
    SparseTensorProto,
    numpy_helper,
)
from onnx import TensorProto as T
from onnx import helper as h

from burnish.codegen import pipeline
from burnish.codegen.errors import ConversionError
from burnish.codegen.tools import inspect_model
from burnish.codegen.tools.upgrade import upgrade
from burnish.errors import BudgetError
from tests.harness.limited import Limited

Build = Callable[[], ModelProto | bytes]
CASES: dict[str, Build] = {}
MANY = 10**9
NAME = "tests.codegen.readers.hostile"


def case(build: Build) -> Build:
    CASES[build.__name__] = build
    return build


def ints(name: str, values: Any) -> T:
    return numpy_helper.from_array(np.array(values, np.int64), name)


def floats(name: str, values: Any) -> T:
    return numpy_helper.from_array(np.array(values, np.float32), name)


def info(name: str, dims: Any = None, dtype: int = T.FLOAT) -> Any:
    return h.make_tensor_value_info(name, dtype, dims)


def model(
    nodes: Any,
    inputs: Any = (),
    outputs: Any = ("y",),
    tensors: Any = (),
    opset: int = 20,
    functions: Any = (),
    domains: Any = (),
    sparse: Any = (),
    dtype: int = T.FLOAT,
) -> ModelProto:
    ports = [info(i) if isinstance(i, str) else i for i in inputs]
    results = [info(o, None, dtype) if isinstance(o, str) else o for o in outputs]
    graph = h.make_graph(
        nodes, "g", ports, results, tensors, sparse_initializer=list(sparse)
    )
    imports = [h.make_opsetid("", opset), *(h.make_opsetid(d, 1) for d in domains)]
    return h.make_model(
        graph, opset_imports=imports, functions=list(functions), ir_version=10
    )


N = h.make_node


# --- values that inference or folding would materialise ---


@case
def range_then_add() -> ModelProto:
    nodes = [N("Range", ["a", "n", "b"], ["r"]), N("Add", ["r", "b"], ["y"])]
    return model(
        nodes, tensors=[ints("a", 0), ints("n", MANY), ints("b", 1)], dtype=T.INT64
    )


@case
def range_alone() -> ModelProto:
    nodes = [N("Range", ["a", "n", "b"], ["r"]), N("Cast", ["r"], ["y"], to=1)]
    return model(nodes, tensors=[ints("a", 0), ints("n", MANY), ints("b", 1)])


@case
def range_of_floats_without_end() -> ModelProto:
    nodes = [N("Range", ["a", "n", "b"], ["r"]), N("Neg", ["r"], ["y"])]
    return model(
        nodes,
        tensors=[floats("a", 0), floats("n", np.inf), floats("b", 1e-30)],
    )


@case
def range_of_nan() -> ModelProto:
    nodes = [N("Range", ["a", "n", "b"], ["r"]), N("Neg", ["r"], ["y"])]
    return model(nodes, tensors=[floats("a", 0), floats("n", np.nan), floats("b", 0)])


@case
def vector_of_unknown_numbers() -> ModelProto:
    nodes = [N("Add", ["x", "x"], ["y"])]
    return model(nodes, [info("x", [MANY], T.INT64)], dtype=T.INT64)


@case
def shape_as_long_as_an_input() -> ModelProto:
    nodes = [N("ConstantOfShape", ["x"], ["y"])]
    return model(nodes, [info("x", [MANY], T.INT64)])


@case
def expand_to_a_long_shape() -> ModelProto:
    nodes = [N("Expand", ["v", "x"], ["y"])]
    return model(nodes, ["v", info("x", [MANY], T.INT64)])


@case
def concat_doubles_sizes() -> ModelProto:
    nodes = [N("Shape", ["x"], ["s0"])]
    nodes += [N("Concat", [f"s{i}"] * 2, [f"s{i + 1}"], axis=0) for i in range(40)]
    nodes.append(N("ConstantOfShape", ["s40"], ["y"]))
    return model(nodes, [info("x", ["a", "b"])])


@case
def concat_doubles_constants() -> ModelProto:
    nodes = [N("Concat", [f"s{i}"] * 2, [f"s{i + 1}"], axis=0) for i in range(40)]
    nodes.append(N("Cast", ["s40"], ["y"], to=1))
    return model(nodes, tensors=[ints("s0", [1, 2])])


@case
def gather_doubles_rank() -> ModelProto:
    nodes = [N("Gather", [f"s{i}"] * 2, [f"s{i + 1}"]) for i in range(30)]
    nodes.append(N("Cast", ["s30"], ["y"], to=1))
    return model(nodes, [info("s0", ["a", "b"], T.INT64)])


@case
def rank_of_many() -> ModelProto:
    nodes = [N("Identity", [f"v{i}"], [f"v{i + 1}"]) for i in range(300)]
    return model(nodes, [info("v0", [1] * 20_000)], ["v300"])


def _grown(op_type: str, tensors: Any, **attributes: Any) -> ModelProto:
    names = [t.name for t in tensors]
    nodes = [N(op_type, names, ["r"], **attributes), N("Neg", ["r"], ["y"])]
    return model(nodes, tensors=tensors)


CASES.update(
    constant_of_shape=lambda: _grown("ConstantOfShape", [ints("s", [MANY, 4])]),
    expand=lambda: _grown("Expand", [floats("v", [1]), ints("s", [MANY])]),
    tile=lambda: _grown("Tile", [floats("v", [1]), ints("s", [MANY])]),
    one_hot=lambda: _grown(
        "OneHot", [ints("i", [1]), ints("d", MANY), floats("v", [0, 1])]
    ),
    pad=lambda: _grown("Pad", [floats("v", [1]), ints("p", [0, MANY])]),
    resize=lambda: _grown(
        "Resize",
        [floats("v", [[[1]]]), floats("r", []), floats("f", [1, 1, 1e9])],
    ),
    random_normal=lambda: _grown("RandomNormal", [], shape=[MANY, 4]),
    random_uniform=lambda: _grown("RandomUniform", [], shape=[-1, MANY]),
    eye_like=lambda: _grown("EyeLike", [floats("v", np.zeros((200_000, 0)))]),
    hann_window=lambda: _grown("HannWindow", [ints("n", MANY)]),
    mel_weights=lambda: _grown(
        "MelWeightMatrix",
        [
            ints("n", 10**6),
            ints("d", 10**6),
            ints("s", 8000),
            floats("l", 0),
            floats("u", 4000),
        ],
    ),
    dft=lambda: _grown("DFT", [floats("v", np.ones((1, 4, 1))), ints("n", MANY)]),
    einsum_outer=lambda: _grown(
        "Einsum", [floats(n, np.ones(99)) for n in "abcdef"], equation="a,b,c,d,e,f"
    ),
    einsum_to_outer=lambda: _grown(
        "Einsum",
        [floats(n, np.ones(99)) for n in "abcdef"],
        equation="a,b,c,d,e,f->abcdef",
    ),
    matmul_outer=lambda: _grown(
        "MatMul", [floats("a", np.ones((9000, 1))), floats("b", np.ones((1, 9000)))]
    ),
    add_outer=lambda: _grown(
        "Add", [floats("a", np.ones((9000, 1))), floats("b", np.ones((1, 9000)))]
    ),
    gather_rows=lambda: _grown(
        "Gather", [floats("a", np.ones((1, 9000))), ints("i", np.zeros(9000))]
    ),
    gather_nd=lambda: _grown(
        "GatherND", [floats("a", np.ones((1, 9000))), ints("i", np.zeros((9000, 1)))]
    ),
    conv_pads=lambda: _grown(
        "Conv",
        [floats("x", np.ones((1, 1, 4))), floats("w", np.ones((1, 1, 1)))],
        pads=[0, MANY],
    ),
    pool_pads=lambda: _grown(
        "AveragePool",
        [floats("x", np.ones((1, 1, 4)))],
        kernel_shape=[2],
        pads=[0, MANY],
    ),
    pool_kernel=lambda: _grown(
        "MaxPool", [floats("x", np.ones((1, 1, 4)))], kernel_shape=[MANY]
    ),
    conv_transpose=lambda: _grown(
        "ConvTranspose",
        [floats("x", np.ones((1, 1, 4))), floats("w", np.ones((1, 1, 1)))],
        strides=[MANY],
    ),
    max_unpool=lambda: _grown(
        "MaxUnpool",
        [floats("x", np.ones((1, 1, 1))), ints("i", [[[0]]]), ints("s", [1, 1, MANY])],
        kernel_shape=[1],
    ),
    col2im=lambda: _grown(
        "Col2Im",
        [floats("x", np.ones((1, 4, 1))), ints("i", [MANY, MANY]), ints("b", [2, 2])],
    ),
    center_crop_pad=lambda: _grown(
        "CenterCropPad", [floats("x", [1]), ints("s", [MANY])]
    ),
    scatter_nd_of_expand=lambda: _grown(
        "ScatterND",
        [floats("x", [1]), ints("i", np.zeros((1, 1))), floats("u", [1])],
    ),
    depth_to_space=lambda: _grown(
        "DepthToSpace", [floats("x", np.ones((1, 4, 1, 1)))], blocksize=MANY
    ),
    roi_align=lambda: _grown(
        "RoiAlign",
        [
            floats("x", np.ones((1, 1, 4, 4))),
            floats("r", np.ones((1, 4))),
            ints("b", [0]),
        ],
        output_height=60_000,
        output_width=60_000,
    ),
    bit_shift=lambda: _grown("Pow", [ints("a", 7), ints("b", MANY)]),
    upsample=lambda: model(
        [N("Upsample", ["v", "f"], ["y"])],
        tensors=[floats("v", [1]), floats("f", [1e9])],
        opset=9,
    ),
    unsqueeze_many=lambda: _grown(
        "Unsqueeze", [floats("v", 1), ints("a", list(range(20_000)))]
    ),
    tf_idf=lambda: model(
        [
            N(
                "TfIdfVectorizer",
                ["x"],
                ["y"],
                mode="TF",
                min_gram_length=1,
                max_gram_length=1,
                max_skip_count=MANY,
                ngram_counts=[0],
                ngram_indexes=[MANY],
                pool_int64s=[1],
            )
        ],
        [info("x", [4], T.INT64)],
    ),
)


@case
def split_into_millions() -> ModelProto:
    outputs = [f"p{i}" for i in range(3000)]
    return model(
        [N("Split", ["x"], outputs, num_outputs=3000)], [info("x", [3000, 2])], ["p0"]
    )


@case
def split_to_sequence() -> ModelProto:
    nodes = [
        N("ConstantOfShape", ["n"], ["v"]),
        N("SplitToSequence", ["v"], ["s"]),
        N("SequenceAt", ["s", "i"], ["y"]),
    ]
    return model(nodes, tensors=[ints("n", [200_000]), ints("i", 0)])


@case
def einsum_of_many_letters() -> ModelProto:
    return model(
        [N("Einsum", ["x", "x"], ["y"], equation="a" * 500_000 + "," + "b" * 500_000)],
        [info("x", ["n"])],
    )


def _body(count: int = 1) -> Any:
    nodes = [N("Identity", ["c"], ["d"])]
    nodes += [N("Add", [f"v{i}", f"v{i}"], [f"w{i}"]) for i in range(count)]
    ports = [info("i", [], T.INT64), info("c", [], T.BOOL)]
    ports += [info(f"v{i}") for i in range(count)]
    results = [info("d", [], T.BOOL), *(info(f"w{i}") for i in range(count))]
    return h.make_graph(nodes, "body", ports, results)


@case
def loop_without_end() -> ModelProto:
    truth = numpy_helper.from_array(np.array(True), "c")
    nodes = [N("Loop", ["n", "c", "x"], ["y"], body=_body())]
    return model(nodes, tensors=[ints("n", MANY), truth, floats("x", [1])])


@case
def loop_with_many_carried() -> ModelProto:
    names = [f"x{i}" for i in range(1000)]
    nodes = [
        N("Loop", ["n", "", *names], [f"y{i}" for i in range(1000)], body=_body(1000))
    ]
    return model(nodes, names, ["y0"], [ints("n", 3)])


@case
def if_in_if() -> ModelProto:
    graph = h.make_graph([N("Neg", ["x"], ["r0"])], "b0", [], [info("r0")])
    other = h.make_graph([N("Abs", ["x"], ["o"])], "o", [], [info("o")])
    for depth in range(1, 25):
        node = N("If", ["c"], [f"r{depth}"], then_branch=graph, else_branch=other)
        graph = h.make_graph([node], f"b{depth}", [], [info(f"r{depth}")])
    nodes = [N("If", ["c"], ["y"], then_branch=graph, else_branch=other)]
    return model(nodes, [info("c", [], T.BOOL), "x"])


@case
def loop_in_loop() -> ModelProto:
    graph = _body()
    for depth in range(1, 20):
        inner = N("Loop", ["", "c", "v0"], ["w0"], body=graph)
        nodes = [N("Identity", ["c"], ["d"]), inner]
        graph = h.make_graph(nodes, f"b{depth}", _body().input, _body().output)
    return model(
        [N("Loop", ["", "k", "x"], ["y"], body=graph)], [info("k", [], T.BOOL), "x"]
    )


@case
def nested_too_deep() -> bytes:
    """Graph in attribute in node in graph, 5000 deep: a few bytes each."""
    data = h.make_graph(
        [N("Neg", ["x"], ["y"])], "g", [], [info("y")]
    ).SerializeToString()

    def field(number: int, inner: bytes) -> bytes:
        size, out = len(inner), bytearray([number << 3 | 2])
        while size >= 0x80:
            out.append(size & 0x7F | 0x80)
            size >>= 7
        return bytes([*out, size]) + inner

    for _ in range(5000):
        data = field(
            1, b"\x22\x02If" + field(5, b"\x0a\x01b\xa0\x01\x05" + field(6, data))
        )
    return field(7, data) + b"\x08\x0a" + field(8, b"\x10\x14")


# --- functions ---


def _function(name: str, nodes: Any) -> FunctionProto:
    imports = [h.make_opsetid("", 20), h.make_opsetid("f", 1)]
    return h.make_function("f", name, ["a"], ["z"], nodes, imports)


@case
def functions_that_double() -> ModelProto:
    made = [_function("f0", [N("Neg", ["a"], ["z"])])]
    for i in range(1, 30):
        calls = [N(f"f{i - 1}", [s], [e], domain="f") for s, e in ("am", "mz")]
        made.append(_function(f"f{i}", calls))
    return model(
        [N("f29", ["x"], ["y"], domain="f")], ["x"], functions=made, domains=["f"]
    )


@case
def functions_that_double_14() -> ModelProto:
    made = [_function("f0", [N("Neg", ["a"], ["z"])])]
    for i in range(1, 14):
        calls = [N(f"f{i - 1}", [s], [e], domain="f") for s, e in ("am", "mz")]
        made.append(_function(f"f{i}", calls))
    return model(
        [N("f13", ["x"], ["y"], domain="f")], ["x"], functions=made, domains=["f"]
    )


@case
def functions_that_nobody_calls() -> ModelProto:
    made = functions_that_double_14()
    assert isinstance(made, ModelProto)
    made.graph.node[0].CopyFrom(N("Neg", ["x"], ["y"]))
    return made


@case
def attention_with_a_mask_of_no_dimension() -> ModelProto:
    held = [info(name, [2, 3, 4, 8]) for name in "QKV"]
    node = N("Attention", [*"QKV", "mask"], ["y"])
    return model([node], [*held, info("mask", [])], opset=23)


@case
def functions_of_another_opset_that_double() -> ModelProto:
    made = functions_that_double()
    assert isinstance(made, ModelProto)
    for function in made.functions:
        function.opset_import[0].version = 18
    return made


@case
def functions_in_a_chain() -> ModelProto:
    made = [_function("f0", [N("Neg", ["a"], ["z"])])]
    made += [
        _function(f"f{i}", [N(f"f{i - 1}", ["a"], ["z"], domain="f")])
        for i in range(1, 3000)
    ]
    return model(
        [N("f2999", ["x"], ["y"], domain="f")], ["x"], functions=made, domains=["f"]
    )


@case
def functions_in_a_circle() -> ModelProto:
    made = [
        _function(f"f{i}", [N(f"f{(i + 1) % 3}", ["a"], ["z"], domain="f")])
        for i in range(3)
    ]
    return model(
        [N("f0", ["x"], ["y"], domain="f")], ["x"], functions=made, domains=["f"]
    )


@case
def functions_called_often_with_large_bodies() -> ModelProto:
    body = [N("Neg", ["a" if not i else f"t{i - 1}"], [f"t{i}"]) for i in range(1000)]
    body.append(N("Neg", ["t999"], ["z"]))
    calls = [N("f0", [f"x{i}"], [f"x{i + 1}"], domain="f") for i in range(1000)]
    return model(
        calls, ["x0"], ["x1000"], functions=[_function("f0", body)], domains=["f"]
    )


@case
def definitions_in_definitions() -> ModelProto:
    """SequenceMap's definition has its body in it: nested ones copy."""
    graph = h.make_graph([N("Neg", ["e"], ["r"])], "b", [info("e")], [info("r")])
    for depth in range(12):
        seq = h.make_tensor_sequence_value_info("e", T.FLOAT, None)
        out = h.make_tensor_sequence_value_info("r", T.FLOAT, None)
        graph = h.make_graph(
            [N("SequenceMap", ["e"], ["r"], body=graph)], f"b{depth}", [seq], [out]
        )
    result = h.make_tensor_sequence_value_info("y", T.FLOAT, None)
    start = h.make_tensor_sequence_value_info("x", T.FLOAT, None)
    return model([N("SequenceMap", ["x"], ["y"], body=graph)], [start], [result])


# --- tensors ---


def _sparse(dims: Any, indices: Any = (0,), values: Any = (1.0,)) -> SparseTensorProto:
    where = ints("", indices)
    return h.make_sparse_tensor(floats("s", values), where, dims)


@case
def sparse_initializer() -> ModelProto:
    return model([N("Neg", ["s"], ["y"])], sparse=[_sparse([100_000_000])])


@case
def sparse_initializer_of_a_thousand() -> ModelProto:
    sparse = []
    for i in range(1000):
        sparse.append(_sparse([1_000_000]))
        sparse[-1].values.name = f"s{i}"
    return model([N("Neg", ["s0"], ["y"])], sparse=sparse)


@case
def sparse_constant() -> ModelProto:
    node = N("Constant", [], ["s"])
    node.attribute.append(
        AttributeProto(
            name="sparse_value",
            type=AttributeProto.SPARSE_TENSOR,
            sparse_tensor=_sparse([20_000, 20_000], [[0, 0]]),
        )
    )
    return model([node, N("Neg", ["s"], ["y"])])


@case
def sparse_with_a_zero() -> ModelProto:
    return model([N("Neg", ["s"], ["y"])], sparse=[_sparse([0, 2**40, 2**40], [], [])])


@case
def tensor_with_a_zero() -> ModelProto:
    tensor = T(name="t", dims=[0, 2**62, 2**62], data_type=1)
    return model([N("Neg", ["t"], ["y"])], tensors=[tensor])


@case
def tensor_of_rank_100() -> ModelProto:
    tensor = T(name="t", dims=[1] * 100, data_type=1, raw_data=bytes(4))
    return model([N("Neg", ["t"], ["y"])], tensors=[tensor])


@case
def tensor_of_dims() -> ModelProto:
    tensor = T(name="t", dims=[2**62] * 10_000, data_type=1)
    return model([N("Neg", ["t"], ["y"])], tensors=[tensor])


@case
def input_of_negative_size() -> ModelProto:
    return model([N("Neg", ["x"], ["y"])], [info("x", [-3, MANY, 2**62])])


@case
def segment() -> ModelProto:
    tensor = floats("t", [1.0])
    tensor.segment.begin, tensor.segment.end = 0, 2**60
    return model([N("Neg", ["t"], ["y"])], tensors=[tensor])


def _external(**entries: str) -> ModelProto:
    tensor = T(name="t", dims=[4], data_type=1, data_location=T.EXTERNAL)
    for key, value in {"location": "model.onnx", **entries}.items():
        tensor.external_data.add(key=key, value=value)
    return model([N("Neg", ["t"], ["y"])], tensors=[tensor])


CASES.update(
    external_negative_offset=lambda: _external(offset="-8"),
    external_negative_length=lambda: _external(offset="0", length="-16"),
    external_huge_offset=lambda: _external(offset="9" * 30),
    external_very_long_offset=lambda: _external(offset="9" * 5000),
    external_no_number=lambda: _external(offset="0x10"),
    external_float=lambda: _external(offset="1e3"),
    external_nothing=lambda: _external(location=""),
    external_newline=lambda: _external(location="a\nb\x1b]0;x\x07"),
)


@case
def external_same_bytes_many_times() -> ModelProto:
    tensors = []
    for i in range(2000):
        tensor = T(name=f"t{i}", dims=[25_000], data_type=1, data_location=T.EXTERNAL)
        tensor.external_data.add(key="location", value="model.onnx")
        tensors.append(tensor)
    nodes = [N("Sum", [t.name for t in tensors], ["y"])]
    return model(nodes, tensors=tensors)


# --- machine learning operators ---


@case
def trees_of_unequal_lengths() -> ModelProto:
    node = N(
        "TreeEnsembleRegressor",
        ["x"],
        ["y"],
        domain="ai.onnx.ml",
        nodes_nodeids=[0, 1],
        nodes_treeids=[0],
        nodes_modes=["BRANCH_LEQ"],
        nodes_featureids=[MANY],
        nodes_truenodeids=[0],
        nodes_falsenodeids=[0],
        nodes_values=[1.0],
        target_ids=[MANY],
        target_nodeids=[0],
        target_treeids=[0],
        target_weights=[1.0],
        n_targets=MANY,
    )
    return model([node], [info("x", [1, 4])], domains=["ai.onnx.ml"])


@case
def tree_in_a_circle() -> ModelProto:
    node = N(
        "TreeEnsembleRegressor",
        ["x"],
        ["y"],
        domain="ai.onnx.ml",
        nodes_nodeids=[0, 1],
        nodes_treeids=[0, 0],
        nodes_modes=["BRANCH_LEQ", "BRANCH_LEQ"],
        nodes_featureids=[0, 0],
        nodes_truenodeids=[1, 0],
        nodes_falsenodeids=[1, 0],
        nodes_values=[1.0, 1.0],
        target_ids=[0],
        target_nodeids=[0],
        target_treeids=[0],
        target_weights=[1.0],
        n_targets=1,
    )
    return model([node], [info("x", [1, 4])], domains=["ai.onnx.ml"])


@case
def tree_targets() -> ModelProto:
    node = N(
        "TreeEnsembleRegressor",
        ["x"],
        ["y"],
        domain="ai.onnx.ml",
        nodes_nodeids=[0],
        nodes_treeids=[0],
        nodes_modes=["LEAF"],
        nodes_featureids=[0],
        nodes_truenodeids=[0],
        nodes_falsenodeids=[0],
        nodes_values=[1.0],
        target_ids=[MANY],
        target_nodeids=[0],
        target_treeids=[0],
        target_weights=[1.0],
        n_targets=MANY + 1,
    )
    return model([node], [info("x", [1, 4])], domains=["ai.onnx.ml"])


@case
def svm_of_unequal_lengths() -> ModelProto:
    node = N(
        "SVMRegressor",
        ["x"],
        ["y"],
        domain="ai.onnx.ml",
        coefficients=[1.0],
        kernel_type="LINEAR",
        n_supports=MANY,
        rho=[1.0],
        support_vectors=[1.0],
    )
    return model([node], [info("x", [1, 4])], domains=["ai.onnx.ml"])


@case
def feature_vectorizer() -> ModelProto:
    node = N(
        "FeatureVectorizer", ["x"], ["y"], domain="ai.onnx.ml", inputdimensions=[MANY]
    )
    return model([node], [info("x", [1, 4])], domains=["ai.onnx.ml"])


# --- names and numbers ---


@case
def name_of_a_megabyte() -> ModelProto:
    name = "n" * 1_000_000
    return model([N("Neg", ["x"], [name], name=name)], ["x"], [name])


@case
def names_with_dots() -> ModelProto:
    name = "a." * 200_000
    return model([N("Neg", ["x"], ["y"], name=name)], ["x"], tensors=[])


@case
def weight_with_dots() -> ModelProto:
    name = "a." * 100_000 + "weight"
    return model([N("Add", ["x", name], ["y"])], ["x"], tensors=[floats(name, [1, 2])])


@case
def scopes_with_slashes() -> ModelProto:
    name = "/a" * 100_000
    return model([N("Neg", ["x"], ["y"], name=name)], ["x"])


@case
def metadata_that_nests() -> ModelProto:
    made = model([N("Neg", ["x"], ["y"], name="n")], ["x"])
    for key in ("name_scopes", "class_hierarchy"):
        made.graph.node[0].metadata_props.add(
            key=f"pkg.torch.onnx.{key}", value="[" * 200_000
        )
    return made


@case
def attribute_of_a_million() -> ModelProto:
    return model(
        [N("Transpose", ["x"], ["y"], perm=list(range(500_000)))], [info("x", ["n"])]
    )


@case
def kernel_shape_of_a_million() -> ModelProto:
    return model([N("MaxPool", ["x"], ["y"], kernel_shape=[1] * 300_000)], [info("x")])


@case
def attributes_not_finite() -> ModelProto:
    nodes = [
        N("LeakyRelu", ["x"], ["a"], alpha=float("nan")),
        N("Elu", ["a"], ["y"], alpha=float("inf")),
    ]
    return model(nodes, ["x"])


@case
def groups() -> ModelProto:
    return model(
        [N("Conv", ["x", "w"], ["y"], group=MANY, pads=[MANY, MANY])],
        [info("x", [1, 4, 8])],
        tensors=[floats("w", np.ones((4, 1, 3)))],
    )


@case
def number_of_a_thousand_digits() -> ModelProto:
    nodes = [N("Mul", [f"s{i}"] * 2, [f"s{i + 1}"]) for i in range(30)]
    nodes = [N("Shape", ["x"], ["h"]), N("Add", ["h", "k"], ["s0"]), *nodes]
    nodes.append(N("ConstantOfShape", ["s30"], ["y"]))
    return model(nodes, [info("x", ["n"])], tensors=[ints("k", [7])])


@case
def sizes_that_double() -> ModelProto:
    """An expression that is written out doubles with each node."""
    nodes = [N("Shape", ["x"], ["s0"])]
    nodes += [N("Add", [f"s{i}"] * 2, [f"s{i + 1}"]) for i in range(40)]
    nodes.append(N("ConstantOfShape", ["s40"], ["y"]))
    return model(nodes, [info("x", ["n"])])


@case
def sizes_that_square() -> ModelProto:
    nodes = [N("Shape", ["x"], ["s0"])]
    nodes += [N("Mul", [f"s{i}"] * 2, [f"s{i + 1}"]) for i in range(40)]
    nodes.append(N("ConstantOfShape", ["s40"], ["y"]))
    return model(nodes, [info("x", ["n"])])


@case
def sizes_named_by_sums() -> ModelProto:
    nodes = [N("Concat", [f"s{i}"] * 2, [f"s{i + 1}"], axis=0) for i in range(60)]
    return model(nodes, [info("s0", ["n", 4])], ["s60"])


@case
def values_that_double() -> ModelProto:
    """Each value is used twice: a tree of it has 2**40 leaves."""
    nodes = [N("Add", [f"s{i}"] * 2, [f"s{i + 1}"]) for i in range(60)]
    return model(nodes, [info("s0", ["n"])], ["s60"])


@case
def dimension_named_by_a_formula() -> ModelProto:
    name = "(" * 50_000 + "n" + ")" * 50_000
    return model([N("Neg", ["x"], ["y"])], [info("x", [name, "n+" * 50_000 + "1"])])


@case
def dimension_to_a_power() -> ModelProto:
    return model([N("Neg", ["x"], ["y"])], [info("x", ["9**9**9**9", "n*" * 20 + "n"])])


@case
def device_configuration_of_nothing() -> ModelProto:
    node = N("CenterCropPad", ["x", "s"], ["y"])
    node.device_configurations.add()
    ports = [info("x", [4, 4]), info("s", [2], T.INT64)]
    return model([node], ports, [info("y", [2, 2])])


def attempt(path: str, out: str) -> str:
    """Source and weights of the file, the source compiled."""
    made = pipeline.generate(path)
    compile(made.text, "made", "exec", dont_inherit=True)
    files = pipeline.write(made, out)
    return f"{len(made.text)} characters, {sum(f.stat().st_size for f in files)} bytes"


def look(path: str, _out: str) -> str:
    return f"{inspect_model.inspect(path).nodes} nodes"


def renew(path: str, out: str) -> str:
    return str(upgrade(path, f"{out}/new.onnx", 21).after)


WAYS = (attempt, look, renew)
CLEAN = {"AttributeNotHonouredError", "BudgetError"}
CLEAN |= {
    kind.__name__ for kind in [ConversionError, *ConversionError.__subclasses__()]
}


def everything(path: str, out: str) -> str:
    """All that is done with a model file, and how it went."""
    went = []
    for way in WAYS:
        try:
            went.append(way(path, out))
        except (ConversionError, BudgetError) as error:
            went.append(str(error))
    return "\n".join(went)


def each(paths: list[str], out: str) -> str:
    """`everything` with each file; the output goes to a folder of its own."""
    went = []
    for path in paths:
        folder = Path(out, Path(path).parent.name)
        folder.mkdir()
        went.append(everything(path, str(folder)))
    return "\n".join(went)


def write(build: Build, path: Path) -> int:
    """The file of a case; its size."""
    made = build()
    data = made if isinstance(made, bytes) else made.SerializeToString()
    path.write_bytes(data)
    return len(data)


if __name__ == "__main__":
    with Limited(NAME) as server, tempfile.TemporaryDirectory() as name:
        for key in sys.argv[1:] or CASES:
            folder = Path(name, key)
            (folder / "out").mkdir(parents=True)
            size = write(CASES[key], folder / "model.onnx")
            for way in WAYS:
                report = server.run(
                    f"{NAME}:{way.__name__}",
                    str(folder / "model.onnx"),
                    str(folder / "out"),
                    folder=folder / "out",
                )
                bad = report["outcome"] not in CLEAN | {"done"}
                bad |= report["megabytes"] > 64 + size / 1e5 or bool(
                    report.get("watched")
                )
                bad |= report["seconds"] > 2 + size / 1e6
                print(
                    f"{'!!' if bad else '  '} {key} {way.__name__} {size} B: "
                    f"{report['outcome']} {report['megabytes']:.0f} MB "
                    f"{report['seconds']:.1f} s {report['text'][:230]!r} "
                    f"{report.get('watched') or ''}",
                    flush=True,
                )
