"""Every layer that the comparison with PyTorch has, captured."""

import numpy as np
import pytest

from burnish import nn
from tests.harness.operators import gpu_missing
from tests.runtime.capture.harness import changed, check

pytest.importorskip("torch")
from tests.runtime.nn import (
    test_activation_oracle,
    test_attention_oracle,
    test_layers_oracle,
    test_norm_oracle,
    test_recurrent_oracle,
    test_window_oracle,
)

pytestmark = pytest.mark.oracle
TABLES = [
    test_activation_oracle,
    test_attention_oracle,
    test_layers_oracle,
    test_norm_oracle,
    test_recurrent_oracle,
    test_window_oracle,
]
LAYERS = [row for table in TABLES for row in table.LAYERS]


PLACES = [
    "cpu",
    pytest.param(
        "cuda",
        marks=pytest.mark.skipif(gpu_missing() is not None, reason="there is no GPU"),
    ),
]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("row", LAYERS, ids=str)
def test_layer(row, place):
    made = getattr(nn, row.name)(*row.args, **row.options)
    arrays = row.arrays("float32")
    call = {
        k: v.astype("f4") if isinstance(v, np.ndarray) and v.dtype.kind == "f" else v
        for k, v in row.call.items()
    }
    check(made, arrays, [changed(a) for a in arrays], call, place=place)
