"""Steps of decoders: the logits of the last position, with past keys and values.

N sequences, T new positions, H heads, D their size, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from burnish.backend import Device, namespace
from burnish.tensor import Tensor

Module = Callable[..., Any]


def prompts(input_ids: Tensor) -> np.ndarray:
    """Token ids (N, T) on the host."""
    return input_ids.numpy().astype(np.int32)


class DecoderOnly:
    """(ids, position ids, mask, *past) -> (logits, *present), as GPT-2 is called.

    Past and present have keys and values (2, N, H, length, D) of a layer each. cache:
    layers, H and D. first: what is called for the prompt, if it is another module.
    """

    def __init__(
        self,
        decoder: Module,
        first: Module | None,
        ids: np.ndarray,
        mask: Any,
        pad: int,
        cache: tuple[int, int, int],
        device: Device,
    ):
        self.decoder, self.called = decoder, first or decoder
        self.device, self.ids = device, ids
        is_token = ids != pad
        counted = np.where(is_token, is_token.cumsum(1) - 1, 0)
        self.positions, self.next = counted, is_token.sum(1)
        self.mask = is_token if mask is None else np.asarray(mask)
        layers, heads, size = cache
        empty = np.zeros((2, len(ids), heads, 0, size), np.float32)
        self.past = [Tensor(empty, device=device)] * layers

    def logits(self, words: int) -> np.ndarray:
        """Logits (N, V) of the last position; words: V, where they are padded."""
        given = (self.ids, self.positions, self.mask)
        ids = (Tensor(each.astype(np.int32), device=self.device) for each in given)
        logits, *self.past = self.called(*ids, *self.past)
        self.called = self.decoder
        return _cut(_last(logits), words)

    def follow(self, tokens: np.ndarray, rows: np.ndarray | None = None) -> None:
        """Go on with tokens (N,), each behind the past of one of the rows."""
        self.ids, self.positions = tokens[:, None], self.next[:, None]
        self.next = self.next + 1
        ones = np.ones((len(tokens), 1), self.mask.dtype)
        self.mask = np.concatenate([self.mask, ones], axis=1)
        if rows is not None:
            self.past = [_taken(past, rows, 1) for past in self.past]


class EncoderDecoder:
    """An encoder, run once, and a decoder, as T5 and BART are called.

    encoder: (ids, mask) -> cross keys and values, or (ids, mask, start ids) -> (logits,
    hidden states, keys and values of the start, cross keys and values). decoder: (ids,
    mask, *past keys and values, *cross ones) -> (logits, *present keys and values);
    takes_states: hidden states follow the mask; takes_all: ids are the whole sequence.
    Keys and values are (N, H, length, D). cache: layers, H and D.
    """

    def __init__(
        self,
        encoder: Module,
        decoder: Module,
        ids: np.ndarray,
        mask: Any,
        pad: int,
        start: int,
        beams: int,
        cache: tuple[int, int, int],
        starts: bool,
        takes_states: bool,
        takes_all: bool,
        device: Device,
    ):
        self.decoder, self.takes_all, self.device = decoder, takes_all, device
        layers, heads, size = cache
        if mask is None:  # what is padded is at the left: an end may be the same token
            mask = (ids != pad).cumsum(1) > 0
        mask = np.asarray(mask).astype(np.int32)
        self.ids = np.full((len(ids) * beams, 1), start, np.int32)
        self.first: np.ndarray | None = None
        given = [Tensor(each, device=device) for each in (ids, mask)]
        if starts:
            begin = Tensor(self.ids[::beams], device=device)
            logits, states, *made = encoder(*given, begin)
            self.first = np.repeat(_last(logits), beams, axis=0)
            past = [_repeated(each, beams) for each in made]
            self.past, cross = past[: 2 * layers], past[2 * layers :]
            hidden = [_repeated(states, beams)] if takes_states else []
        else:
            cross = [_repeated(each, beams) for each in encoder(*given)]
            empty = np.zeros((len(self.ids), heads, 0, size), np.float32)
            self.past, hidden = [Tensor(empty, device=device)] * (2 * layers), []
        self.outside = [_repeated(given[1], beams), *hidden]
        self.cross = cross

    def logits(self, words: int) -> np.ndarray:
        """Logits (N, V) of the last position; words: V, where they are padded."""
        if self.first is not None:
            made, self.first = self.first, None
            return _cut(made, words)
        ids = Tensor(
            self.ids if self.takes_all else self.ids[:, -1:], device=self.device
        )
        logits, *self.past = self.decoder(ids, *self.outside, *self.past, *self.cross)
        return _cut(_last(logits), words)

    def follow(self, tokens: np.ndarray, rows: np.ndarray) -> None:
        """Go on with tokens (N,), each behind the past of one of the rows."""
        self.ids = np.concatenate([self.ids[rows], tokens[:, None]], axis=1)
        self.past = [_taken(past, rows, 0) for past in self.past]


def _last(logits: Tensor) -> np.ndarray:
    return np.array(logits[:, -1].numpy(), np.float32)


def _cut(logits: np.ndarray, words: int) -> np.ndarray:
    return logits[:, :words] if words else logits


def _repeated(x: Tensor, times: int) -> Tensor:
    """Each row so many times, one behind the other."""
    return Tensor(namespace(x.data).repeat(x.data, times, axis=0), device=x.device)


def _taken(x: Tensor, rows: np.ndarray, axis: int) -> Tensor:
    xp = namespace(x.data)
    return Tensor(xp.take(x.data, xp.asarray(rows), axis=axis), device=x.device)
