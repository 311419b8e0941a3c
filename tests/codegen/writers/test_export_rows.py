"""Every operator and every layer of the runtime's tables, exported and run."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from burnish import Tensor, ops
from burnish.codegen import export
from burnish.codegen.errors import ExportError
from burnish.errors import CaptureError
from tests.codegen.writers.rows import (
    Call,
    check,
    check_layer,
    check_operator,
    layer_rows,
    operator_rows,
)

pytestmark = [
    pytest.mark.oracle,
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
]
pytest.importorskip("onnxruntime")
pytest.importorskip("torch")

WITHOUT = {
    "adaptive_max_pool_with_indices", "bit_cast", "ctc_paths", "cum_max",
    "cum_max_places", "cum_min", "cum_min_places",
    "inverse", "lu_factor", "pairwise_coupling",
    "pairwise_votes", "permutation_matrix", "put_at", "running_product", "solve",
    "sum_runs", "tall_qr", "transducer_paths", "tree_ensemble",
    "window_spread", "check_covered",
}  # fmt: skip
"""What has no way back; the error names each."""
IN_PARTS = (
    "several arrays that are not the first ones",
    "half a spectrum",
    "one place along an axis",
    "bags of different lengths",
    "LSTM with proj_size",
)
"""What is refused of operators and layers that export otherwise."""
BY_VALUE = {"slice", "one_hot"}
"""Whose sizes or places are values that the row gives as tensors."""
NOT_RUN = {
    "test_conv-16-conv_transpose": "it refuses the output padding",
    "test_image-4-resize_image": "it takes regions of all axes only",
    "test_image-9-grid_sample": "it has no cubic sampling of volumes",
    "test_linear-18-einsum": "it broadcasts no ellipsis",
    "test_linear-19-einsum": "it broadcasts no ellipsis",
    "test_quantize-1-dequantize_linear": "it takes no scale of one element along one",
    "test_text-4-regex_full_match": "its regular expressions are RE2's",
    "test_text-5-string_normalizer": "it asks for a locale of the system",
    "LSTM(3, 4, 2, bidirectional=True)": "it refuses an empty batch",
    "GRU(3, 4, batch_first=True)": "it refuses an empty batch",
    "test_index-48-slice": "its numbers are a list, which tensors are not",
}
"""What onnxruntime ("it") does not run, with why."""
OF_SINGLE = re.compile(r"test_recurrent-\d+-(lstm|gru|rnn)")
"""In double precision, which onnxruntime's recurrent nodes have not."""


@pytest.mark.parametrize(
    "row", [pytest.param(row, id=name) for name, row in operator_rows()]
)
def test_operator(row: Any, request: pytest.FixtureRequest) -> None:
    name = request.node.callspec.id
    if name in NOT_RUN or OF_SINGLE.fullmatch(name):
        pytest.skip(NOT_RUN.get(name, "of double precision"))
    try:
        check_operator(row)
    except ExportError as error:
        _refused(error)
    except CaptureError:
        assert row.op.__name__ in BY_VALUE


@pytest.mark.parametrize("row", list(layer_rows()), ids=str)
def test_layer(row: Any) -> None:
    if str(row) in NOT_RUN:
        pytest.skip(NOT_RUN[str(row)])
    try:
        check_layer(row)
    except ExportError as error:
        _refused(error)


def _refused(error: ExportError) -> None:
    """Fails unless the error names only what has no way back."""
    text = str(error)
    if any(part in text for part in IN_PARTS):
        return
    named = set(re.findall(r"^  (\w+)", text, re.MULTILINE))
    assert named, text
    assert {name.strip("_") for name in named} <= WITHOUT


FORMS = {
    "a diagonal above": lambda x: ops.diag_embed(x, offset=1),
    "a diagonal below": lambda x: ops.diag_embed(x, offset=-2),
    "a diagonal of a wide matrix": lambda x: ops.diag_embed(x, 1, (4, 6)),
    "softmax of a number": lambda x: ops.softmax(x.sum()),
    "log_softmax of a number": lambda x: ops.log_softmax(x.sum()),
}


@pytest.mark.parametrize("function", FORMS.values(), ids=FORMS)
def test_forms_that_no_row_has(function: Any) -> None:
    check(Call(function, [], 1), [Tensor([[1.0, np.nan, -3.0], [4.0, 5.0, np.inf]])])


def test_scales_of_blocks_are_refused() -> None:
    scale = Tensor(np.ones((2, 2), np.float32))
    layer = Call(lambda x: ops.dequantize_linear(x, scale, axis=1, block_size=2), [], 1)
    with pytest.raises(ExportError, match="scales of blocks"):
        export(layer, Tensor(np.ones((2, 4), np.int8)))
