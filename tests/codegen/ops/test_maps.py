"""Dictionaries as inputs: CastMap and DictVectorizer, against onnxruntime."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto as T

from burnish import ops
from burnish.codegen.backend import BurnishBackend
from burnish.codegen.pipeline import generate
from burnish.errors import InputError
from tests.conformance.small import on_map

WORDS = ["a", "b", "c"]
#: What onnxruntime's Python takes: dictionaries of floats. Results in its dtype.
LIKE_ONNXRUNTIME = {
    "words": ("DictVectorizer", {"b": 2.5, "a": 1.0, "z": 3.0}, WORDS),
    "numbers": ("DictVectorizer", {3: 1.5, 7: 2.0}, [3, 1, 7]),
    "dense": ("CastMap", {3: 1.5, 1: 2.0}, {}),
    "whole": ("CastMap", {3: 1.5, 1: 2.7}, {"cast_to": "TO_INT64"}),
    "texts": ("CastMap", {3: 1.5, 1: 2.0, 2: 1e-7}, {"cast_to": "TO_STRING"}),
    "sparse": ("CastMap", {3: 1.5, 1: 2.0}, {"map_form": "SPARSE", "max_map": 5}),
    "cut off": ("CastMap", {3: 1.5, 1: 2.0}, {"map_form": "SPARSE", "max_map": 2}),
    "sparse texts": (
        "CastMap",
        {3: 1.5, 1: 2.0},
        {"map_form": "SPARSE", "max_map": 5, "cast_to": "TO_STRING"},
    ),
}


def built(kind: str, given: dict[Any, Any], words: Any, value: int = T.FLOAT) -> Any:
    if kind == "DictVectorizer":
        whole = isinstance(words[0], int)
        words = {"int64_vocabulary" if whole else "string_vocabulary": words}
    key = T.STRING if isinstance(next(iter(given)), str) else T.INT64
    return on_map(kind, given, key=key, value=value, **words)[1].model


@pytest.mark.oracle("onnxruntime")
@pytest.mark.parametrize("name", LIKE_ONNXRUNTIME)
def test_like_onnxruntime(name: str) -> None:
    runtime = pytest.importorskip("onnxruntime")
    model, given = built(*LIKE_ONNXRUNTIME[name]), LIKE_ONNXRUNTIME[name][1]
    session = runtime.InferenceSession(model.SerializeToString())
    (expected,) = session.run(None, {"x": given})
    (y,) = BurnishBackend.run_model(model, [given])
    assert y.dtype == expected.dtype
    np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize(
    ("value", "given", "expected"),
    [
        (T.INT64, {"b": 2}, np.array([[0, 2, 0]])),
        (T.DOUBLE, {"b": 2.5, "d": 1.0}, np.array([[0, 2.5, 0]])),
        (T.STRING, {"c": "u"}, np.array([["", "", "u"]], object)),
    ],
    ids=["whole", "double", "texts"],
)
def test_a_vector_has_the_type_of_the_values(
    value: int, given: dict[str, Any], expected: np.ndarray
) -> None:
    model = built("DictVectorizer", given, WORDS, value)
    model.graph.output[0].ClearField("type")
    (y,) = BurnishBackend.run_model(model, [given])
    assert y.dtype == expected.dtype
    np.testing.assert_array_equal(y, expected)


def test_values_that_are_texts_are_read() -> None:
    model = built("CastMap", {3: "1.5", 1: "2"}, {}, T.STRING)
    (y,) = BurnishBackend.run_model(model, [{3: "1.5", 1: "2"}])
    np.testing.assert_array_equal(y, np.array([[2, 1.5]], np.float32))


def test_what_stands_behind_a_vector_knows_its_type(tmp_path) -> None:
    model = built("DictVectorizer", {"a": 1.0}, WORDS)
    model.graph.node.append(
        onnx.helper.make_node("Scaler", ["y0"], ["z"], domain="ai.onnx.ml", scale=[2.0])
    )
    model.graph.output[0].name = "z"
    onnx.save(model, tmp_path / "m.onnx")
    made = generate(tmp_path / "m.onnx")
    assert 'ops.dict_vectorizer(x, ["a", "b", "c"])' in made.text
    (y,) = BurnishBackend.run_model(model, [{"c": 3.0}])
    np.testing.assert_array_equal(y, np.array([[0, 0, 6]], np.float32))


@pytest.mark.parametrize("call", [ops.cast_map, ops.dict_vectorizer])
def test_anything_else_than_a_dictionary_is_refused(call: Any) -> None:
    arguments = ([1.0],) if call is ops.cast_map else ([1.0], WORDS)
    with pytest.raises(InputError, match=rf"{call.__name__}: expected a dictionary"):
        call(*arguments)
