"""Queries whose keys are all masked, as onnxruntime has them: averages, or NaN."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from burnish import Tensor
from burnish.codegen.pipeline import generate
from tests.harness.imported import imported

torch = pytest.importorskip("torch")
onnxruntime = pytest.importorskip("onnxruntime")

from tests.harness.torch_exports import exported  # noqa: E402

pytestmark = pytest.mark.oracle

LEAST = torch.finfo(torch.float32).min
CLOSE = 2e-3
"""Scores of -1e4 and less are rounded to multiples of 0.001."""
LAYER = "nn.MultiheadAttention("


class Masked(torch.nn.Module):
    """Attention by hand whose weights have the names of PyTorch's layer."""

    def __init__(self, mask):
        super().__init__()
        self.mask = mask
        self.in_proj_weight = torch.nn.Parameter(torch.randn(36, 12) * 0.3)
        self.in_proj_bias = torch.nn.Parameter(torch.randn(36))
        self.out_proj = torch.nn.Linear(12, 12)

    def forward(self, x, padding):
        made = torch.nn.functional.linear(x, self.in_proj_weight, self.in_proj_bias)
        q, k, v = (
            part.reshape(x.shape[0], -1, 3, 4).transpose(1, 2)
            for part in made.chunk(3, -1)
        )
        scores = self.mask(q @ k.transpose(2, 3) / 2, padding[:, None, None])
        y = torch.softmax(scores, -1) @ v
        return self.out_proj(y.transpose(1, 2).reshape(x.shape[0], -1, 12))


class Model(torch.nn.Module):
    def __init__(self, mask):
        super().__init__()
        self.attention = Masked(mask)

    def forward(self, x, padding):
        return self.attention(x, padding)


def causal(scores):
    return torch.ones(scores.shape[-2:], dtype=torch.bool).tril()


MASKS = {
    "-inf chosen": (lambda s, p: s.masked_fill(p, -torch.inf), LAYER),
    "-inf added": (lambda s, p: s + torch.where(p, -torch.inf, 0.0), LAYER),
    "least chosen": (
        lambda s, p: s.masked_fill(p, LEAST),
        'padding.to("float32") * -3.4028235e38',
    ),
    "least times": (lambda s, p: s + p.float() * LEAST, LAYER),
    "-1e4 chosen": (lambda s, p: s.masked_fill(p, -1e4), "ops.softmax("),
    "-1e4 added": (lambda s, p: s + torch.where(p, -1e4, 0.0), LAYER),
    "-1e9 times": (lambda s, p: s + p.float() * -1e9, LAYER),
    "a cause and a sum": (
        lambda s, p: torch.where(causal(s), s + p.float() * LEAST, LEAST),
        "",
    ),
    "a sum behind a cause": (
        lambda s, p: torch.where(causal(s), s, -1e30) + p.float() * -1e30,
        "",
    ),
    "a cause and -inf": (
        lambda s, p: torch.where(causal(s), s + p.float() * -1e9, -torch.inf),
        "",
    ),
    "one table": (
        lambda s, p: s.masked_fill(~(causal(s) & ~p), LEAST),
        "",
    ),
    "negated twice": (lambda s, p: s.masked_fill(~(~p), -torch.inf), LAYER),
}
ROWS = {
    "none": lambda n, time: np.zeros((n, time), bool),
    "behind": lambda n, time: np.arange(time) > np.arange(n)[:, None],
    "before": lambda n, time: np.arange(time) < np.arange(n)[:, None],
    "some": lambda n, time: np.broadcast_to(
        (np.arange(n) % 2 == 0)[:, None], (n, time)
    ),
    "all": lambda n, time: np.ones((n, time), bool),
}


@pytest.mark.parametrize("dynamo", [True, False])
@pytest.mark.parametrize("name", MASKS)
def test_rows_that_are_masked_wholly(tmp_path, name, dynamo):
    mask, line = MASKS[name]
    torch.manual_seed(0)
    path = tmp_path / "model.onnx"
    given = torch.randn(4, 5, 12), torch.from_numpy(ROWS["behind"](4, 5))
    axes = [{0: "batch", 1: "time"}] * 2
    exported(Model(mask).eval(), given, path, dynamo, axes)
    made = generate(path)
    assert line in made.text
    assert "~~" not in made.text
    ours = imported(made, tmp_path)
    theirs = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    random = np.random.default_rng(0)
    for rows, (n, time) in product(ROWS, [(4, 5), (1, 1), (3, 7)]):
        x = random.standard_normal((n, time, 12)).astype(np.float32)
        padding = ROWS[rows](n, time)
        (want,) = theirs.run(None, {"x": x, "padding": padding})
        found = ours(Tensor(x), Tensor(padding)).numpy()
        found = np.where(np.isnan(want), np.nan, found)  # the layer gives 0 there
        np.testing.assert_allclose(found, want, 0, CLOSE, err_msg=f"{rows} {time}")
