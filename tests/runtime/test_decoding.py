"""Decoding with one plan for all positions, beside the plain call."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import burnish
from burnish import Tensor, nn, ops
from burnish.caches import Cache, places, put
from burnish.decoding import Decoder
from burnish.errors import InputError
from burnish.generation import generate
from burnish.kernels import library

VOCAB, POSITIONS = 40, 400


class Attention(nn.Module):
    def __init__(self, dim: int, heads: int, kv_heads: int):
        self.size = dim // heads
        self.q, self.k = nn.Linear(dim, dim), nn.Linear(dim, kv_heads * self.size)
        self.v, self.out = nn.Linear(dim, kv_heads * self.size), nn.Linear(dim, dim)

    def split(self, x: Any) -> Any:
        return x.reshape(*x.shape[:2], -1, self.size).transpose(0, 2, 1, 3)

    def forward(self, x: Any, turns: Any, mask: Any, cache: Any) -> Any:
        q, k, v = (self.split(part(x)) for part in (self.q, self.k, self.v))
        q, k = rotated(q, *turns), rotated(k, *turns)
        if cache is not None:
            k, v = cache.extend(self, k, v)
        y = ops.scaled_dot_product_attention(q, k, v, mask)
        return self.out(y.transpose(0, 2, 1, 3).flatten(2))


def rotated(x: Any, cos: Any, sin: Any) -> Any:
    a, b = x.chunk(2, axis=-1)
    return ops.concat([a * cos - b * sin, b * cos + a * sin], axis=-1)


class Writer(nn.Module):
    """ids (N, T) -> logits of the last position, with what language models have."""

    def __init__(self, dim: int, heads: int, kv_heads: int, window: int = 0):
        self.window, self.half = window, dim // heads // 2
        self.tokens, self.learned = (
            nn.Embedding(VOCAB, dim),
            nn.Embedding(POSITIONS, dim),
        )
        self.layers = [Attention(dim, heads, kv_heads) for _ in range(2)]
        self.norm = nn.LayerNorm(dim)

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
        if self.window:
            mask = mask & (keys > queries[:, None] - self.window)
        if attention_mask is not None:
            mask = mask & (attention_mask[:, None, None] > 0)
        rates = 0.1 ** Tensor.arange(
            self.half, dtype="float32", device=input_ids.device
        )
        turns = position_ids[:, None, :, None].astype("float32") * rates
        x = self.tokens(input_ids) + self.learned(position_ids)
        for layer in self.layers:
            x = x + layer(self.norm(x), (turns.cos(), turns.sin()), mask, cache)
        return self.norm(x)[:, -1:] @ self.tokens.weight.transpose(1, 0)


class Old(Writer):
    """A model that asks for the cache's length, as sources made before do."""

    def forward(
        self,
        input_ids: Any,
        attention_mask: Any = None,
        position_ids: Any = None,
        cache: Any = None,
    ) -> Any:
        assert cache is None or cache.length >= 0
        return super().forward(input_ids, attention_mask, position_ids, cache)


@pytest.fixture(autouse=True)
def kernels() -> None:
    if library() is None:
        pytest.skip("no C compiler here")


def ids_of(batch: int, time: int) -> Tensor:
    return Tensor(np.random.default_rng(time).integers(0, VOCAB, (batch, time)))


def writer(*sizes: int, **options: int) -> Writer:
    burnish.seed(0)
    return Writer(*sizes, **options)


def same(ours: Any, wanted: Any) -> None:
    scale = float(np.abs(wanted.data).max())
    np.testing.assert_allclose(ours.data, wanted.data, rtol=0, atol=1e-5 * scale)


SIZES = [(32, 4, 4), (24, 4, 2), (60, 3, 1), (132, 2, 2)]


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("window", [0, 5])
def test_planned_steps_give_the_plain_ones_logits(
    batch: int, sizes: tuple[int, ...], window: int
) -> None:
    model = writer(*sizes, window=window)
    decoder, ours, theirs = Decoder(model), Cache(200), Cache()
    for time in (7, 1, 1, 2, 1, 5, *(1,) * 130):  # sums of more than 128 values too
        ids = ids_of(batch, time)
        same(decoder(ids, cache=ours), model(ids, cache=theirs))
        assert ours.length == theirs.length
    plans = decoder.known
    assert len(plans) == 2  # of one token and of two, for all positions
    assert all(not any("attention" in n.name for n, _ in p.eager) for p in plans)


def test_steps_in_bf16_are_near_the_plain_ones() -> None:
    found = library()
    if found is None or not found.bf16:
        pytest.skip("this processor has no products of bfloat16")
    model = writer(132, 2, 2)
    decoder, ours, theirs = Decoder(model, precision="bf16"), Cache(20), Cache()
    for time in (7, 1, 2, 1):
        ids = ids_of(1, time)
        made, wanted = decoder(ids, cache=ours).data, model(ids, cache=theirs).data
        off = np.linalg.norm(made - wanted) / np.linalg.norm(wanted)
        assert off == 0 if time == 7 else 1e-5 < off < 2e-2
    assert all("bf16" in plan.summary for plan in decoder.known)


@pytest.mark.parametrize("choice", [{}, {"do_sample": True, "top_k": 9}], ids=str)
def test_the_same_tokens_are_written(choice: dict[str, Any]) -> None:
    model, ids = writer(48, 4, 2), ids_of(2, 5)
    made = []
    for planned in (False, True, Decoder(model)):
        burnish.seed(3)
        made.append(generate(model, ids, 60, compile=planned, **choice).data)
    np.testing.assert_array_equal(made[1], made[0])
    np.testing.assert_array_equal(made[2], made[0])


def test_padded_prompts_write_what_they_write_alone() -> None:
    model = writer(32, 4, 2)
    short, long = ids_of(1, 3), ids_of(1, 6)
    padded = np.concatenate([np.pad(short.data, ((0, 0), (3, 0))), long.data])
    mask = np.ones((2, 6), int)
    mask[0, :3] = 0
    made = generate(model, padded, 20, attention_mask=mask, compile=True)
    for row, alone in ((made.data[0, 3:], short), (made.data[1], long)):
        np.testing.assert_array_equal(row, generate(model, alone, 20).data[0])


def test_a_cache_that_is_full_grows() -> None:
    model = writer(32, 4, 4)
    decoder, ours, theirs = Decoder(model), Cache(), Cache()
    for time in (14, *(1,) * 25):  # room for 16, then for 32, then for 64
        ids = ids_of(1, time)
        same(decoder(ids, cache=ours), model(ids, cache=theirs))
    assert len(decoder.known) == 3


def test_a_decoder_takes_caches_in_turn_and_new_weights() -> None:
    model = writer(32, 4, 4)
    decoder, caches = Decoder(model), [(Cache(9), Cache()) for _ in range(2)]
    for i, time in enumerate((4, 6, 1, 1, 1, 1)):
        ours, theirs = caches[i % 2]
        ids = ids_of(1, time + i // 6)
        same(decoder(ids, cache=ours), model(ids, cache=theirs))
        if i == 3:
            model.norm.weight.assign(model.norm.weight.data * 3)
    assert len(decoder.known) == 1


def test_a_token_that_no_row_has_leaves_the_cache_as_it_was() -> None:
    model = writer(32, 4, 4)
    decoder, cache = Decoder(model), Cache()
    decoder(ids_of(1, 3), cache=cache)
    decoder(ids_of(1, 1), cache=cache)
    with pytest.raises(InputError):
        decoder(Tensor([[VOCAB]]), cache=cache)
    assert cache.length == 4


@pytest.mark.parametrize("is_planned", [False, True])
def test_a_call_that_fails_between_layers_leaves_the_cache_as_it_was(
    is_planned: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = writer(32, 4, 4)
    called: Any = Decoder(model) if is_planned else model
    ours, theirs = Cache(), Cache()
    for cache in (ours, theirs):
        called(ids_of(1, 5), cache=cache)
    split = Attention.split

    def failing(owner: Attention, x: Any) -> Any:
        if owner is model.layers[1]:
            raise KeyboardInterrupt
        return split(owner, x)

    with monkeypatch.context() as patch:
        patch.setattr(Attention, "split", failing)
        with pytest.raises(KeyboardInterrupt):
            called(ids_of(1, 4), cache=ours)
    for time in (1, 1, 4, 1):
        ids = ids_of(1, time)
        same(called(ids, cache=ours), model(ids, cache=theirs))


def test_a_model_that_asks_for_the_length_runs_as_it_is() -> None:
    burnish.seed(0)
    model = Old(32, 4, 4)
    decoder, ids = Decoder(model), ids_of(1, 4)
    np.testing.assert_array_equal(
        generate(model, ids, 9, compile=decoder).data, generate(model, ids, 9).data
    )
    assert "cache's length" in decoder.explain()


def test_positions_outside_of_the_room_are_refused() -> None:
    room, new = np.zeros((1, 2, 8, 4), np.float32), np.ones((1, 2, 2, 4), np.float32)
    assert put(room, new, np.array([6, 7])) is room
    assert room.sum() == new.sum()
    with pytest.raises(InputError, match="within the 8"):
        put(room, new, np.array([7, 8]))


def test_a_decoder_of_another_model_is_refused() -> None:
    with pytest.raises(InputError, match="of this model"):
        generate(writer(8, 2, 2), ids_of(1, 2), 1, compile=Decoder(writer(8, 2, 2)))
