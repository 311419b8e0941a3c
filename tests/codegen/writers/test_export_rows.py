"""Every operator and every layer of the runtime's tables, exported and run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from burnish import Tensor, nn, ops
from burnish.codegen import export
from burnish.codegen.errors import ExportError
from burnish.codegen.pipeline import generate
from burnish.codegen.writers.traced.table import find
from burnish.errors import CaptureError
from burnish.lowbit import QuantScheme
from burnish.nn.lowbit.input_quantizer import InputQuantizer
from burnish.operator import registry
from tests.codegen.writers.rows import (
    Call,
    check,
    check_layer,
    check_operator,
    layer_rows,
    operator_rows,
)
from tests.harness.exported import ran
from tests.harness.reference import judged

pytestmark = [
    pytest.mark.oracle,
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
]
pytest.importorskip("onnxruntime")
pytest.importorskip("torch")

LINALG = "ONNX has no factorisation and no solver"
TRAINING = "it is a gradient's, and exports are for inference"
LOSS = "ONNX has no such loss"
CHECK = "it checks, and ONNX has no errors"
INSIDE = "functions made of it are written as a whole"
WITHOUT = {
    "adaptive_max_pool_with_indices": "ONNX's pooling has fixed windows",
    "attended_heads": TRAINING,
    "block_sums": INSIDE,
    "channel_norm": INSIDE,
    "check_covered": CHECK,
    "clipped_log": LOSS,
    "conv_input_gradient": TRAINING,
    "conv_weight_gradient": TRAINING,
    "ctc_paths": LOSS,
    "ctc_shares": LOSS,
    "cum_max_places": "ONNX has no running index of the greatest",
    "cum_min_places": "ONNX has no running index of the least",
    "dequantize_blocks": INSIDE,
    "dropped": TRAINING,
    "dynamic_time_warping": "the path is as long as its costs decide",
    "elementwise_cross_entropy": LOSS,
    "fake_quantize_slopes": TRAINING,
    "fold_repeated": TRAINING,
    "gated": TRAINING,
    "gelu_gradient": TRAINING,
    "gru_sequence": INSIDE,
    "hard_swish_gradient": TRAINING,
    "inverse": LINALG,
    "lstm_sequence": INSIDE,
    "lu_factor": LINALG,
    "murmur_hash3": "ONNX has no hash of strings",
    "pairwise_coupling": "it is solved step by step until it converges",
    "permutation_matrix": LINALG,
    "quantize_blocks": INSIDE,
    "resample_adjoint": TRAINING,
    "rnn_sequence": INSIDE,
    "softmax_cross_entropy": INSIDE,
    "solve": LINALG,
    "sum_runs": TRAINING,
    "swish_gradient": TRAINING,
    "tall_qr": LINALG,
    "tokenize": "ONNX splits strings at one delimiter alone",
    "transducer_paths": LOSS,
    "transducer_shares": LOSS,
    "unique_places": INSIDE,
    "window_spread": TRAINING,
}
"""Operators that have no way back, with why; the error names each."""
IN_PARTS = (
    "several arrays that are not the first ones",
    "half a spectrum",
    "one place along an axis",
    "a table that is computed",
    "bags of different lengths",
    "LSTM with proj_size",
    "scales of blocks",
    "numbers of q",
)
"""Options of operators and layers that export refuses."""
BY_VALUE = {"slice", "one_hot"}
"""Whose sizes or places are values that the row gives as tensors."""
NOT_RUN = {
    "test_conv-16-conv_transpose": "it refuses the output padding",
    "test_image-4-resize_image": "it takes regions of all axes only",
    "test_image-9-grid_sample": "it has no cubic sampling of volumes",
    "test_linear-18-einsum": "it broadcasts no ellipsis",
    "test_linear-19-einsum": "it broadcasts no ellipsis",
    "test_quantize-1-dequantize_linear": "it takes no scale of one element along one",
    "test_text-11-regex_full_match": "its regular expressions are RE2's",
    "test_text-12-string_normalizer": "it asks for a locale of the system",
    "LSTM(3, 4, 2, bidirectional=True)": "it refuses an empty batch",
    "GRU(3, 4, batch_first=True)": "it refuses an empty batch",
    "test_reduce-90-cum_prod": "it refuses a Scan of no elements",
    "test_scan-3-cum_max": "it refuses a Scan of no elements",
    "test_index-48-slice": "its numbers are a list, which tensors are not",
}
"""Exports that onnxruntime ("it") does not run, with why."""
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
    assert {name.strip("_") for name in named} <= set(WITHOUT)


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


PUT = {
    "a number": 1,
    "slices": (slice(1, None), slice(None, None, 2)),
    "rows, some twice": np.array([2, 0, 2]),
    "pairs, some twice": (np.array([1, 1, 0]), np.array([3, 3, 0])),
    "from the end": (..., -1),
    "a new axis": (None, 0),
}


@pytest.mark.parametrize("index", PUT.values(), ids=PUT)
@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_values_put_at_places(index: Any, dtype: str) -> None:
    shape = np.zeros((3, 4))[index].shape
    x = np.arange(1, 1 + np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
    check(Call(lambda x: ops.put_at(x, index=index, shape=(3, 4)), [], 1), [Tensor(x)])


@pytest.mark.parametrize("shape", [(5,), (2, 5), (2, 3, 5)])
@pytest.mark.parametrize("replacement", [True, False])
def test_numbers_are_drawn_by_their_weights(
    shape: tuple[int, ...], replacement: bool
) -> None:
    count = 4000 if replacement else 3
    weights = np.zeros(shape, np.float32) + np.float32([0, 1, 2, 0, 5])
    module = Call(lambda x: ops.multinomial(x, count, replacement), [], 1)
    (found,) = ran(export(module, weights), weights)
    assert found.shape == (*shape[:-1], count)
    assert found.dtype == np.int64
    for row in found.reshape(-1, count):
        often = np.bincount(row, minlength=5)
        if replacement:
            np.testing.assert_allclose(
                often / count, [0, 0.125, 0.25, 0, 0.625], 0, 0.05
            )
        else:
            assert sorted(row) == [1, 2, 4]


@pytest.mark.parametrize("rounding", ["up", "down", "nearest"])
@pytest.mark.parametrize("saturate", [True, False])
def test_powers_of_two(rounding: str, saturate: bool) -> None:
    x = np.float32([1, 1.5, 3, 5.9, 2.0**-130, 3e38, np.inf, np.nan])

    def powers(x: Tensor) -> Tensor:
        return ops.power_of_two(x, rounding=rounding, saturate=saturate)

    made = export(Call(powers, [], 1), x)
    model = onnx.load_from_string(made.to_bytes())
    onnx.checker.check_model(model, full_check=True)
    assert model.opset_import[0].version == 24
    (found,) = judged(model, {model.graph.input[0].name: x})
    expected = powers(Tensor(x)).numpy()
    np.testing.assert_array_equal(found.astype("f4"), expected.astype("f4"))


@pytest.mark.parametrize("zero", [None, np.int8([[1, 2], [3, -4]])])
def test_scales_of_blocks(zero: Any) -> None:
    scale = Tensor(np.float32([[0.5, 2], [1, 4]]))
    shift = None if zero is None else Tensor(zero)

    def back(x: Tensor) -> Any:
        return ops.dequantize_linear(x, scale, shift, axis=1, block_size=2)

    def there(x: Tensor) -> Any:
        return ops.quantize_linear(x, scale, shift, axis=1, block_size=2)

    codes = np.arange(8, dtype=np.int8).reshape(2, 4)
    check(Call(back, [], 1), [Tensor(codes)])
    check(Call(there, [], 1), [Tensor(codes.astype(np.float32) * 1.7)])


ROUNDED = {
    "one scale": nn.FakeQuantize(),
    "scales along an axis": nn.FakeQuantize(4),
    "scales along the first axis": nn.FakeQuantize(3, axis=0),
    "a scale of each input": nn.FakeQuantize(dynamic=True),
    "16 bits": nn.FakeQuantize(value="q16f"),
    "16 bits along an axis": nn.FakeQuantize(4, value="q16f"),
    "4 bits": nn.FakeQuantize(value="q4f"),
    "4 bits along an axis": nn.FakeQuantize(4, value="q4f"),
    "4 bits without the least number": nn.FakeQuantize(value="q4s"),
    "small floats": nn.FakeQuantize(value="e4m3"),
    "small floats of 5 bits of exponent": nn.FakeQuantize(value="e5m2"),
    "symmetric": nn.Linear(4, 2),
    "symmetric, of each input": nn.Linear(4, 2),
    "affine, of each input": nn.Linear(4, 2),
}
for _name, _mode, _range in (
    ("symmetric", "symmetric", (-2.0, 2.5)),
    ("symmetric, of each input", "symmetric", None),
    ("affine, of each input", "affine", None),
):
    _scheme = QuantScheme("q8s" if _mode == "symmetric" else "q8f", _mode)
    ROUNDED[_name].on_input = InputQuantizer(
        _scheme,
        None
        if _range is None
        else _scheme.params(*(np.float32([end]) for end in _range)),
    )


@pytest.mark.parametrize("name", ROUNDED)
def test_what_layers_round(name: str) -> None:
    module, rng = ROUNDED[name], np.random.default_rng(0)
    for path, item in module.named_tensors():
        if path.endswith("scale"):
            item.assign(rng.uniform(0.01, 0.05, item.shape).astype("f4"))
        if path.endswith("zero_point"):
            item.assign(rng.integers(-7, 8, item.shape).astype(item.dtype))
    x = rng.normal(size=(3, 4)).astype(np.float32) * 3
    made = export(module, Tensor(x))
    np.testing.assert_allclose(ran(made, x)[0], module(Tensor(x)).numpy(), 1e-5, 1e-6)
    kinds = {node.op_type for node in onnx.load_from_string(made.to_bytes()).graph.node}
    assert "DequantizeLinear" in kinds
    assert ("DynamicQuantizeLinear" in kinds) is (
        name in ("a scale of each input", "affine, of each input")
    )


def test_peepholes_come_back_as_the_layer_s(tmp_path: Path) -> None:
    """Through ONNX, and through the weights alone."""
    layer = nn.LSTM(3, 4, num_layers=2, bidirectional=True, peepholes=True)
    net = nn.Sequential(layer)
    x = np.random.default_rng(0).normal(size=(5, 2, 3)).astype(np.float32)
    made = export(net, Tensor(x))
    np.testing.assert_allclose(ran(made, x)[0], net(Tensor(x))[0].numpy(), 1e-5, 1e-6)
    made.save(tmp_path / "net.onnx")
    net.save_file(tmp_path / "net.safetensors")
    for name in ("net.onnx", "net.safetensors"):
        text = generate(tmp_path / name).text
        assert "bidirectional=True" in text
        assert "peepholes=True" in text


def test_a_gru_that_resets_before_its_product_comes_back(tmp_path: Path) -> None:
    layer = nn.GRU(3, 4, num_layers=2, bidirectional=True, reset_after=False)
    x = np.random.default_rng(0).normal(size=(5, 2, 3)).astype(np.float32)
    made = export(nn.Sequential(layer), Tensor(x))
    np.testing.assert_allclose(ran(made, x)[0], layer(Tensor(x))[0].numpy(), 1e-5, 1e-6)
    made.save(tmp_path / "net.onnx")
    assert "reset_after=False" in generate(tmp_path / "net.onnx").text


def test_an_lstm_that_rounds_its_states_is_refused() -> None:
    layer = nn.LSTM(4, 3)
    layer.on_input = InputQuantizer(QuantScheme("q8f", "affine"))
    with pytest.raises(ExportError, match="an LSTM that rounds its states"):
        export(layer, Tensor(np.ones((2, 1, 4), np.float32)))


def test_every_operator_is_written_or_named() -> None:
    """Operators, and functions of `burnish.ops` that are made of them."""
    without = {
        name for name, each in registry.items()
        if each.__module__.startswith("burnish.ops") and find(each) is None
    }  # fmt: skip
    assert without | {"check_covered"} == set(WITHOUT)  # which is a step


TREES = {
    "roots": [0, ~2], "features": [0, 1], "thresholds": [0.5, 0.0], "yes": [1, ~2],
    "no": [~0, ~1], "targets": [[0, 1], [1, 3], [2, 0]],
    "weights": [[1, 2], [4, 0], [8, -1]],
}  # fmt: skip
FORESTS: dict[str, dict[str, Any]] = {
    "plain": {},
    "average": {"aggregate": "average"},
    "compared otherwise": {"modes": np.uint8([3, 1])},
    "equal": {"modes": np.uint8([4, 5]), "missing": np.array([False, True])},
    "with missing ones": {"missing": np.array([True, False])},
    "of sets": {
        "modes": np.uint8([6, 0]),
        "thresholds": np.float32([0, 0]),
        "members": np.float32([[0.0, 9.0, np.nan], [1.0, np.nan, np.nan]]),
    },
    "of an empty set": {
        "modes": np.uint8([6, 0]),
        "thresholds": np.float32([0, 0]),
        "members": np.full((1, 2), np.nan, np.float32),
    },
}


@pytest.mark.parametrize("changes", FORESTS.values(), ids=FORESTS)
def test_trees(changes: dict[str, Any]) -> None:
    real = ("thresholds", "weights")
    arrays: dict[str, Any] = {
        n: np.asarray(t, np.float32 if n in real else int) for n, t in TREES.items()
    }
    arrays |= {name: each for name, each in changes.items() if name != "aggregate"}
    tables = {name: Tensor(array) for name, array in arrays.items()}
    aggregate = changes.get("aggregate", "sum")

    def trees(x: Tensor) -> Any:
        return ops.tree_ensemble(x, **tables, outputs=3, aggregate=aggregate)

    x = np.float32([[0, -1], [0, 1], [9, 0], [1, 0], [np.nan, np.nan]])
    check(Call(trees, [], 1), [Tensor(x)])


@pytest.mark.parametrize("name", ["cum_max", "cum_min", "cum_prod"])
@pytest.mark.parametrize("axis", [0, -1])
def test_running_values_with_nan(name: str, axis: int) -> None:
    module = Call(lambda x: getattr(ops, name)(x, axis=axis), [], 1)
    made = export(module, np.ones((2, 3), np.float32))
    x = np.float32([[1, -2, 3], [np.nan, 5, -6]])
    np.testing.assert_array_equal(ran(made, x)[0], module(Tensor(x)))
