"""PyTorch's attention comes back as the layer, with its parameters' names."""

from __future__ import annotations

import numpy as np
import pytest

from burnish import Tensor
from burnish.codegen.pipeline import generate
from tests.harness.imported import imported

torch = pytest.importorskip("torch")

from tests.harness.torch_exports import exported  # noqa: E402

pytestmark = pytest.mark.oracle

BOTH = {0: "batch", 1: "time"}
MEMORY = {0: "batch", 1: "length"}


class Alone(torch.nn.Module):
    """Queries, keys and values of one tensor."""

    def __init__(self, **options):
        super().__init__()
        self.attention = torch.nn.MultiheadAttention(12, 3, **options)

    def forward(self, x):
        return self.attention(x, x, x, need_weights=False)[0]


class Padded(torch.nn.Module):
    """A mask of keys, and the weights too."""

    def __init__(self):
        super().__init__()
        self.attention = torch.nn.MultiheadAttention(12, 3, batch_first=True)

    def forward(self, x, padding):
        return self.attention(x, x, x, key_padding_mask=padding)


class Crossed(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = torch.nn.MultiheadAttention(12, 3, batch_first=True)

    def forward(self, x, memory):
        return x + self.attention(x, memory, memory, need_weights=False)[0]


class OtherWidths(torch.nn.Module):
    """Keys and values of a width of their own, and the weights too."""

    def __init__(self):
        super().__init__()
        self.attention = torch.nn.MultiheadAttention(
            12, 3, kdim=7, vdim=7, batch_first=True
        )

    def forward(self, x, memory):
        return self.attention(x, memory, memory)


class Encoder(torch.nn.Module):
    def __init__(self, **options):
        super().__init__()
        layer = torch.nn.TransformerEncoderLayer(
            12, 3, 24, batch_first=True, norm_first=True, activation="gelu", **options
        )
        self.encoder = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, x, padding=None):
        return self.encoder(x, src_key_padding_mask=padding)


class Causal(Encoder):
    def forward(self, x):
        mask = torch.nn.Transformer.generate_square_subsequent_mask(5)
        return self.encoder(x, mask=mask, is_causal=True)


class Unscaled(torch.nn.Module):
    """Named as PyTorch's is, but the scores are not scaled: another module."""

    def __init__(self):
        super().__init__()
        self.in_proj_weight = torch.nn.Parameter(torch.randn(36, 12))
        self.in_proj_bias = torch.nn.Parameter(torch.randn(36))
        self.out_proj = torch.nn.Linear(12, 12)

    def forward(self, x):
        made = torch.nn.functional.linear(x, self.in_proj_weight, self.in_proj_bias)
        q, k, v = made.chunk(3, -1)
        return self.out_proj(torch.softmax(q @ k.transpose(1, 2), -1) @ v)


def words(seed, length=5):
    torch.manual_seed(seed)
    return torch.randn(4, length, 12)


LAYER = "nn.MultiheadAttention("
CASES = {
    "alone": (Alone, {"batch_first": True}, [words(0)], LAYER),
    "zeros behind it": (Alone, {"batch_first": True}, [words(0)], LAYER),
    "time first": (Alone, {}, [words(0)], f"{LAYER}12, 3)"),
    "no biases": (
        Alone,
        {"batch_first": True, "bias": False},
        [words(0)],
        "bias=False",
    ),
    "padding and weights": (
        Padded,
        {},
        [words(0), torch.arange(5) > torch.tensor([[4], [2], [3], [1]])],
        "key_padding_mask=",
    ),
    "of a memory": (Crossed, {}, [words(0), words(1, 6)], "(x, memory, memory, "),
    "of a memory of another width": (
        OtherWidths,
        {},
        [words(0), torch.randn(4, 6, 7)],
        "(12, 3, kdim=7, vdim=7, batch_first=True)",
    ),
    "encoder": (Encoder, {}, [words(0)], LAYER),
    "encoder with padding": (
        Encoder,
        {},
        [words(0), torch.arange(5) > torch.tensor([[4], [2], [3], [1]])],
        "_mask=",
    ),
    "causal encoder": (Causal, {}, [words(0)], "is_causal=True"),
    "another attention": (Unscaled, {}, [words(0)], None),
}


@pytest.mark.parametrize("dynamo", [True, False])
@pytest.mark.parametrize("name", CASES)
def test_attention(tmp_path, name, dynamo):
    kind, options, inputs, line = CASES[name]
    torch.manual_seed(0)
    model = kind(**options).eval()
    for parameter in model.parameters():  # no two alike, which exporters merge
        torch.nn.init.normal_(parameter)
    if name == "zeros behind it":  # which exporters drop
        torch.nn.init.zeros_(model.attention.out_proj.bias)
    path = tmp_path / "model.onnx"
    crossed = kind in (Crossed, OtherWidths)
    axes = [BOTH, MEMORY if crossed else BOTH][: len(inputs)]
    exported(model, inputs, path, dynamo, axes)
    made = generate(path)
    if line is None:
        assert LAYER not in made.text
    else:
        assert line in made.text
        shapes = {key: tuple(held.shape) for key, held in model.state_dict().items()}
        assert {e.path: tuple(e.weight.shape) for e in made.weights} == shapes
    ours = imported(made, tmp_path)(*(Tensor(x.numpy()) for x in inputs))
    theirs = model(*inputs)
    if not isinstance(theirs, tuple):
        ours, theirs = (ours,), (theirs,)
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(
            one.numpy(), other.detach().numpy(), rtol=2e-4, atol=2e-4
        )
