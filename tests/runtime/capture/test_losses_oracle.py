"""Every loss that the comparison with PyTorch has, captured."""

import numpy as np
import pytest

from burnish import nn
from tests.runtime.capture.harness import changed, check

pytest.importorskip("torch")
from tests.runtime.nn.test_loss_oracle import (
    CTC,
    FRAMES,
    REDUCTIONS,
    ROWS,
    cast,
)

pytestmark = pytest.mark.oracle


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize(("name", "inputs", "options"), ROWS)
def test_loss(name, inputs, options, reduction):
    options = {"reduction": reduction} | options
    options = {k: cast(v, "float32") for k, v in options.items()}
    arrays = [cast(np.asarray(item), "float32") for item in inputs]
    made = getattr(nn, name)(**options)
    others = [changed(a) for a in arrays]
    others = [
        np.asarray(abs(new)) if old.min() >= 0 else new
        for old, new in zip(arrays, others, strict=True)
    ]
    check(made, arrays, others)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize(("targets", "labels", "options"), CTC)
def test_ctc(targets, labels, options, reduction):
    rng = np.random.default_rng(0)
    made = nn.CTCLoss(**options, reduction=reduction)
    x = rng.normal(size=(7, 4, 5)).astype("float32")
    others = [changed(x), targets[::-1].copy(), FRAMES[::-1].copy(), labels]
    check(made, [x, targets, FRAMES, labels], others)
