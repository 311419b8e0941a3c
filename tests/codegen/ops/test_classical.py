"""ai.onnx.ml through generated source: the numbers and labels of onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.harness.imported import imported

onnxruntime = pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.oracle

RNG = np.random.default_rng(11)
ROWS = RNG.normal(size=(7, 4)).astype(np.float32)
WORDS = np.array([["a", "b"], ["zz", "a"]], object)
FLOAT, INT, TEXT = (
    onnx.TensorProto.FLOAT,
    onnx.TensorProto.INT64,
    onnx.TensorProto.STRING,
)
POST = ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO")


def model(
    op: str, x: np.ndarray, outputs: tuple[int, ...], attributes: dict[str, Any]
) -> onnx.ModelProto:
    """One operator of ai.onnx.ml."""
    names = [f"y{i}" for i in range(len(outputs))]
    node = helper.make_node(op, ["x"], names, domain="ai.onnx.ml", **attributes)
    kind = TEXT if x.dtype == object else helper.np_dtype_to_tensor_dtype(x.dtype)
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", kind, x.shape)],
        [
            helper.make_tensor_value_info(n, k, None)
            for n, k in zip(names, outputs, strict=True)
        ],
    )
    opsets = [helper.make_opsetid("", 16), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def both(
    op: str, x: np.ndarray, outputs: tuple[int, ...], folder: Any, **attributes: Any
) -> Any:
    """The outputs of onnxruntime, and those of the generated module."""
    made = model(op, x, outputs, attributes)
    session = onnxruntime.InferenceSession(
        made.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    onnx.save(made, folder / "made.onnx")
    got = imported(folder / "made.onnx", folder)(x)
    got = got if isinstance(got, tuple) else (got,)
    return session.run(None, {"x": x}), [part.numpy() for part in got]


def check(
    op: str, x: np.ndarray, outputs: tuple[int, ...], folder: Any, **attributes: Any
) -> None:
    for want, got in zip(*both(op, x, outputs, folder, **attributes), strict=True):
        assert got.shape == want.shape
        assert got.dtype == want.dtype
        if want.dtype == object:
            assert got.tolist() == want.tolist()
        else:
            np.testing.assert_allclose(got, want, 1e-5, 1e-6)


def trees(
    count: int,
    outputs: int,
    votes: str,
    all_votes: bool,
    depth: int = 3,
    **options: Any,
) -> dict[str, Any]:
    """Random trees in the numbering of ai.onnx.ml 1 to 4; every mode, some nan."""
    rng = np.random.default_rng(count * 31 + outputs)
    found: dict[str, list[Any]] = {}

    def add(**values: Any) -> None:
        for name, value in values.items():
            found.setdefault(name, []).append(value)

    modes = options.get("modes", ["BRANCH_LEQ"])
    for tree in range(count):
        inner = 2 ** int(rng.integers(0, depth + 1)) - 1
        for node in range(2 * inner + 1):
            leaf = node >= inner
            add(
                nodes_treeids=tree,
                nodes_nodeids=node,
                nodes_featureids=0 if leaf else int(rng.integers(0, 4)),
                nodes_modes="LEAF" if leaf else str(rng.choice(modes)),
                nodes_values=0.0 if leaf else float(np.float32(rng.normal() / 2)),
                nodes_truenodeids=0 if leaf else 2 * node + 1,
                nodes_falsenodeids=0 if leaf else 2 * node + 2,
                nodes_missing_value_tracks_true=0 if leaf else int(rng.integers(0, 2)),
            )
            every = options.get("ids", range(outputs))
            chosen = every if all_votes else [int(rng.integers(0, outputs))]
            for target in chosen if leaf else ():
                weight = rng.normal() if options.get("mixed", True) else rng.random()
                add(
                    **{
                        f"{votes}_treeids": tree,
                        f"{votes}_nodeids": node,
                        f"{votes}_ids": target,
                        f"{votes}_weights": float(np.float32(weight / count)),
                    }
                )
    return found


ALL_MODES = [f"BRANCH_{m}" for m in ("LEQ", "LT", "GTE", "GT", "EQ", "NEQ")]
HOLES = np.where(RNG.random((30, 4)) < 0.2, np.nan, RNG.normal(size=(30, 4))).astype(
    "f4"
)


@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE", "MIN", "MAX"])
@pytest.mark.parametrize("all_votes", [True, False])
@pytest.mark.parametrize("modes", [ALL_MODES[:1], ALL_MODES], ids=["leq", "all"])
def test_tree_regressors(
    aggregate: str, all_votes: bool, modes: list[str], tmp_path: Any
) -> None:
    attributes = trees(9, 3, "target", all_votes, modes=modes)
    base = [0.5, -1.0, 2.0]
    options = {"n_targets": 3, "aggregate_function": aggregate, "base_values": base}
    check("TreeEnsembleRegressor", HOLES, (FLOAT,), tmp_path, **attributes, **options)


@pytest.mark.oracle("onnxruntime")
@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE", "MAX"])
def test_of_one_output_a_leaf_has_its_first_vote(
    outputs: int, aggregate: str, tmp_path: Any
) -> None:
    """skl2onnx's decision_path writes a leaf's number once for each class."""
    found = trees(3, outputs, "target", all_votes=True)
    for name in [name for name in found if name.startswith("target_")]:
        held = found[name]
        found[name] = [*held, *(2 * v if "weights" in name else v for v in held)]
    check(
        *("TreeEnsembleRegressor", HOLES, (1,), tmp_path),
        n_targets=outputs,
        aggregate_function=aggregate,
        **found,
    )


@pytest.mark.parametrize("post", POST)
@pytest.mark.parametrize(
    "labels",
    [{"classlabels_int64s": [5, 2, 9]}, {"classlabels_strings": ["u", "v", "w"]}],
    ids=["ints", "strings"],
)
def test_tree_classifiers(post: str, labels: dict[str, Any], tmp_path: Any) -> None:
    attributes = trees(7, 3, "class", True)
    outputs = (INT if "classlabels_int64s" in labels else TEXT, FLOAT)
    options = {"post_transform": post, **labels}
    check("TreeEnsembleClassifier", HOLES, outputs, tmp_path, **attributes, **options)


@pytest.mark.parametrize("post", POST)
@pytest.mark.parametrize("mixed", [True, False])
@pytest.mark.parametrize("base", [[], [0.3]], ids=["", "base"])
def test_two_classes_by_one_score(
    post: str, mixed: bool, base: list[float], tmp_path: Any
) -> None:
    attributes = trees(6, 1, "class", True, mixed=mixed)
    options = {"post_transform": post, "classlabels_int64s": [3, 8]}
    options |= {"base_values": base} if base else {}
    check(
        "TreeEnsembleClassifier", HOLES, (INT, FLOAT), tmp_path, **attributes, **options
    )


@pytest.mark.parametrize("post", POST)
@pytest.mark.parametrize("mixed", [True, False])
@pytest.mark.parametrize("base", [[], [0.3], [-0.4, 0.3]], ids=["", "base", "two"])
@pytest.mark.parametrize("ids", [[1], [0, 1]], ids=["second", "both"])
def test_votes_for_the_second_of_two_classes(
    post: str, mixed: bool, base: list[float], ids: list[int], tmp_path: Any
) -> None:
    """The second class's score decides; a single base value is the first's."""
    attributes = trees(6, 2, "class", True, mixed=mixed, ids=ids)
    options = {"post_transform": post, "classlabels_strings": ["u", "v"]}
    options |= {"base_values": base} if base else {}
    check(
        *("TreeEnsembleClassifier", HOLES, (TEXT, FLOAT), tmp_path),
        **attributes,
        **options,
    )


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("base", [[], [-0.4, 0.3]], ids=["", "base"])
def test_rows_without_votes_for_one_of_two_classes(
    base: list[float], count: int, tmp_path: Any
) -> None:
    attributes = trees(count, 2, "class", False)
    options = {"classlabels_strings": ["u", "v"]}
    options |= {"base_values": base} if base else {}
    check(
        *("TreeEnsembleClassifier", HOLES, (TEXT, FLOAT), tmp_path),
        **attributes,
        **options,
    )


def test_rows_without_votes_for_a_class_have_another_label(tmp_path: Any) -> None:
    attributes = trees(2, 3, "class", False)
    kind = {"classlabels_int64s": [5, 2, 9]}
    check("TreeEnsembleClassifier", HOLES, (INT, FLOAT), tmp_path, **attributes, **kind)


@pytest.mark.parametrize("post", [*POST, "PROBIT"])
@pytest.mark.parametrize("base", [[], [0.3]], ids=["", "base"])
def test_a_single_class(post: str, base: list[float], tmp_path: Any) -> None:
    attributes = trees(6, 1, "class", True, mixed=False)
    options = {"post_transform": post, "classlabels_int64s": [4]}
    options |= {"base_values": base} if base else {}
    check(
        "TreeEnsembleClassifier", HOLES, (INT, FLOAT), tmp_path, **attributes, **options
    )


@pytest.mark.parametrize("base", [[], [-9.0, 0.1, 0.2]], ids=["", "base"])
def test_a_class_without_votes_is_no_label(base: list[float], tmp_path: Any) -> None:
    """Without base values, that is: votes below 0 are still greater than none."""
    attributes = trees(6, 3, "class", True, ids=[0, 2])
    options = {"classlabels_int64s": [5, 2, 9]}
    options |= {"base_values": base} if base else {}
    check(
        "TreeEnsembleClassifier", HOLES, (INT, FLOAT), tmp_path, **attributes, **options
    )


@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE", "MIN", "MAX"])
def test_a_target_without_votes_is_zero(aggregate: str, tmp_path: Any) -> None:
    """Onnxmltools 1.16 writes such files of XGBoost's regressors of several targets."""
    attributes = trees(6, 3, "target", True, ids=[0, 2])
    options = {"n_targets": 3, "aggregate_function": aggregate}
    base = {"base_values": [0.3, -1.0, 0.2]}
    check(
        *("TreeEnsembleRegressor", HOLES, (FLOAT,), tmp_path),
        **attributes,
        **options,
        **base,
    )


@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE", "MIN", "MAX"])
def test_rows_without_votes_for_a_target_are_zero_there(
    aggregate: str, tmp_path: Any
) -> None:
    attributes = trees(2, 3, "target", False)
    options = {"n_targets": 3, "aggregate_function": aggregate}
    base = {"base_values": [0.3, -1.0, 0.2]}
    check(
        *("TreeEnsembleRegressor", HOLES, (FLOAT,), tmp_path),
        **attributes,
        **options,
        **base,
    )


@pytest.mark.parametrize("post", [*POST, "PROBIT"])
@pytest.mark.parametrize("targets", [1, 2])
def test_one_target_is_transformed_by_probit_alone(
    post: str, targets: int, tmp_path: Any
) -> None:
    attributes = trees(6, targets, "target", True, mixed=False)
    options = {"post_transform": post, "n_targets": targets}
    check("TreeEnsembleRegressor", HOLES, (FLOAT,), tmp_path, **attributes, **options)


@pytest.mark.parametrize("post", POST)
@pytest.mark.parametrize("classes", [1, 3])
def test_linear_classifiers(post: str, classes: int, tmp_path: Any) -> None:
    check(
        "LinearClassifier",
        ROWS,
        (INT, FLOAT),
        tmp_path,
        coefficients=RNG.normal(size=4 * classes).tolist(),
        intercepts=RNG.normal(size=classes).tolist(),
        classlabels_ints=[4, 2, 7][: max(classes, 2)],
        post_transform=post,
    )


@pytest.mark.parametrize("targets", [1, 2])
def test_linear_regressors(targets: int, tmp_path: Any) -> None:
    coefficients = RNG.normal(size=4 * targets).tolist()
    options = {"coefficients": coefficients, "targets": targets}
    check(
        "LinearRegressor",
        ROWS,
        (FLOAT,),
        tmp_path,
        **options,
        intercepts=[0.5] * targets,
    )


NAN = float("nan")
SMALL: list[tuple[str, np.ndarray, tuple[int, ...], dict[str, Any]]] = [
    ("Binarizer", ROWS, (FLOAT,), {"threshold": 0.2}),
    (
        "Scaler",
        ROWS,
        (FLOAT,),
        {"offset": [0.1, 0.2, 0.3, 0.4], "scale": [1.0, 2.0, 3.0, 4.0]},
    ),
    ("Scaler", ROWS, (FLOAT,), {"offset": [0.5], "scale": [3.0]}),
    ("Normalizer", ROWS, (FLOAT,), {"norm": "MAX"}),
    ("Normalizer", ROWS, (FLOAT,), {"norm": "L1"}),
    ("Normalizer", np.float32([[0, 0], [3, -4]]), (FLOAT,), {"norm": "L2"}),
    (
        "Imputer",
        HOLES,
        (FLOAT,),
        {"imputed_value_floats": [1.0, 2.0, 3.0, 4.0], "replaced_value_float": NAN},
    ),
    (
        "Imputer",
        np.int64([[1, -1], [-1, 5]]),
        (INT,),
        {"imputed_value_int64s": [7], "replaced_value_int64": -1},
    ),
    ("FeatureVectorizer", ROWS, (FLOAT,), {"inputdimensions": [4]}),
    (
        "OneHotEncoder",
        np.int64([[3, 1], [2, 9]]),
        (FLOAT,),
        {"cats_int64s": [1, 2, 3], "zeros": 1},
    ),
    ("OneHotEncoder", WORDS, (FLOAT,), {"cats_strings": ["a", "b"], "zeros": 1}),
    (
        "LabelEncoder",
        WORDS,
        (INT,),
        {"keys_strings": ["a", "b"], "values_int64s": [4, 5]},
    ),
    (
        "LabelEncoder",
        WORDS,
        (FLOAT,),
        {"keys_strings": ["a"], "values_floats": [0.5], "default_float": 9.0},
    ),
    (
        "LabelEncoder",
        np.int64([3, 1, 8]),
        (TEXT,),
        {"keys_int64s": [1, 3], "values_strings": ["x", "y"]},
    ),
    (
        "LabelEncoder",
        np.float32([0.5, -1, 2]),
        (INT,),
        {"keys_floats": [2.0, 0.5], "values_int64s": [6, 7]},
    ),
    (
        "LabelEncoder",
        np.int64([3, 1, 8]),
        (FLOAT,),
        {"keys_int64s": [1, 3], "values_floats": [1.5, 2.5]},
    ),
    (
        "CategoryMapper",
        WORDS,
        (INT,),
        {"cats_strings": ["a", "b"], "cats_int64s": [7, 8]},
    ),
    (
        "CategoryMapper",
        np.int64([7, 1]),
        (TEXT,),
        {"cats_strings": ["a", "b"], "cats_int64s": [7, 8]},
    ),
]


@pytest.mark.parametrize("row", SMALL, ids=lambda row: row[0])
def test_scalers_and_encoders(row: Any, tmp_path: Any) -> None:
    op, x, outputs, attributes = row
    check(op, x, outputs, tmp_path, **attributes)


@pytest.mark.parametrize("dtype", ["int64", "int32", "float64"])
def test_other_numbers(dtype: str, tmp_path: Any) -> None:
    x = np.rint(ROWS * 3).astype(dtype)
    attributes = trees(5, 3, "class", True)
    kind = {"classlabels_int64s": [4, 5, 6]}
    check("TreeEnsembleClassifier", x, (INT, FLOAT), tmp_path, **attributes, **kind)
    check("Scaler", x, (FLOAT,), tmp_path, offset=[0.5], scale=[2.0])


def test_trees_in_double_precision(tmp_path: Any) -> None:
    attributes = trees(5, 2, "target", False)
    for name in ("nodes_values", "target_weights"):
        array = np.asarray(attributes.pop(name)) + 1e-9
        attributes[f"{name}_as_tensor"] = onnx.numpy_helper.from_array(array, name)
    x = ROWS.astype(np.float64)
    check("TreeEnsembleRegressor", x, (FLOAT,), tmp_path, **attributes, n_targets=2)


def test_rows_become_dictionaries(tmp_path: Any) -> None:
    """As scikit-learn's classifiers are exported: scaled, classified, named."""
    ml = {"domain": "ai.onnx.ml"}
    weights = {
        "coefficients": RNG.normal(size=12).tolist(),
        "intercepts": [0.1, 0, -0.1],
    }
    names = {"classlabels_strings": ["ash", "oak", "yew"]}
    pairs = helper.make_map_type_proto(TEXT, helper.make_tensor_type_proto(FLOAT, []))
    graph = helper.make_graph(
        [
            helper.make_node("Scaler", ["x"], ["z"], scale=[2.0], offset=[0.1], **ml),
            helper.make_node(
                "LinearClassifier",
                ["z"],
                ["label", "p"],
                post_transform="SOFTMAX",
                **ml,
                **weights,
                **names,
            ),
            helper.make_node("Normalizer", ["p"], ["q"], norm="L1", **ml),
            helper.make_node("ZipMap", ["q"], ["trees"], **ml, **names),
        ],
        "g",
        [helper.make_tensor_value_info("x", FLOAT, ["rows", 4])],
        [
            helper.make_tensor_value_info("label", TEXT, ["rows"]),
            helper.make_value_info("trees", helper.make_sequence_type_proto(pairs)),
        ],
    )
    opsets = [helper.make_opsetid("", 16), helper.make_opsetid("ai.onnx.ml", 3)]
    made = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    onnx.save(made, tmp_path / "made.onnx")
    session = onnxruntime.InferenceSession(made.SerializeToString())
    labels, rows = session.run(None, {"x": ROWS})
    got_labels, got_rows = imported(tmp_path / "made.onnx", tmp_path)(ROWS)
    assert got_labels.tolist() == labels.tolist()
    for row, got in zip(rows, got_rows, strict=True):
        assert got == pytest.approx(row)
