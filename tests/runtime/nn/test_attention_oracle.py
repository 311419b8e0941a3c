"""Attention and transformers against torch's of the same name."""

import numpy as np
import pytest

from burnish import Tensor, nn
from tests.runtime.nn.oracle import DTYPES, Row, compare, layer, ours_like, pair

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle
RNG = np.random.default_rng(0)
SMALL = {"dim_feedforward": 16, "dropout": 0.0}
CAUSAL = np.triu(np.ones((4, 4), bool), 1)
PADDED = np.array([[False] * 3 + [True], [False] * 4])
WIDTHS = [
    {},
    {"bias": False},
    {"kdim": 3, "vdim": 5},
    {"add_bias_kv": True},
    {"add_zero_attn": True},
    {"add_bias_kv": True, "add_zero_attn": True, "kdim": 4, "vdim": 8},
]
LAYERS = [
    layer("TransformerEncoderLayer", (4, 2, 8), 8, 2, **SMALL),
    layer("TransformerEncoderLayer", (4, 2, 8), 8, 2, **SMALL).but(
        {"src_mask": CAUSAL, "src_key_padding_mask": PADDED}
    ),
    layer("TransformerEncoderLayer", (4, 8), 8, 2, bias=False, **SMALL),
    layer(
        "TransformerEncoderLayer",
        (2, 4, 8),
        8,
        4,
        activation="gelu",
        batch_first=True,
        norm_first=True,
        layer_norm_eps=1e-3,
        **SMALL,
    ).but({"src_mask": CAUSAL, "is_causal": True}),
    layer("TransformerDecoderLayer", [(4, 2, 8), (3, 2, 8)], 8, 2, **SMALL),
    layer("TransformerDecoderLayer", [(4, 8), (3, 8)], 8, 2, bias=False, **SMALL),
    layer(
        "TransformerDecoderLayer",
        [(2, 4, 8), (2, 4, 8)],
        8,
        2,
        activation="gelu",
        batch_first=True,
        norm_first=True,
        **SMALL,
    ).but(
        {
            "tgt_mask": CAUSAL,
            "memory_mask": CAUSAL.T,
            "tgt_key_padding_mask": PADDED[::-1].copy(),
            "memory_key_padding_mask": PADDED,
        }
    ),
    layer("Transformer", [(4, 2, 8), (3, 2, 8)], 8, 2, 2, 1, **SMALL),
    layer(
        "Transformer",
        [(2, 4, 8), (2, 4, 8)],
        8,
        2,
        1,
        2,
        batch_first=True,
        norm_first=True,
        activation="gelu",
        **SMALL,
    ).but({"src_mask": CAUSAL, "tgt_mask": CAUSAL, "tgt_is_causal": True}),
]


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("row", LAYERS, ids=lambda row: f"{row}{[*row.call]}")
def test_layer(row, dtype):
    row.check(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("norm", [False, True])
@pytest.mark.parametrize("kind", ["Encoder", "Decoder"])
def test_stack(kind, norm, dtype):
    torch.manual_seed(0)
    part = getattr(torch.nn, f"Transformer{kind}Layer")(8, 2, **SMALL)
    more = {"enable_nested_tensor": False} if kind == "Encoder" else {}
    stack = getattr(torch.nn, f"Transformer{kind}")
    theirs = stack(part, 2, torch.nn.LayerNorm(8) if norm else None, **more)
    theirs = theirs.to(getattr(torch, dtype))
    for value in theirs.state_dict().values():
        value += 0.1 * torch.rand_like(value)

    def make(dtype):
        part = getattr(nn, f"Transformer{kind}Layer")(8, 2, **SMALL, dtype=dtype)
        last = nn.LayerNorm(8, dtype=dtype) if norm else None
        return getattr(nn, f"Transformer{kind}")(part, 2, last)

    ours = ours_like(theirs, make, (), {}, dtype)
    arrays = [RNG.normal(size=(4, 2, 8)).astype(dtype) for _ in range(2)]
    arrays = arrays[: 1 + (kind == "Decoder")]
    got = ours(*map(Tensor, arrays))
    compare(got, theirs.eval()(*map(torch.tensor, arrays)), kind, dtype)


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("options", WIDTHS, ids=str)
def test_multihead_attention(options, batch_first):
    options = {"batch_first": batch_first} | options
    widths = (8, options.get("kdim", 8), options.get("vdim", 8))
    shapes = [(2, 4, 8), *((2, 5, width) for width in widths[1:])]
    if not batch_first:
        shapes = [(t, n, width) for n, t, width in shapes]
    masks = {
        "key_padding_mask": RNG.random((2, 5)) < 0.3,
        "attn_mask": RNG.random((4, 5)) < 0.3,
    }
    masks["key_padding_mask"][:, 0] = masks["attn_mask"][:, 0] = False
    row = Row("MultiheadAttention", shapes, (8, 2), options)
    row.check()
    row.but(masks).check()
    row.but({"attn_mask": RNG.normal(size=(4, 4, 5))}).check()
    row.but({"need_weights": False}).check()


def test_multihead_attention_of_no_example():
    Row("MultiheadAttention", [(4, 0, 8)] * 3, (8, 2), {}).check()


def test_multihead_attention_of_one_example():
    row = Row("MultiheadAttention", [(4, 8)] * 3, (8, 2), {})
    row.but({"average_attn_weights": False}).check()


def test_a_mask_that_is_causal():
    ours, theirs = pair("MultiheadAttention", (8, 2), {"batch_first": True})
    x = RNG.normal(size=(2, 4, 8))
    given = torch.tensor(x)
    got, _ = ours(*[Tensor(x)] * 3, is_causal=True)
    mask = nn.generate_autoregressive_mask(4)
    assert mask.tolist() == CAUSAL.tolist()
    want, _ = theirs(given, given, given, attn_mask=torch.tensor(mask.numpy()))
    compare(got, want, "output")
