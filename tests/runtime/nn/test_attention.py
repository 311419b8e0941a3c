"""Attention on a plain machine: caches, positions, masks, contexts."""

import numpy as np
import pytest

from burnish import Tensor, nn
from burnish.errors import InputError

RNG = np.random.default_rng(0)


def close(got, want):
    np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-9, atol=1e-12)


def test_a_cache_gives_token_by_token_what_a_causal_mask_gives():
    attention = nn.MultiheadAttention(8, 2, batch_first=True, dtype="float64")
    x = Tensor(RNG.normal(size=(2, 5, 8)))
    want, _ = attention(x, x, x, is_causal=True)
    cache = nn.MhaCache()
    for start, stop in ((0, 2), (2, 3), (3, 5)):
        part = x[:, start:stop]
        got, _ = attention(part, part, part, is_causal=True, cache=cache)
        close(got, want[:, start:stop])
    assert len(cache) == 5
    cache.clear()
    assert len(cache) == 0


@pytest.mark.parametrize("norm_first", [False, True])
def test_an_encoder_and_its_cache(norm_first):
    layer = nn.TransformerEncoderLayer(
        8, 2, 16, batch_first=True, norm_first=norm_first, dtype="float64"
    )
    encoder = nn.TransformerEncoder(layer, 3, nn.LayerNorm(8, dtype="float64"))
    x = Tensor(RNG.normal(size=(2, 4, 8)))
    want, cache = encoder(x, is_causal=True), encoder.new_cache()
    for t in range(4):
        part = encoder(x[:, t : t + 1], is_causal=True, cache=cache)
        close(part, want[:, t : t + 1])


def test_a_decoder_and_its_cache_which_keeps_the_memory():
    layer = nn.TransformerDecoderLayer(8, 2, 16, batch_first=True, dtype="float64")
    decoder = nn.TransformerDecoder(layer, 2)
    x, memory = (Tensor(RNG.normal(size=(2, n, 8))) for n in (4, 3))
    want, cache = decoder(x, memory, tgt_is_causal=True), decoder.new_cache()
    for t in range(4):
        part = decoder(x[:, t : t + 1], memory, tgt_is_causal=True, cache=cache)
        close(part, want[:, t : t + 1])
    assert [len(each.memory) for each in cache] == [3, 3]
    assert isinstance(cache[0], nn.DecoderCache)


def test_a_tensor_that_grows():
    cache = nn.TensorCache(axis=1)
    with pytest.raises(InputError, match="expected something to remember"):
        cache.extend(None)
    x = RNG.normal(size=(2, 3))
    cache.extend(Tensor(x[:, :1]))
    close(cache.extend(Tensor(x[:, 1:])), Tensor(x))
    close(cache.extend(None), Tensor(x))
    cache.clear()
    assert len(cache) == 0


def test_copies_of_a_layer_train_apart():
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16), 2)
    one, two = (layer.linear1.weight for layer in encoder.layers)
    assert (one.numpy() == two.numpy()).all()
    one.assign(np.zeros(one.shape, np.float32))
    assert two.numpy().any()


def test_a_transformers_layers_are_drawn_apart():
    layers = nn.Transformer(8, 2, 2, 2, 16).encoder.layers
    assert (layers[0].linear1.weight.numpy() != layers[1].linear1.weight.numpy()).any()


@pytest.mark.parametrize("heads_kv", [1, 2, 4])
@pytest.mark.parametrize("quiet", [False, True])
def test_attention_to_a_context(heads_kv, quiet):
    layer = nn.CrossAttention(8, 6, 4, heads_kv, 3, 0.0, quiet, dtype="float64")
    query, context = RNG.normal(size=(2, 5, 8)), RNG.normal(size=(2, 7, 6))
    mask = np.arange(7) >= np.array([[4], [7]])
    got = layer(Tensor(query), Tensor(context), mask)

    def heads(part, x, count):
        y = x @ part.weight.numpy().T + part.bias.numpy()
        y = y.reshape(*x.shape[:2], count, 3).swapaxes(1, 2)
        return np.repeat(y, 4 // count, axis=1)

    q = heads(layer.query, query, 4)
    k, v = (heads(part, context, heads_kv) for part in (layer.key, layer.value))
    shares = np.exp(q @ k.swapaxes(2, 3) / 3**0.5) * ~mask[:, None, None]
    shares /= shares.sum(axis=-1, keepdims=True) + quiet
    want = (shares @ v).swapaxes(1, 2).reshape(2, 5, 12)
    want = want @ layer.output.weight.numpy().T + layer.output.bias.numpy()
    np.testing.assert_allclose(got.numpy(), want)
    cache = nn.MhaCache()
    layer(Tensor(query[:, :2]), Tensor(context), mask, cache)
    close(layer(Tensor(query[:, 2:]), None, mask, cache), got[:, 2:])


def test_a_context_is_needed():
    layer = nn.CrossAttention(8, 6, 4, 2, 3)
    with pytest.raises(InputError, match="expected a context, or a cache with one"):
        layer(Tensor(np.zeros((1, 2, 8), np.float32)))
    with pytest.raises(InputError, match="multiple of n_heads_kv=3, got 4"):
        nn.CrossAttention(8, 6, 4, 3, 3)


def test_places_are_added_as_sines():
    x = RNG.normal(size=(2, 5, 6))
    place, pair = np.arange(5)[:, None], np.arange(6) // 2
    angle = place / 10000 ** (2 * pair / 6)
    want = x + np.where(np.arange(6) % 2, np.cos(angle), np.sin(angle))
    encoding = nn.PositionalEncoding(6)
    np.testing.assert_allclose(encoding(Tensor(x)).numpy(), want)
    close(encoding(Tensor(x[:, 3:]), start=3), Tensor(want[:, 3:]))


def test_a_rotation_by_complex_numbers():
    x = RNG.normal(size=(2, 3, 5, 6))
    angle = np.arange(5)[:, None] * 100.0 ** (-np.arange(3) / 3)
    turned = (x[..., ::2] + 1j * x[..., 1::2]) * np.exp(1j * angle)
    want = np.stack([turned.real, turned.imag], -1).reshape(x.shape)
    rotary = nn.RotaryEncoding(6, theta=100.0)
    np.testing.assert_allclose(rotary(Tensor(x)).numpy(), want)
    close(rotary(Tensor(x[:, :, 2:]), start=2), Tensor(want[:, :, 2:]))
    order = [0, 2, 4, 1, 3, 5]
    halves = nn.RotaryEncoding(6, theta=100.0, interleaved=False)
    close(halves(Tensor(x[..., order])), Tensor(want[..., order]))
    slower = nn.RotaryEncoding(6, theta=100.0, scaling=lambda f: f / 2)
    twice = np.repeat(x, 2, axis=2)[:, :, :9]
    close(slower(Tensor(twice))[:, :, ::2], Tensor(want))


@pytest.mark.parametrize("layer", [nn.PositionalEncoding, nn.RotaryEncoding])
def test_a_width_that_does_not_fit_is_refused(layer):
    with pytest.raises(InputError, match="expected an even d_model, got 5"):
        layer(5)
    with pytest.raises(InputError, match=r"expected x \(..., T, 4\), got shape"):
        layer(4)(Tensor(np.zeros((2, 3))))


@pytest.mark.parametrize(
    ("shapes", "masks", "report"),
    [
        (((3, 2, 8), (4, 2, 8), (3, 2, 8)), {}, r"\(S, N, 8\), got .*\(4, 2, 8\)"),
        (((3, 2, 8), (4, 3, 8), (4, 3, 8)), {}, r"got \(3, 2, 8\), \(4, 3, 8\)"),
        (((3, 8), (4, 1, 8), (4, 1, 8)), {}, r"\(T, 8\), \(S, 8\), \(S, 8\), got"),
        (
            ((3, 2, 8), (4, 2, 8), (4, 2, 8)),
            {"attn_mask": (4, 3)},
            r"attn_mask \(3, 4\) or \(4, 3, 4\), got \(4, 3\)",
        ),
        (
            ((3, 2, 8), (4, 2, 8), (4, 2, 8)),
            {"key_padding_mask": (4, 2)},
            r"key_padding_mask \(2, 4\), got \(4, 2\)",
        ),
    ],
)
def test_inputs_and_masks_that_do_not_go_together(shapes, masks, report):
    inputs = (Tensor(np.ones(shape, "float32")) for shape in shapes)
    masks = {name: np.zeros(shape, bool) for name, shape in masks.items()}
    with pytest.raises(InputError, match="MultiheadAttention: expected .*" + report):
        nn.MultiheadAttention(8, 2)(*inputs, **masks)


def test_token_lists_are_padded():
    tokens, mask = nn.generate_padding_mask(0, [[3, 4], [5], [6, 7, 8]])
    assert tokens.tolist() == [[3, 4, 0], [5, 0, 0], [6, 7, 8]]
    assert mask.tolist() == [[False, False, True], [False, True, True], [False] * 3]
    assert nn.generate_padding_mask(0, [[3, 4], [5]], max_length=1)[0].shape == (2, 1)
    assert nn.generate_padding_mask(0, [[3, 4], [5]], max_length=9)[0].shape == (2, 2)
    assert nn.generate_padding_mask(0, [[3, 4], [5]], length=4)[0].shape == (2, 4)
    assert nn.generate_padding_mask(0, [])[0].shape == (0, 0)
