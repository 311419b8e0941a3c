"""A GPU's step of one token: what its launches are, and that they are the model's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import burnish
from burnish import Tensor, nn, ops
from burnish.caches import Cache, places
from burnish.generation import generate
from burnish.lowbit import Level, QuantScheme
from burnish.plan.cuda.tokens.loop import TokenLoop
from tests.runtime.plan import token_kernels
from tests.runtime.test_decoding import Writer, rotated

DIM, HEADS, VOCAB = 64, 4, 48


class Turning(nn.Module):
    """A block as llama has it: norms of squares, turned queries and keys, gates."""

    def __init__(self, kv_heads: int):
        size = DIM // HEADS
        self.size = size
        self.q, self.out = (nn.Linear(DIM, DIM, bias=False) for _ in range(2))
        self.k, self.v = (nn.Linear(DIM, kv_heads * size, bias=False) for _ in range(2))
        self.gate, self.up = (nn.Linear(DIM, 96, bias=False) for _ in range(2))
        self.down = nn.Linear(96, DIM, bias=False)
        self.norm1, self.norm2 = nn.RMSNorm(DIM), nn.RMSNorm(DIM)

    def split(self, x: Any) -> Any:
        return x.reshape(*x.shape[:2], -1, self.size).transpose(0, 2, 1, 3)

    def forward(self, x: Any, turns: Any, mask: Any, cache: Any) -> Any:
        y = self.norm1(x)
        q, k, v = (self.split(part(y)) for part in (self.q, self.k, self.v))
        q, k = rotated(q, *turns), rotated(k, *turns)
        if cache is not None:
            k, v = cache.extend(self, k, v)
        y = ops.scaled_dot_product_attention(q, k, v, mask)
        x = x + self.out(y.transpose(0, 2, 1, 3).flatten(2))
        y = self.norm2(x)
        return x + self.down(ops.silu(self.gate(y)) * self.up(y))


class Plain(nn.Module):
    """A block as GPT-2 has it: weights (in, out), one for queries, keys and values."""

    def __init__(self) -> None:
        sizes = {"qkv": (DIM, 3 * DIM), "out": (DIM, DIM), "up": (DIM, 96)}
        for name, shape in {**sizes, "down": (96, DIM)}.items():
            setattr(self, name, nn.Param(nn.init.normal(0.1), shape))
            setattr(self, f"{name}_bias", nn.Param(nn.init.normal(0.1), shape[1:]))
        self.norm1, self.norm2 = nn.LayerNorm(DIM), nn.LayerNorm(DIM)

    def forward(self, x: Any, turns: Any, mask: Any, cache: Any) -> Any:
        y = self.norm1(x) @ self.qkv + self.qkv_bias
        q, k, v = (
            part.reshape(*x.shape[:2], HEADS, -1).transpose(0, 2, 1, 3)
            for part in y.chunk(3, axis=-1)
        )
        if cache is not None:
            k, v = cache.extend(self, k, v)
        y = (ops.attention_weights(q, k, mask) @ v).transpose(0, 2, 1, 3).flatten(2)
        x = x + (y @ self.out + self.out_bias)
        y = ops.gelu(self.norm2(x) @ self.up + self.up_bias, approximate="tanh")
        return x + (y @ self.down + self.down_bias)


class Model(nn.Module):
    def __init__(self, *blocks: nn.Module):
        self.tokens = nn.Embedding(VOCAB, DIM)
        self.blocks, self.norm = list(blocks), nn.LayerNorm(DIM)
        self.head = nn.Linear(DIM, VOCAB, bias=False)

    def forward(
        self,
        input_ids: Any,
        attention_mask: Any = None,
        position_ids: Any = None,
        cache: Any = None,
    ) -> Any:
        queries, keys = places(input_ids, cache)
        position_ids = queries[None] if position_ids is None else position_ids
        mask = keys <= queries[:, None]
        if attention_mask is not None:
            mask = mask & (attention_mask[:, None, None] > 0)
        place = input_ids.device
        rates = 0.1 ** Tensor.arange(DIM // HEADS // 2, dtype="float32", device=place)
        turns = position_ids[:, None, :, None].astype("float32") * rates
        x = self.tokens(input_ids)
        for block in self.blocks:
            x = block(x, (turns.cos(), turns.sin()), mask, cache)
        return self.head(self.norm(x)[:, -1:])


def steps(model, rows, precision="fp32", masked=False, count=4):
    """Logits of steps by the plan and by the model; the loop."""
    rng = np.random.default_rng(rows)
    ids = Tensor(rng.integers(0, 40, (rows, 5)))
    shown = np.ones((rows, 5 + count), np.int64)
    shown[0, :2] = 0
    own, plain, found = Cache(64), Cache(64), []

    def called(new, cache, end):
        if not masked:
            return model(new, cache=cache)
        at = np.maximum(shown[:, :end].cumsum(1) - 1, 0)[:, -new.shape[1] :]
        return model(new, Tensor(shown[:, :end]), Tensor(at), cache=cache)

    called(ids, own, 5), called(ids, plain, 5)
    loop = TokenLoop(model, precision)
    for i in range(count):
        new = Tensor(rng.integers(0, 40, (rows, 1)))
        wide = at = None
        if masked:
            wide = np.ones(
                (rows, own.rooms(1)[next(iter(own.rooms(1)))][0].shape[2]), int
            )
            wide[:, : 6 + i] = shown[:, : 6 + i]
            at = shown[:, : 6 + i].sum(1, keepdims=True) - 1
        made = loop.step(new, wide, at, own)
        own.advance(1)
        found.append((made.numpy(), called(new, plain, 6 + i).numpy()))
    return found, loop


MODELS = {
    "llama": (lambda: Model(Turning(2), Turning(2)), 4),
    "GPT-2": (lambda: Model(Plain(), Plain()), 5),
    "both": (lambda: Model(Turning(4), Plain()), 5),
    "other": (lambda: Writer(64, 4, 2), 3),
    "window": (lambda: Writer(64, 4, 2, window=3), 3),
}


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_the_launches_compute_what_the_model_does(name, masked, rows, monkeypatch):
    token_kernels.take_place(monkeypatch)
    found, loop = steps(MODELS[name][0](), rows, masked=masked)
    for ours, wanted in found:
        np.testing.assert_allclose(ours, wanted, rtol=0, atol=2e-5 * abs(wanted).max())
    (plan,) = loop.plans.values()
    assert plan.summary.startswith("one CUDA graph for all positions")


@pytest.mark.parametrize("precision", ["fp16", "bf16"])
@pytest.mark.parametrize("name", ["llama", "GPT-2"])
def test_weights_and_the_cache_in_half_precision(name, precision, monkeypatch):
    token_kernels.take_place(monkeypatch)
    found, loop = steps(MODELS[name][0](), 2, precision)
    for ours, wanted in found:
        np.testing.assert_allclose(ours, wanted, rtol=0, atol=3e-2 * abs(wanted).max())
    (plan,) = loop.plans.values()
    assert {array.itemsize for array in plan._buffers} == {2}


@pytest.mark.parametrize("bits", [8, 4])
@pytest.mark.parametrize("kind", ["s", "f"])
def test_codes_are_read_as_they_are(bits, kind, monkeypatch):
    token_kernels.take_place(monkeypatch)
    model = MODELS["llama"][0]()
    mode = "symmetric" if kind == "s" else "affine"
    scheme = QuantScheme(f"q{bits}{kind}", mode=mode, level=Level.block(32))
    for param in model.parameters():
        if len(param.shape) > 1:
            param.assign(param.quantize(scheme))
    found, loop = steps(model, 2)
    for ours, wanted in found:
        np.testing.assert_allclose(ours, wanted, rtol=0, atol=2e-5 * abs(wanted).max())
    kinds = {
        made.kind for _, made in loop._weights._kept.values() if hasattr(made, "kind")
    }
    assert kinds == {f"int{bits}"}


@pytest.mark.parametrize("name", ["llama", "GPT-2"])
def test_a_layer_is_few_launches(name, monkeypatch):
    token_kernels.take_place(monkeypatch)
    _, loop = steps(MODELS[name][0](), 1)
    (plan,) = loop.plans.values()
    own, every = plan._launches.count
    assert own == 2 * 5 + 1  # attention, four products a block; the head
    views = ("reshape", "transpose", "split", "getitem")
    alive = [n for n in plan._launches._alive() if n.name not in views]
    assert len(alive) - own <= (1 if name == "GPT-2" else 7)  # embedding, angles
    assert every < 40


def test_an_assigned_parameter_is_taken_up(monkeypatch):
    token_kernels.take_place(monkeypatch)
    model = MODELS["llama"][0]()
    cache, ids = Cache(64), Tensor([[1, 2, 3]])
    model(ids, cache=cache)
    loop = TokenLoop(model, "fp32")
    loop.step(Tensor([[4]]), None, None, cache)
    for param in model.parameters():
        param.assign(param.data * 0.5)
    again = loop.step(Tensor([[4]]), None, None, cache).numpy()
    plain = Cache(64)
    for name, arrays in cache.rooms(1).items():
        plain._grown[name] = [type(part)(64) for part in cache._grown[name]]
        for part, array in zip(plain._grown[name], arrays, strict=True):
            part.room, part.length = array.copy(), 3
    wanted = model(Tensor([[4]]), cache=plain).numpy()
    np.testing.assert_allclose(again, wanted, rtol=0, atol=2e-5 * abs(wanted).max())


def test_two_caches_take_turns_in_one_plan(monkeypatch):
    token_kernels.take_place(monkeypatch)
    model = MODELS["llama"][0]()
    loop, caches = TokenLoop(model, "fp16"), [Cache(64), Cache(64)]
    prompts = [Tensor([[1, 2, 3]]), Tensor([[7, 8, 9]])]
    wanted = []
    for cache, ids in zip(caches, prompts, strict=True):
        model(ids, cache=cache)
        wanted.append(model(ops.concat([ids, Tensor([[4, 5]])], axis=1)).numpy()[:, -1])
    for new in (4, 5):
        for i, cache in enumerate(caches):
            made = loop.step(Tensor([[new]]), None, None, cache).numpy()[:, 0]
            cache.advance(1)
            if new == 5:
                near = 2e-2 * abs(wanted[i]).max()
                np.testing.assert_allclose(made, wanted[i], rtol=0, atol=near)
    assert len(loop.plans) == 1


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("ends", [None, 7, [3, 7, 11, 20, 30, 33]])
def test_the_loop_gives_the_tokens_of_the_plain_one(ends, padded, monkeypatch):
    token_kernels.take_place(monkeypatch)
    burnish.seed(3)
    model = MODELS["llama"][0]()
    ids = np.random.default_rng(1).integers(0, VOCAB, (2, 6))
    mask = np.array([[0, 0, 1, 1, 1, 1], [1] * 6]) if padded else None
    choice = {
        "eos": ends,
        "suppress": [5],
        "begin_suppress": [9],
        "attention_mask": mask,
    }
    wanted = generate(model, ids, 24, **choice).numpy()
    decoder = burnish.generation.Decoder(model)
    monkeypatch.setattr("burnish.decoding.is_on_cpu", lambda device: False)
    monkeypatch.setattr("burnish.generation.is_on_cpu", lambda device: False)
    ours = generate(model, ids, 24, compile=decoder, **choice).numpy()
    assert decoder.known
    np.testing.assert_array_equal(ours, wanted)
