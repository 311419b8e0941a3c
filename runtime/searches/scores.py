"""Change the scores of next tokens: penalties, masks, lengths.

N sequences, L tokens of each so far, V vocabulary. Scores (N, V) are changed in place.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

LOWEST = np.finfo(np.float32).min
"""The score of a token that may not be chosen."""


@dataclass(frozen=True)
class Rules:
    """What changes scores, in the order in which it is applied.

    repetition_penalty: divides scores above 0 of tokens that a sequence has, multiplies
    others. no_repeat_ngram_size: no n-gram comes twice. vocab_mask (V,): 0 for tokens
    that are never chosen, prefix_vocab_mask (prompts, V): never as the first one.
    min_length: eos is not chosen before. temperature divides; presence_penalty times
    presence_mask (N, V) is subtracted from each token's score, as onnxruntime does on
    CUDA; its kernel for CPUs takes all of it from the first score.
    """

    eos: int
    repetition_penalty: float = 1.0
    no_repeat_ngram_size: int = 0
    vocab_mask: np.ndarray | None = None
    prefix_vocab_mask: np.ndarray | None = None
    min_length: int = 0
    temperature: float = 1.0
    presence_mask: np.ndarray | None = None
    presence_penalty: float = 0.0

    def apply(self, scores: np.ndarray, sequences: np.ndarray, is_first: bool) -> None:
        """Change the scores (N, V) of what follows sequences (N, L)."""
        if self.repetition_penalty != 1:
            _penalize(scores, sequences, np.float32(self.repetition_penalty))
        if self.no_repeat_ngram_size > 0:
            _ban_ngrams(scores, sequences, self.no_repeat_ngram_size)
        if self.vocab_mask is not None:
            scores[:, self.vocab_mask == 0] = LOWEST
        if self.prefix_vocab_mask is not None and is_first:
            each = len(scores) // len(self.prefix_vocab_mask)
            scores[np.repeat(self.prefix_vocab_mask == 0, each, axis=0)] = LOWEST
        if sequences.shape[1] < self.min_length:
            scores[:, self.eos] = LOWEST
        if self.temperature != 1:
            scores /= np.float32(self.temperature)
        if self.presence_mask is not None and self.presence_penalty:
            scores -= self.presence_mask * np.float32(self.presence_penalty)


def _penalize(scores: np.ndarray, sequences: np.ndarray, penalty: np.float32) -> None:
    had = np.take_along_axis(scores, sequences, axis=1)
    changed = np.where(had < 0, had * penalty, had / penalty)
    np.put_along_axis(scores, sequences, changed, axis=1)


def _ban_ngrams(scores: np.ndarray, sequences: np.ndarray, size: int) -> None:
    length = sequences.shape[1]
    starts = length - size + 1
    if starts < 1:
        return
    same = np.ones((len(sequences), starts), bool)
    for place in range(size - 1):
        last = sequences[:, starts + place, None]
        same &= sequences[:, place : place + starts] == last
    rows, places = np.nonzero(same)
    scores[rows, sequences[rows, places + size - 1]] = LOWEST


def log_softmax(logits: np.ndarray) -> np.ndarray:
    """Logarithms of the probabilities of logits (N, V)."""
    shifted = logits - logits.max(-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
