"""Greedy search and sampling: one sequence for each prompt.

N prompts, T their length, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from burnish.errors import InputError
from burnish.searches.scores import Rules
from burnish.searches.steps import DecoderOnly, Module, prompts
from burnish.tensor import Tensor


def greedy_search(
    decoder: Module,
    input_ids: Tensor,
    max_length: int,
    *,
    cache: tuple[int, int, int],
    eos: int,
    pad: int,
    min_length: int = 0,
    repetition_penalty: float = 1.0,
    no_repeat_ngram_size: int = 0,
    vocab_mask: Any = None,
    prefix_vocab_mask: Any = None,
    attention_mask: Any = None,
    vocab_size: int = 0,
    first: Module | None = None,
) -> Tensor:
    """Prompts (N, T) with the likeliest token behind them each time: (N, max_length)

    decoder: see `DecoderOnly`; first: the decoder of prompts, if it is another one.
    cache: layers, heads and their size. A sequence that has ended is followed by pad.
    vocab_size: tokens, where logits are padded to more. The other options: see `Rules`.
    """
    rules = Rules(
        eos,
        repetition_penalty,
        no_repeat_ngram_size,
        host(vocab_mask),
        host(prefix_vocab_mask),
        min_length,
    )
    return _followed(
        *(decoder, first, input_ids, max_length, attention_mask),
        *(cache, pad, vocab_size, rules, lambda scores: scores.argmax(-1)),
    )


def sampling(
    decoder: Module,
    input_ids: Tensor,
    max_length: int,
    *,
    cache: tuple[int, int, int],
    eos: int,
    pad: int,
    min_length: int = 0,
    repetition_penalty: float = 1.0,
    no_repeat_ngram_size: int = 0,
    vocab_mask: Any = None,
    prefix_vocab_mask: Any = None,
    attention_mask: Any = None,
    presence_mask: Any = None,
    vocab_size: int = 0,
    first: Module | None = None,
    seed: int = 0,
    temperature: float = 1.0,
    top_p: float = 0.0,
    filter_value: float = -np.inf,
    min_tokens_to_keep: int = 0,
    presence_penalty: float = 0.0,
    custom: bool = False,
) -> Tensor:
    """Prompts (N, T) with tokens drawn by their probabilities: (N, max_length)

    The draws are those of onnxruntime with that seed. Tokens get the score filter_value
    where less likely ones have 1 - top_p of the probability together; custom: where
    likelier ones have top_p. The other options: see `greedy_search` and `Rules`. Raises
    InputError where these keep no token.
    """
    is_empty = not custom and top_p <= 0 and min_tokens_to_keep <= 0
    if is_empty and np.isneginf(filter_value):
        raise InputError(
            f"top_p: expected more than 0, or min_tokens_to_keep of at least 1, got "
            f"{top_p} and {min_tokens_to_keep}: no token is kept"
        )
    rules = Rules(
        eos,
        repetition_penalty,
        no_repeat_ngram_size,
        host(vocab_mask),
        host(prefix_vocab_mask),
        min_length,
        temperature,
        host(presence_mask),
        presence_penalty,
    )
    draws = _Draws(seed)

    def drawn(scores: np.ndarray) -> np.ndarray:
        if custom:
            _keep_likeliest(scores, top_p, filter_value)
        else:
            _drop_unlikely(scores, top_p, filter_value, min_tokens_to_keep)
        return draws.tokens(scores)

    return _followed(
        *(decoder, first, input_ids, max_length, attention_mask),
        *(cache, pad, vocab_size, rules, drawn),
    )


def host(given: Any) -> Any:
    """The array of a tensor on the host; None, and numbers, as they are."""
    return given.numpy() if isinstance(given, Tensor) else given


def check_length(max_length: int, prompt: int) -> None:
    """Raise InputError where there is no room behind a prompt."""
    if max_length <= prompt:
        raise InputError(
            f"max_length: expected more than the {prompt} tokens that there are, got "
            f"{max_length}"
        )


def _followed(
    decoder: Module,
    first: Module | None,
    input_ids: Tensor,
    max_length: int,
    attention_mask: Any,
    cache: tuple[int, int, int],
    pad: int,
    vocab_size: int,
    rules: Rules,
    choose: Callable[[np.ndarray], np.ndarray],
) -> Tensor:
    ids = prompts(input_ids)
    check_length(max_length, ids.shape[1])
    device = input_ids.device
    steps = DecoderOnly(decoder, first, ids, host(attention_mask), pad, cache, device)
    sequences = np.full((len(ids), max_length), pad, np.int32)
    sequences[:, : ids.shape[1]] = ids
    ended = np.zeros(len(ids), bool)
    for length in range(ids.shape[1], max_length):
        scores = steps.logits(vocab_size)
        rules.apply(scores, sequences[:, :length], length == ids.shape[1])
        tokens = choose(scores)
        ended |= tokens == rules.eos
        if ended.all():
            break
        tokens = np.where(ended, pad, tokens).astype(np.int32)
        sequences[:, length] = tokens
        steps.follow(tokens)
    return Tensor(sequences, device=device)


def _drop_unlikely(scores: np.ndarray, top_p: float, filled: float, least: int) -> None:
    order = np.argsort(scores, axis=-1, kind="stable")
    shares = _softmax(np.take_along_axis(scores, order, -1)).cumsum(-1)
    out = shares <= np.float32(1 - np.float32(top_p))
    out[:, max(1, scores.shape[1] - least) :] = False
    _fill(scores, order, out, filled)


def _keep_likeliest(scores: np.ndarray, top_p: float, filled: float) -> None:
    order = np.argsort(-scores, axis=-1, kind="stable")
    shares = _softmax(np.take_along_axis(scores, order, -1)).cumsum(-1)
    out = np.zeros(shares.shape, bool)
    out[:, 1:] = shares[:, :-1] > np.float32(top_p)
    _fill(scores, order, out, filled)


def _fill(scores: np.ndarray, order: np.ndarray, out: np.ndarray, by: float) -> None:
    rows, places = np.nonzero(out)
    scores[rows, order[rows, places]] = by


def _softmax(scores: np.ndarray) -> np.ndarray:
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    return shares / shares.sum(-1, keepdims=True)


class _Draws:
    """C++'s `std::minstd_rand0`, and uniform doubles made of two of its numbers."""

    _TIMES, _MODULUS = 16807, 2**31 - 1

    def __init__(self, seed: int):
        self.state = seed % 2**32 % self._MODULUS or 1

    def tokens(self, scores: np.ndarray) -> np.ndarray:
        """One token for each row of scores (N, V)."""
        chosen = np.zeros(len(scores), np.int64)
        for row, each in enumerate(scores.astype(np.float64)):
            finite = np.isfinite(each)
            shares = np.exp(each - each[finite].max(initial=-np.inf))
            total = np.where(finite, shares, 0).cumsum()
            chosen[row] = np.searchsorted(total, self.uniform() * total[-1], "right")
        return chosen

    def uniform(self) -> float:
        """A double of at least 0 and less than 1."""
        low, high = self._next() - 1, self._next() - 1
        span = float(self._MODULUS - 1)
        return (low + high * span) / (span * span)

    def _next(self) -> int:
        self.state = self.state * self._TIMES % self._MODULUS
        return self.state
