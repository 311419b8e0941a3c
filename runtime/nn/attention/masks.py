"""Masks for attention: True where a key takes no part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from burnish.backend import Device
from burnish.tensor import Tensor


def beside(like: Tensor, mask: Any) -> Tensor:
    """A mask, or an array that is one, on the device of `like`; without a gradient."""
    found = mask.detach() if isinstance(mask, Tensor) else Tensor(mask)
    place = like.device.inner()
    return found if found.device.inner() is place else found.to(place)


def generate_autoregressive_mask(length: int, device: Device | str = "cpu") -> Tensor:
    """(length, length): True where a key comes after the query"""
    return Tensor(~np.tri(length, dtype=bool), device=device)


def generate_padding_mask(
    pad_token: int,
    tokens_list: Sequence[Sequence[int]],
    max_length: int | None = None,
    length: int | None = None,
    device: Device | str = "cpu",
) -> tuple[Tensor, Tensor]:
    """Token lists as one int64 tensor (N, T), and where it is padding, (N, T)

    T is the longest list's length, at most max_length, or `length`; longer lists are
    cut. A token that equals pad_token counts as padding too.
    """
    if length is None:
        length = max(map(len, tokens_list), default=0)
        length = length if max_length is None else min(length, max_length)
    table: Any = np.full((len(tokens_list), length), pad_token, np.int64)
    for row, tokens in zip(table, tokens_list, strict=True):
        row[: len(tokens)] = tokens[:length]
    return Tensor(table, device=device), Tensor(table == pad_token, device=device)
