"""Searches for sequences: calls of `burnish.generation` with modules of the model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from burnish import generation
from burnish.codegen.ops.rule.expressions import (
    number,
    operand,
    worth_writing,
)
from burnish.codegen.ops.rule.registry import NodeContext, Result, onnx_op
from burnish.codegen.ops.rule.traits import OWN_SHAPE, RANDOM, UNBOUNDED
from burnish.codegen.program import Call, Expression, Name

_MODULES = frozenset(("first", "encoder"))
_NUMBERS = frozenset(
    (
        *("min_length", "num_beams", "num_return_sequences", "length_penalty"),
        *("repetition_penalty", "seed"),
    )
)


@onnx_op("GreedySearch", domain="burnish", traits=OWN_SHAPE | UNBOUNDED)
def greedy_search(
    input_ids: Expression,
    max_length: Expression,
    min_length: Expression | None = None,
    repetition_penalty: Expression | None = None,
    vocab_mask: Expression | None = None,
    prefix_vocab_mask: Expression | None = None,
    attention_mask: Expression | None = None,
    *,
    cache: list[int],
    decoder: str,
    decoder_start_token_id: int = -1,
    eos_token_id: int,
    first: str | None = None,
    no_repeat_ngram_size: int = 0,
    pad_token_id: int,
    vocab_size: int = 0,
) -> Result:
    return _search(generation.greedy_search, locals())


@onnx_op("BeamSearch", domain="burnish", traits=OWN_SHAPE | UNBOUNDED)
def beam_search(
    input_ids: Expression,
    max_length: Expression,
    min_length: Expression | None = None,
    num_beams: Expression | None = None,
    num_return_sequences: Expression | None = None,
    length_penalty: Expression | None = None,
    repetition_penalty: Expression | None = None,
    vocab_mask: Expression | None = None,
    prefix_vocab_mask: Expression | None = None,
    attention_mask: Expression | None = None,
    *,
    cache: list[int],
    decoder: str,
    decoder_start_token_id: int = -1,
    early_stopping: int = 0,
    encoder: str | None = None,
    eos_token_id: int,
    first: str | None = None,
    no_repeat_ngram_size: int = 0,
    pad_token_id: int,
    starts: int = 1,
    takes_all: int = 0,
    takes_states: int = 0,
    vocab_size: int = 0,
    node: NodeContext,
) -> Result:
    given = {k: v for k, v in locals().items() if k != "node"}
    return _search(generation.beam_search, given | {"outputs": len(node.outputs)})


@onnx_op("Sampling", domain="burnish", traits=OWN_SHAPE | UNBOUNDED | RANDOM)
def sampling(
    input_ids: Expression,
    max_length: Expression,
    min_length: Expression | None = None,
    repetition_penalty: Expression | None = None,
    vocab_mask: Expression | None = None,
    prefix_vocab_mask: Expression | None = None,
    attention_mask: Expression | None = None,
    presence_mask: Expression | None = None,
    seed: Expression | None = None,
    *,
    cache: list[int],
    custom: int = 0,
    decoder: str,
    decoder_start_token_id: int = -1,
    eos_token_id: int,
    filter_value: float = -np.inf,
    first: str | None = None,
    min_tokens_to_keep: int = 0,
    no_repeat_ngram_size: int = 0,
    pad_token_id: int,
    presence_penalty: float = 0.0,
    temperature: float = 1.0,
    top_p: float = 0.0,
    vocab_size: int = 0,
) -> Result:
    return _search(generation.sampling, locals())


def _search(target: Callable[..., Any], given: dict[str, Any]) -> Call:
    """`generation.target(self.decoder, input_ids, max_length, ...)`"""
    ids, length = operand(given.pop("input_ids")), number(given.pop("max_length"))
    decoder = Name(f"self.{given.pop('decoder')}")
    options: dict[str, Any] = {
        "cache": tuple(given.pop("cache")),
        "eos": given.pop("eos_token_id"),
        "pad": given.pop("pad_token_id"),
    }
    start = given.pop("decoder_start_token_id")
    if given.get("encoder") is not None:
        options["start"] = start
    given["vocab_size"] = max(given["vocab_size"], 0)
    for name, value in given.items():
        if value is None:
            continue
        if name in _MODULES:
            value = Name(f"self.{value}")
        elif name in _NUMBERS:
            value = number(value)
        options[name] = value
    made = (decoder, ids, operand(length))
    written = worth_writing(target, options)
    return Call(f"generation.{target.__name__}", made, written)
