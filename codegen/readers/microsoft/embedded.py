"""Character-level word embeddings, and hashes of n-grams that index embeddings."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from burnish.codegen.readers.microsoft.shared.bodies import (
    END,
    Builder,
    known,
    microsoft,
)


@microsoft("WordConvEmbedding")
def word_conv_embedding(
    op: Builder,
    Sequence: Any,
    W: Any,
    B: Any,
    C: Any,
    *,
    char_embedding_size: int | None = None,
    conv_window_size: int | None = None,
    embedding_size: int | None = None,
) -> Any:
    """The greatest tanh of a convolution over each word's characters: (words, filters)

    Sequence (words, characters): a word ends in zeros, one that begins with 0 is none
    and is 0. W (filters, 1, window, width); C (vocabulary, width).
    """
    window = known(W, 2, "convolution weights")
    real = op.Cast(op.Greater(Sequence, op.CastLike(0, Sequence)), to=ir.DataType.INT64)
    is_word = op.Slice(real, [0], [1], [1])
    count = op.ReduceSum(real, [1], keepdims=1)
    characters = op.Unsqueeze(op.Gather(C, Sequence, axis=0), [1])
    y = op.Squeeze(op.Tanh(op.Conv(characters, W, B)), [3])
    windows = op.places(y, 2)
    used = op.Less(windows, op.Max(op.Sub(count, window - 1), 1))
    low = op.number(-1.0, C)
    greatest = op.ReduceMax(op.Where(op.Unsqueeze(used, [1]), y, low), [2], keepdims=0)
    return op.Mul(greatest, op.CastLike(is_word, C))


@microsoft("NGramHashMapping")
def ngram_hash_mapping(
    op: Builder,
    input_ids: Any,
    multipliers: Any,
    vocab_sizes: Any,
    past_ids: Any = None,
    head_offsets: Any = None,
    eos_token_id: Any = None,
    segment_ids: Any = None,
    *,
    max_ngram_size: int,
    n_head_per_ngram: int,
    pad_id: int,
    reset_on_eos: int = 0,
) -> Any:
    """Hashes of the n-grams that end at each token: (batch, time, (n - 1) * heads)

    Tokens times multipliers, joined by exclusive or, modulo the sizes of each head's
    table. A token of a segment before is missing, and with `reset_on_eos` one before an
    end of sequence. Then the last n - 1 tokens, for the next call.
    """
    before = max_ngram_size - 1
    batch = op.Shape(input_ids, start=0, end=1)
    missing = op.CastLike(pad_id, input_ids)
    if eos_token_id is not None:
        missing = op.Reshape(eos_token_id, [])
    if past_ids is None:
        past_ids = op.Expand(missing, op.Concat(batch, [before], axis=0))
    tokens = op.Concat(past_ids, input_ids, axis=1)
    segments = None
    if segment_ids is not None:
        first = op.Slice(segment_ids, [0], [1], [1])
        past = op.Expand(first, op.Concat(batch, [before], axis=0))
        segments = op.Concat(past, segment_ids, axis=1)
    is_reset = reset_on_eos and eos_token_id is not None
    mixed, hidden, hashes = None, None, []
    for back in range(max_ngram_size):
        shifted = _before(op, tokens, before, back)
        ends = []
        if back and is_reset:
            ends.append(op.Equal(shifted, missing))
        if back and segments is not None:
            ends.append(_crossed(op, segments, before, back))
        for end in ends:
            hidden = end if hidden is None else op.Or(hidden, end)
        if hidden is not None:
            shifted = op.Where(hidden, missing, shifted)
        factor = op.Slice(multipliers, [back], [back + 1], [0])
        part = op.Mul(shifted, factor)
        mixed = part if mixed is None else op.BitwiseXor(mixed, part)
        if back:
            heads = [n_head_per_ngram * (back - 1)], [n_head_per_ngram * back], [0]
            sizes = op.Slice(vocab_sizes, *heads)
            hashes.append(op.Mod(op.Unsqueeze(mixed, [2]), sizes))
    y = op.Concat(*hashes, axis=2)
    if head_offsets is not None:
        y = op.Add(y, head_offsets)
    return y, op.Slice(tokens, [-before], [END], [1])


def _before(op: Builder, tokens: Any, before: int, back: int) -> Any:
    """Of each token of the call the one so many places before."""
    return op.Slice(tokens, [before - back], [-back if back else END], [1])


def _crossed(op: Builder, segments: Any, before: int, back: int) -> Any:
    """Whether the token so many places before ends a segment."""
    here, there = (_before(op, segments, before, b) for b in (back - 1, back))
    return op.Not(op.Equal(here, there))
