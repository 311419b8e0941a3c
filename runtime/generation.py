"""Text generation: a key/value cache, and sampling of tokens.

A language model's forward takes a `Cache` and gives logits of the last position. The
loop below feeds it one token at a time:

    generate(model, ids, 20)                                  # the likeliest, each time
    generate(model, ids, 20, do_sample=True, temperature=0.7, top_p=0.9)
    generate(model, ids, 20, compile=True)                    # see burnish.decoding

`beam_search`, `greedy_search` and `sampling` are onnxruntime's operators of that name,
which generated models call; `burnish.searches` has them.

N batch, T time, H heads, D their size, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from burnish import rng
from burnish.backend import Array, namespace
from burnish.caches import Cache, places
from burnish.decoding import Decoder, is_on_cpu
from burnish.errors import InputError
from burnish.nn import Module
from burnish.searches import beam_search, greedy_search, sampling
from burnish.tensor import Tensor

__all__ = [
    "Cache",
    "Decoder",
    "beam_search",
    "check_choice",
    "drawn",
    "filtered",
    "follow",
    "generate",
    "greedy_search",
    "places",
    "sampling",
]


def generate(
    model: Module,
    input_ids: Any,
    max_new_tokens: int = 20,
    *,
    attention_mask: Any = None,
    positions: int | None = None,
    compile: bool | Decoder = False,  # noqa: A002 - the word for it
    **choice: Any,
) -> Tensor:
    """Prompts (N, T) with up to max_new_tokens behind them: (N, T + new) int64.

    model: called with (ids, attention_mask, position_ids, cache). attention_mask
    (N, T): 0 where a prompt is padded, which has to be at its left. positions: the
    most that the model has, None for no limit. compile: True plans the step of a token
    for this call; a `Decoder` of the model keeps its plans. choice: see `follow`.
    """
    known = follow.__kwdefaults__ or {}
    if unknown := sorted(choice.keys() - known.keys()):
        raise InputError(
            f"generate: expected options among {', '.join(known)}, "
            f"got {', '.join(unknown)}"
        )
    given, model = model, model.valid()
    ids = _ids(model, input_ids)
    called: Any = model
    cache = Cache()
    if compile is not False:
        if isinstance(compile, Decoder):
            compile.check(given)
        called = Decoder(model) if compile is True else compile
        cache = Cache(ids.shape[1] + max_new_tokens)
    if attention_mask is None:
        if compile is not False:
            made = _on_gpu(called, ids, None, cache, max_new_tokens, positions, choice)
            if made is not None:
                return made
            cache = Cache(cache.reserved) if cache.length else cache
        choice["cache"] = cache
        choice["positions"] = positions
        return follow(
            lambda new, cache: called(new, cache=cache), ids, max_new_tokens, **choice
        )
    mask = model.device.put(np.asarray(attention_mask) > 0)
    if mask.shape != ids.shape or not mask[:, -1].all():
        raise InputError(
            f"generate: expected an attention_mask of shape {ids.shape} that ends "
            f"with 1 in every row (padding at the left), got shape {mask.shape}"
        )
    longest = int(mask.sum(1).max()) if mask.size else 0
    _check_room(longest, max_new_tokens, positions)
    if compile is not False:
        made = _on_gpu(called, ids, mask, cache, max_new_tokens, None, choice)
        if made is not None:
            return made
        cache = Cache(cache.reserved) if cache.length else cache
    choice["cache"] = cache

    def step(new: Tensor, cache: Cache) -> Tensor:
        nonlocal mask
        xp = namespace(mask)
        if cache.length:
            mask = xp.concatenate([mask, mask[:, -1:]], axis=1)
        at = xp.maximum(mask.cumsum(1) - 1, 0)[:, -new.shape[1] :]
        own = Tensor(mask, "int64"), Tensor(at, "int64")
        return called(new, *own, cache=cache)

    return follow(step, ids, max_new_tokens, **choice)


def _on_gpu(
    called: Any,
    ids: Tensor,
    mask: Any,
    cache: Cache,
    count: int,
    positions: int | None,
    choice: dict[str, Any],
) -> Tensor | None:
    """What `generate` gives where a `Decoder` has its loop on a GPU; else None."""
    if not isinstance(called, Decoder) or is_on_cpu(ids.device):
        return None
    check_choice(
        choice.get("temperature", 1.0), choice.get("top_k"), choice.get("top_p", 1.0)
    )
    _check_room(ids.shape[1], count, positions)
    ends, rest = _ends_of(choice.get("eos"), choice.get("pad"))
    return called.followed(ids, mask, cache, count, ends, rest, **choice)


def follow(
    step: Callable[[Tensor, Cache], Tensor],
    ids: Tensor,
    max_new_tokens: int,
    *,
    do_sample: bool = False,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float = 1.0,
    eos: int | Sequence[int] | None = None,
    pad: int | None = None,
    suppress: Sequence[int] = (),
    begin_suppress: Sequence[int] = (),
    positions: int | None = None,
    cache: Cache | None = None,
) -> Tensor:
    """ids (N, T) and up to max_new_tokens behind them.

    step: (new ids, cache) -> logits (N, 1, V). do_sample: draw from the distribution
    that `filtered` leaves, by `burnish.seed`'s source; else the likeliest token.
    eos: tokens that end a row; what follows them is `pad` (by default the first eos).
    suppress: tokens that are never chosen; begin_suppress: that are never first.
    positions: the most that ids and new tokens may take; None for no limit. cache: an
    empty one, None for one that grows.
    """
    check_choice(temperature, top_k, top_p)
    _check_room(ids.shape[1], max_new_tokens, positions)
    ends, rest = _ends_of(eos, pad)
    cache, new = Cache() if cache is None else cache, ids
    xp = namespace(ids.data)
    rows, running = [ids.data], xp.ones((ids.shape[0], 1), bool)
    for _ in range(max_new_tokens):
        logits = step(new, cache).data[:, -1]
        if banned := [*suppress, *(begin_suppress if len(rows) == 1 else ())]:
            logits = logits.copy()
            logits[:, banned] = -xp.inf
        if do_sample:
            chosen = drawn(filtered(logits, temperature, top_k, top_p))
        else:
            chosen = logits.argmax(-1)
        chosen = xp.where(running, chosen.reshape(-1, 1), rest).astype(ids.dtype)
        rows.append(chosen)
        if ends:
            running = running & ~xp.isin(chosen, xp.asarray(ends))
            if not running.any():
                break
        new = Tensor.wrap(chosen, ids.device)
    return Tensor.wrap(xp.concatenate(rows, axis=1), ids.device)


def filtered(
    logits: Array, temperature: float = 1.0, top_k: int | None = None, top_p: float = 1
) -> Array:
    """logits (N, V) / temperature, with -inf for tokens that may not be drawn.

    top_k: the k likeliest may. top_p: the likeliest that together reach this
    probability may (Holtzman et al., arXiv:1904.09751); at least one always may.
    """
    xp = namespace(logits)
    logits = logits / xp.asarray(temperature, logits.dtype)
    if top_k is not None and top_k < logits.shape[-1]:
        least = -xp.partition(-logits, top_k - 1, axis=-1)[:, top_k - 1 : top_k]
        logits = xp.where(logits < least, -xp.inf, logits)
    if top_p < 1:
        order = xp.argsort(logits, axis=-1)
        share = _softmax(xp.take_along_axis(logits, order, -1)).cumsum(-1)
        out = share <= 1 - top_p
        out[:, -1] = False
        dropped = xp.empty_like(out)
        xp.put_along_axis(dropped, order, out, -1)
        logits = xp.where(dropped, -xp.inf, logits)
    return logits


def drawn(logits: Array) -> Array:
    """One token a row of logits (N, V), by its probability: (N,)"""
    xp = namespace(logits)
    total = _softmax(logits.astype("float64")).cumsum(-1)
    chance = xp.asarray(rng.generator().random((len(logits), 1)))
    return (total <= chance * total[:, -1:]).sum(-1)


def check_choice(temperature: float, top_k: int | None, top_p: float) -> None:
    """Raise InputError for numbers that choose nothing."""
    if not temperature > 0:
        raise InputError(f"temperature: expected a number above 0, got {temperature}")
    if top_k is not None and top_k < 1:
        raise InputError(f"top_k: expected None or a number from 1, got {top_k}")
    if not 0 < top_p <= 1:
        raise InputError(f"top_p: expected a number above 0 up to 1, got {top_p}")


def _check_room(prompt: int, new: int, positions: int | None) -> None:
    """Raise InputError where a prompt and its new tokens exceed the positions."""
    if positions is not None and prompt + new > positions:
        raise InputError(
            f"generate: expected a prompt and new tokens of {positions} positions at "
            f"most, which the model has, got {prompt} + {new} = {prompt + new}; "
            f"shorten the prompt ({prompt} tokens) or lower max_new_tokens ({new})"
        )


def _softmax(logits: Array) -> Array:
    xp = namespace(logits)
    shares = xp.exp(logits - logits.max(-1, keepdims=True))
    return shares / shares.sum(-1, keepdims=True)


def _ids(model: Module, input_ids: Any) -> Tensor:
    try:
        ids = Tensor(input_ids, device=model.device)
    except ValueError as error:
        raise InputError(
            "generate: expected prompts of one length (batch, time), got rows of "
            "several; pad the shorter ones at the left and give attention_mask=, 0 "
            "where they are padded"
        ) from error
    if len(ids.shape) != 2 or ids.dtype.kind not in "iu":
        raise InputError(
            f"generate: expected token ids (batch, time), got {ids.dtype} {ids.shape}"
        )
    return ids.astype("int64")


def _ends_of(eos: Any, pad: int | None) -> tuple[list[int], int]:
    """The tokens that end a row, and the one that follows them."""
    ends = [] if eos is None else [eos] if isinstance(eos, int) else list(eos)
    return ends, pad if pad is not None else ends[0] if ends else 0
