"""Beam search: several sequences for each prompt.

N prompts, K beams of each, T prompts' length, V vocabulary.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from burnish.errors import InputError
from burnish.searches.greedy import check_length, host
from burnish.searches.scores import Rules, log_softmax
from burnish.searches.steps import DecoderOnly, EncoderDecoder, Module, prompts
from burnish.tensor import Tensor

_NEVER = np.float32(-1e9)
"""The score of beams that are no other one's yet: all begin as the same prompt."""


def beam_search(
    decoder: Module,
    input_ids: Tensor,
    max_length: int,
    *,
    cache: tuple[int, int, int],
    eos: int,
    pad: int,
    num_beams: int = 1,
    num_return_sequences: int = 1,
    min_length: int = 0,
    length_penalty: float = 1.0,
    repetition_penalty: float = 1.0,
    no_repeat_ngram_size: int = 0,
    early_stopping: bool = False,
    vocab_mask: Any = None,
    prefix_vocab_mask: Any = None,
    attention_mask: Any = None,
    vocab_size: int = 0,
    first: Module | None = None,
    encoder: Module | None = None,
    start: int = 0,
    starts: bool = True,
    takes_states: bool = False,
    takes_all: bool = False,
    outputs: int = 1,
) -> Tensor | tuple[Tensor, ...]:
    """The best sequences of prompts (N, T): (N, num_return_sequences, max_length)

    outputs: 2 for their scores too, (N, num_return_sequences), the sum of logarithms of
    probabilities by length ** length_penalty; 3 for the sums of every token at every
    step too, (max_length - T, N, K, V). early_stopping: a prompt is done with K
    sequences that ended, else when no other can be better. encoder: with one, sequences
    begin with the token `start`; see `EncoderDecoder`. The other options: see
    `greedy_search` and `Rules`.
    """
    count, kept = num_beams, num_return_sequences
    if not 1 <= kept <= count:
        raise InputError(
            f"num_return_sequences: expected 1 to {count}, the beams, got {kept}"
        )
    rules = Rules(
        eos,
        repetition_penalty,
        no_repeat_ngram_size,
        host(vocab_mask),
        host(prefix_vocab_mask),
        min_length,
    )
    ids, mask = prompts(input_ids), host(attention_mask)
    device = input_ids.device
    steps: Any
    if encoder is None:
        every = np.repeat(ids, count, axis=0)
        mask = None if mask is None else np.repeat(mask, count, axis=0)
        steps = DecoderOnly(decoder, first, every, mask, pad, cache, device)
    else:
        steps = EncoderDecoder(
            *(encoder, decoder, ids, mask, pad, start, count, cache),
            *(starts, takes_states, takes_all, device),
        )
        every = steps.ids
    check_length(max_length, every.shape[1])
    prompt, sums = every.shape[1], np.zeros((len(ids), count), np.float32)
    sums[:, 1:] = _NEVER
    beams = _Beams(len(ids), count, length_penalty, early_stopping, eos, pad)
    every_score = []
    while every.shape[1] < max_length:
        scores = log_softmax(steps.logits(vocab_size))
        rules.apply(scores, every, every.shape[1] == prompt)
        scores = scores.reshape(len(ids), count, -1) + sums[..., None]
        every_score.append(scores)
        rows, tokens, sums = beams.step(scores, every)
        every = np.concatenate([every[rows], tokens[:, None]], axis=1)
        if all(beams.done):
            break
        steps.follow(tokens, rows)
    beams.finish(every, sums)
    sequences = np.full((len(ids), kept, max_length), pad, np.int32)
    found = np.zeros((len(ids), kept), np.float32)
    for row, ended in enumerate(beams.ended):
        for place, (score, tokens) in enumerate(ended[:kept]):
            sequences[row, place, : len(tokens)] = tokens
            found[row, place] = score
    all_scores = np.zeros((max_length - prompt, *every_score[0].shape), np.float32)
    all_scores[: len(every_score)] = every_score
    made = [Tensor(each, device=device) for each in (sequences, found, all_scores)]
    return made[0] if outputs == 1 else tuple(made[:outputs])


class _Beams:
    """The sequences of each prompt that ended, best first, and what goes on."""

    def __init__(
        self,
        prompts: int,
        count: int,
        length_penalty: float,
        early_stopping: bool,
        eos: int,
        pad: int,
    ):
        self.count, self.penalty = count, np.float32(length_penalty)
        self.early_stopping, self.eos, self.pad = early_stopping, eos, pad
        self.ended: list[list[tuple[np.float32, np.ndarray]]] = [
            [] for _ in range(prompts)
        ]
        self.done = [False] * prompts

    def step(
        self, scores: np.ndarray, every: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Which of the rows go on, with which token, and their sums (N, K).

        scores (N, K, V): of sequences `every` (N * K, L) with each token behind them.
        """
        count, size = self.count, scores.shape[-1]
        flat = scores.reshape(len(scores), -1)
        best = np.argsort(-flat, axis=-1, kind="stable")[:, : 2 * count]
        values = np.take_along_axis(flat, best, -1)
        rows = np.zeros((len(scores), count), np.int64)
        tokens = np.full((len(scores), count), self.pad, np.int32)
        sums = np.zeros((len(scores), count), np.float32)
        for prompt in range(len(scores)):
            if self.done[prompt]:
                continue
            going = 0
            for rank, (value, place) in enumerate(
                zip(values[prompt], best[prompt], strict=True)
            ):
                row, token = prompt * count + place // size, place % size
                if token != self.eos:
                    rows[prompt, going], tokens[prompt, going] = row, token
                    sums[prompt, going] = value
                    going += 1
                elif rank < count:
                    self._end(prompt, every[row], value)
                if going == count:
                    break
            # what onnxruntime compares with: for later prompts in part another's
            rivals = values.reshape(-1)[prompt * count : (prompt + 2) * count]
            self.done[prompt] = self._is_done(prompt, rivals.max(), every.shape[1])
        return rows.reshape(-1), tokens.reshape(-1), sums

    def finish(self, every: np.ndarray, sums: np.ndarray) -> None:
        """End the sequences of prompts that are not done."""
        for prompt, is_done in enumerate(self.done):
            for beam in range(0 if is_done else self.count):
                row = every[prompt * self.count + beam]
                self._end(prompt, row, sums[prompt, beam])

    def _end(self, prompt: int, tokens: np.ndarray, total: np.float32) -> None:
        score, ended = (
            total / np.float32(len(tokens)) ** self.penalty,
            self.ended[prompt],
        )
        ended.append((score, tokens))
        ended.sort(key=lambda each: -each[0])
        del ended[self.count :]

    def _is_done(self, prompt: int, best: np.float32, length: int) -> bool:
        ended = self.ended[prompt]
        if len(ended) < self.count:
            return False
        reachable = best / np.float32(length) ** self.penalty
        return self.early_stopping or not ended[-1][0] < reachable
