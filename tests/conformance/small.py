"""A small model for each rule that no node case of ONNX reaches, by its operator."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import helper, numpy_helper

RANDOM = np.random.default_rng(0)
ML = "ai.onnx.ml"


class Small(NamedTuple):
    """A model and what it is called with."""

    model: onnx.ModelProto
    inputs: list[Any]


def x(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(np.float32)


def small(
    operator: str,
    *inputs: np.ndarray,
    weights: tuple[np.ndarray, ...] = (),
    outputs: int = 1,
    **attributes: Any,
) -> tuple[str, Small]:
    """One node on inputs, then on weights, which the model holds."""
    domain, kind = operator.rsplit(".", 1)
    held = [numpy_helper.from_array(w, f"w{i}") for i, w in enumerate(weights)]
    given = [_declared(f"x{i}", array) for i, array in enumerate(inputs)]
    names = [item.name for item in (*given, *held)]
    made = [f"y{i}" for i in range(outputs)]
    node = helper.make_node(kind, names, made, domain=domain, **attributes)
    return operator, Small(_model([node], given, made, held), list(inputs))


def on_sequence(kind: str, *inputs: np.ndarray, **attributes: Any) -> tuple[str, Small]:
    """One node on the sequence of the inputs; its first element, where it gives one."""
    given = [_declared(f"x{i}", array) for i, array in enumerate(inputs)]
    names = [item.name for item in given]
    nodes = [
        helper.make_node("SequenceConstruct", names, ["parts"]),
        helper.make_node(kind, ["parts"], ["y0"], **attributes),
    ]
    if kind == "SequenceErase":
        first = numpy_helper.from_array(np.array(0))
        nodes.append(helper.make_node("Constant", [], ["first"], value=first))
        nodes.append(helper.make_node("SequenceAt", ["y0", "first"], ["y1"]))
    last = nodes[-1].output[0]
    return f".{kind}", Small(_model(nodes, given, [last], []), list(inputs))


def on_map(
    kind: str, x: dict[Any, Any], *, key: int, value: int, **attributes: Any
) -> tuple[str, Small]:
    """One node of ai.onnx.ml on a dictionary of these types."""
    node = helper.make_node(kind, ["x"], ["y0"], domain=ML, **attributes)
    given = onnx.ValueInfoProto(name="x")
    of_values = helper.make_tensor_type_proto(value, None)
    given.type.CopyFrom(helper.make_map_type_proto(key, of_values))
    return f"{ML}.{kind}", Small(_model([node], [given], ["y0"], []), [x])


def _declared(name: str, array: np.ndarray) -> onnx.ValueInfoProto:
    dtype = helper.np_dtype_to_tensor_dtype(array.dtype)
    return helper.make_tensor_value_info(name, dtype, array.shape)


def _model(
    nodes: list[onnx.NodeProto],
    given: list[onnx.ValueInfoProto],
    outputs: list[str],
    held: list[onnx.TensorProto],
) -> onnx.ModelProto:
    results = [onnx.ValueInfoProto(name=name) for name in outputs]
    graph = helper.make_graph(nodes, "small", given, results, held)
    imports = [helper.make_opsetid(*d) for d in (("", 20), (ML, 3), ("burnish", 1))]
    return helper.make_model(graph, opset_imports=imports, ir_version=9)


def tree(votes: str) -> dict[str, list[Any]]:
    """One tree with one branch, at feature 1, and a vote in each leaf."""
    return {
        "nodes_treeids": [0, 0, 0],
        "nodes_nodeids": [0, 1, 2],
        "nodes_featureids": [1, 0, 0],
        "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
        "nodes_values": [0.25, 0.0, 0.0],
        "nodes_truenodeids": [1, 0, 0],
        "nodes_falsenodeids": [2, 0, 0],
        f"{votes}_treeids": [0, 0],
        f"{votes}_nodeids": [1, 2],
        f"{votes}_ids": [0, 1],
        f"{votes}_weights": [0.75, 0.5],
    }


ROWS = x(5, 3)
CODES = np.array([[1], [3], [1]], np.int64)
LINE = {"coefficients": [0.5, -1.0, 2.0], "intercepts": [0.25]}
SUPPORT = {
    "kernel_type": "RBF",
    "kernel_params": [0.5, 0.0, 3.0],
    "support_vectors": [0.5, 1.0, -1.0, 2.0, 0.0, 0.5],
    "coefficients": [0.5, -0.75],
    "rho": [0.25],
}

SMALL: dict[str, Small] = dict(
    [
        small(".GlobalLpPool", x(2, 3, 4, 4), p=3),
        small(
            ".MaxRoiPool",
            x(1, 2, 6, 6),
            np.array([[0, 0, 0, 3, 3], [0, 1, 1, 5, 4]], np.float32),
            pooled_shape=[2, 2],
        ),
        small(".Multinomial", x(3, 4), sample_size=5),
        small(".RandomNormal", shape=[2, 3], mean=1.0),
        small(".RandomNormalLike", x(2, 3), scale=0.5),
        small(".RandomUniform", shape=[2, 3], low=-1.0),
        on_sequence("ConcatFromSequence", x(2, 3), x(2, 3), axis=1),
        on_sequence("SequenceErase", x(2, 3), x(2, 3)),
        small(
            f"{ML}.CategoryMapper",
            CODES,
            cats_int64s=[1, 3],
            cats_strings=["one", "three"],
        ),
        small(f"{ML}.FeatureVectorizer", ROWS, ROWS, inputdimensions=[3, 3]),
        small(
            f"{ML}.Imputer",
            np.array([[1, np.nan, 3]], np.float32),
            imputed_value_floats=[9.0],
            replaced_value_float=np.nan,
        ),
        small(
            f"{ML}.LinearClassifier", ROWS, outputs=2, classlabels_ints=[4, 7], **LINE
        ),
        small(f"{ML}.LinearRegressor", ROWS, **LINE),
        on_map(
            "CastMap",
            {3: 1.5, 1: 2.0},
            key=onnx.TensorProto.INT64,
            value=onnx.TensorProto.FLOAT,
        ),
        on_map(
            "DictVectorizer",
            {"b": 2.5, "z": 1.0},
            key=onnx.TensorProto.STRING,
            value=onnx.TensorProto.FLOAT,
            string_vocabulary=["a", "b"],
        ),
        small(f"{ML}.Normalizer", ROWS, norm="L2"),
        small(f"{ML}.OneHotEncoder", CODES, cats_int64s=[1, 2, 3]),
        small(
            f"{ML}.SVMClassifier",
            ROWS,
            outputs=2,
            classlabels_ints=[0, 1],
            vectors_per_class=[1, 1],
            **SUPPORT,
        ),
        small(f"{ML}.SVMRegressor", ROWS, n_supports=2, **SUPPORT),
        small(f"{ML}.Scaler", ROWS, offset=[1.0], scale=[0.5]),
        small(
            f"{ML}.TreeEnsembleClassifier",
            ROWS,
            outputs=2,
            classlabels_int64s=[3, 5],
            **tree("class"),
        ),
        small(f"{ML}.TreeEnsembleRegressor", ROWS, n_targets=2, **tree("target")),
        small(f"{ML}.ZipMap", np.abs(x(2, 3)), classlabels_int64s=[2, 4, 6]),
        small("burnish.AdaptiveAveragePool", x(2, 3, 7, 5), output_size=[3, 2]),
        small("burnish.Attention", x(2, 4, 3, 8), x(2, 4, 5, 8), x(2, 4, 5, 6)),
        small("burnish.ChannelShuffle", x(2, 6, 4, 4), groups=3),
        small("burnish.CosineSimilarity", x(4, 5), x(4, 5), axis=1, epsilon=1e-8),
        small("burnish.FakeQuantize", x(3, 4), weights=(np.float32(0.05), np.int8(3))),
        small("burnish.FloorDiv", np.array([-7, 7, -6]), np.array([2, -2, 3])),
        small("burnish.GLU", x(3, 8), axis=1),
        small("burnish.Index", x(4, 5, 6), np.array([3, 0]), np.array([1, 2])),
        small("burnish.LayerNormalization", x(2, 3, 8), axis=-1, epsilon=1e-3),
        small("burnish.Linear", x(2, 3), weights=(x(5, 3), x(5)), transB=1),
        small(
            "burnish.LocalResponseNorm",
            x(2, 6, 4, 4),
            size=3,
            alpha=1e-2,
            beta=0.5,
            k=2.0,
        ),
        small("burnish.LogSigmoid", x(3, 4)),
        small("burnish.Normalize", x(3, 4), axis=1, p=2, epsilon=1e-8),
        small("burnish.PixelUnshuffle", x(2, 3, 4, 4), blocksize=2),
        small(
            "burnish.Recurrent",
            x(4, 2, 3),
            weights=(x(1, 20, 3), x(1, 20, 5), x(1, 40)),
            outputs=3,
            kind="LSTM",
            nonlinearity="tanh",
        ),
        small(
            "burnish.RecurrentCell",
            x(2, 3),
            weights=(x(20, 3), x(5, 20), x(20), x(20)),
            outputs=2,
            kind="LSTM",
            bias=1,
            order=[0, 1, 3, 2],
            transposed=[0, 1],
        ),
        small("burnish.Roll", x(3, 4), shifts=[1], axes=[1]),
        small(
            "burnish.RotaryEmbedding", x(2, 4, 3, 8), x(3, 8), x(3, 8), interleaved=0
        ),
        small("burnish.Softplus", x(3, 4), beta=2.0),
        small(
            "burnish.StandardDeviation", x(3, 4), axes=[1], keepdims=1, correction=1.0
        ),
        small("burnish.Inverse", x(2, 3, 3)),
        small("burnish.DynamicTimeWarping", x(3, 4)),
        small("burnish.MurmurHash3", np.array(["red green", "a-b"], object)),
        small(
            "burnish.Tokenizer",
            np.array(["red green", "a-b"], object),
            mark=0,
            mincharnum=1,
            pad_value="",
            tokenexp="[a-z]+",
        ),
        small("burnish.Variance", x(3, 4), axes=[0], keepdims=0),
    ]
)
