"""Text through generated source: what onnxruntime gives; strings of the file."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

from burnish import Tensor
from burnish.errors import InputError
from tests.harness.imported import imported

WORDS = ["the", "cat", "sat", "on", "mat", "a"]
POOL = ["cat", "mat", "the", ["the", "cat"], ["on", "the"], ["sat", "a", "mat"]]
FLAT = [word for gram in POOL for word in ([gram] if isinstance(gram, str) else gram)]


def vectorizer(**options: Any) -> onnx.ModelProto:
    node = onnx.helper.make_node(
        "TfIdfVectorizer",
        ["x"],
        ["y"],
        pool_strings=FLAT,
        ngram_counts=[0, 3, 7],
        ngram_indexes=list(range(6)),
        weights=[0.5, 1.0, 2.0, 3.0, 4.0, 5.0],
        **options,
    )
    text, real = onnx.TensorProto.STRING, onnx.TensorProto.FLOAT
    graph = onnx.helper.make_graph(
        [node],
        "g",
        [onnx.helper.make_tensor_value_info("x", text, ["rows", "words"])],
        [onnx.helper.make_tensor_value_info("y", real, ["rows", 6])],
    )
    opset = onnx.helper.make_opsetid("", 16)
    return onnx.helper.make_model(graph, opset_imports=[opset], ir_version=8)


@pytest.mark.oracle
@pytest.mark.parametrize("mode", ["TF", "IDF", "TFIDF"])
@pytest.mark.parametrize("lengths", [(1, 1), (1, 3), (2, 3)])
@pytest.mark.parametrize("skip", [0, 2])
def test_ngrams(mode: str, lengths: tuple[int, int], skip: int, tmp_path: Any) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    rng = np.random.default_rng(5)
    x = rng.choice(np.array(WORDS, object), (6, 30))
    model = vectorizer(
        mode=mode,
        min_gram_length=lengths[0],
        max_gram_length=lengths[1],
        max_skip_count=skip,
    )
    session = onnxruntime.InferenceSession(model.SerializeToString())
    (want,) = session.run(None, {"x": x})
    got = imported(model, tmp_path)(x)
    assert want.any()
    np.testing.assert_allclose(got.numpy(), want, 1e-6)


STRINGS = """
    <ir_version: 10, opset_import: ["" : 20]>
    g (string[rows] x) => (string[rows] y, bool[rows] same, int64[rows] parts)
    <string[1] greeting = {"Grüß "}> {
      joined = StringConcat(greeting, x)
      y = Identity(joined)
      twice = StringConcat(joined, joined)
      pieces, parts = StringSplit <delimiter = "ü"> (twice)
      same = RegexFullMatch <pattern = ".*Gott"> (joined)
    }
"""


def test_strings_of_the_file_and_of_the_caller(tmp_path: Any) -> None:
    model = imported(STRINGS, tmp_path)
    for given in (
        ["Gott", "dich"],
        np.array(["Gott", "dich"]),
        Tensor(["Gott", "dich"]),
    ):
        y, same, parts = model(given)
        assert y.tolist() == ["Grüß Gott", "Grüß dich"]
        assert same.tolist() == [True, False]
        assert parts.tolist() == [3, 3]
    with pytest.raises(InputError, match="x has dtype int64, expected object"):
        model(np.array([1, 2]))
