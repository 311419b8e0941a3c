"""Decoding: banned n-grams, speculative tokens, alignment of words in time."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from burnish.codegen.readers.microsoft.shared.bodies import (
    END,
    Builder,
    microsoft,
    rank,
)


@microsoft("NGramRepeatBlock")
def ban_repeated_ngrams(
    op: Builder, input_ids: Any, scores: Any, *, ngram_size: int
) -> Any:
    """-inf for each token that would end an n-gram that a row has already."""
    same: Any = None
    for i in range(ngram_size - 1):
        behind = ngram_size - 1 - i
        old = op.Slice(input_ids, [i], [-behind], [1])
        last = op.Slice(input_ids, [-behind], [(1 - behind) or END], [1])
        equal = op.Equal(old, last)
        same = equal if same is None else op.And(same, equal)
    tokens = op.Slice(input_ids, [ngram_size - 1], [END], [1])
    if same is None:
        same = op.Equal(tokens, tokens)
    low, high = (op.number(x, scores) for x in (-np.inf, np.inf))
    bans = op.Where(same, low, high)
    return op.ScatterElements(scores, tokens, bans, axis=1, reduction="min")


@microsoft("DynamicTimeWarping")
def dynamic_time_warping(op: Builder, input_: Any) -> Any:
    """The cheapest path through costs (M, N) or (1, M, N): (2, steps)"""
    cost = op.Squeeze(input_, [0]) if rank(input_) == 3 else input_
    (y,) = op.make("burnish", "DynamicTimeWarping", (cost,), {})
    y.dtype, y.shape = ir.DataType.INT32, ir.Shape([2, None])
    return y


@microsoft("BifurcationDetector")
def bifurcation_detector(
    op: Builder,
    src_tokens: Any,
    cur_tokens: Any,
    prev_suffix_match_idx: Any,
    pred_tokens: Any = None,
    *,
    max_ngram_size: int = 3,
    min_ngram_size: int = 1,
) -> Any:
    """Tokens up to the first prediction that differs from the source, and their match.

    The match is the place behind the only n-gram of the source that equals the last
    tokens, -1 without one; longer n-grams are tried while shorter ones are found.
    """
    tokens = cur_tokens
    if pred_tokens is not None:
        rest = op.Slice(src_tokens, prev_suffix_match_idx, [END], [0])
        guessed = op.Slice(pred_tokens, [0], [-1], [0])
        places = op.Squeeze(op.NonZero(op.Not(op.Equal(guessed, rest))), [0])
        first = op.ReduceMin(op.Concat(places, op.Shape(rest), axis=0), [0])
        kept = op.Slice(pred_tokens, [0], op.Add(first, 1), [0])
        tokens = op.Concat(cur_tokens, kept, axis=0)
    length, found = op.Shape(src_tokens), op.value([-1])
    held = op.Shape(tokens)
    tokens = op.Concat([-1] * max_ngram_size, tokens, axis=0)
    is_open: Any = None
    for n in range(min_ngram_size, max_ngram_size + 1):
        starts = op.Range(0, op.Add(op.Squeeze(length, [0]), 1 - n), 1)
        windows = op.Gather(src_tokens, op.Add(op.Unsqueeze(starts, [1]), np.arange(n)))
        equal = op.Equal(windows, op.Slice(tokens, [-n], [END], [0]))
        same = op.Cast(equal, to=ir.DataType.INT32)
        matches = op.Cast(op.ReduceMin(same, [1], keepdims=0), to=ir.DataType.BOOL)
        first = op.Concat(op.Compress(starts, matches), length, axis=0)
        end = op.Add(op.Slice(first, [0], [1], [0]), n)
        is_found = op.And(op.Less(op.Sub(end, n), length), op.GreaterOrEqual(held, [n]))
        taken = is_found if is_open is None else op.And(is_open, is_found)
        is_only = op.Less(op.Shape(first), [3])
        found = op.Where(taken, op.Where(is_only, end, [-1]), found)
        is_open = op.And(taken, op.Less(end, length))
    return op.Slice(tokens, [max_ngram_size], [END], [0]), found
