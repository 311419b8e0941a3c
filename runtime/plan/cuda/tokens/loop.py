"""Generating tokens on a GPU: plans of a model's steps, and their loop.

A step's graph and the kernel that chooses the next token follow each other on the GPU;
the host queues them and looks every few tokens whether all rows have ended.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from burnish import rng
from burnish.backend import on_host
from burnish.backend.cuda.decoding import sampling
from burnish.backend.cuda.graphs import graphs
from burnish.caches import Cache
from burnish.errors import CaptureError
from burnish.nn import Module
from burnish.plan.cuda.tokens.plan import TokenPlan
from burnish.plan.cuda.tokens.weights import Weights
from burnish.tensor import Tensor

HALVES = {"fp32": "", "tf32": "", "fp16": "float16", "bf16": "bfloat16"}
"""The half precision of products, weights and caches, by the name of a precision."""

_LOOK = 16
"""Tokens after which the host looks whether all rows have ended."""

_MOST = 8
"""Plans that are kept; each has a cache of its own."""


class TokenLoop:
    """The plans of a model's steps of one token on its GPU."""

    def __init__(self, model: Module, precision: str):
        self._model, self._half = model, HALVES[precision]
        self._room = graphs.Room(model.device.index, precision)
        self._weights = Weights(model.device)
        self.plans: dict[Any, TokenPlan] = {}

    def plan(self, cache: Cache, is_masked: bool) -> TokenPlan:
        """The plan for a cache, which is in it from now on. Raises CaptureError."""
        rooms = cache.rooms(1)
        shapes = {owner: [room.shape for room in pair] for owner, pair in rooms.items()}
        flat = [shape for pair in shapes.values() for shape in pair]
        if any(len(shape) != 4 or shape[2] != flat[0][2] for shape in flat):
            raise CaptureError("the model's caches have several lengths")
        key = (*shapes, *flat, is_masked)
        found = self.plans.pop(key, None)
        if found is None:
            while len(self.plans) >= _MOST:
                self.plans.pop(next(iter(self.plans))).release()
            made = self._room, self._weights, self._half, is_masked
            found = TokenPlan(self._model, shapes, *made)
        else:
            found.check()
        self.plans[key] = found
        found.take(cache)
        return found

    def release(self, cache: Cache) -> None:
        """Give a cache arrays that the plain model computes with."""
        for plan in self.plans.values():
            if plan.has(cache):
                plan.release()

    def step(self, ids: Tensor, mask: Any, positions: Any, cache: Cache) -> Tensor:
        """Logits (N, 1, V) of one new token a row; mask (N, S), positions (N, 1)."""
        plan = self.plan(cache, mask is not None)
        with plan.running():
            graphs.copied_into(plan.ids, ids.data)
            plan.queries.fill(cache.length)
            if mask is not None:
                graphs.copied_into(plan.mask, mask)
                plan.positions[...] = positions
            plan.run()
            made = graphs.copy(plan.logits)
        return Tensor.wrap(made[:, None], ids.device)

    def follow(
        self,
        logits: Any,
        cache: Cache,
        mask: Any,
        count: int,
        choice: sampling.Choice,
        ends: list[int],
        suppressed: tuple[list[int], list[int]],
    ) -> Any:
        """Tokens (N, up to count) behind a prompt, whose last logits (N, V) these are.

        mask (N, T): of the prompt, None for one without padding. suppressed: tokens
        that are never chosen, and those that are never first besides.
        """
        plan = self.plan(cache, mask is not None)
        start, (rows, vocab) = cache.length, logits.shape
        state = rng.state()
        chances = rng.generator().random((count, rows)) if choice.drawn else None
        never, first = (
            sampling.banned(tokens, vocab)
            for tokens in (suppressed[0], [*suppressed[0], *suppressed[1]])
        )
        with plan.running():
            read = plan.ids, plan.queries, plan.positions
            if mask is not None:
                plan.mask.fill(1)
                plan.mask[:, : mask.shape[1]] = mask
                plan.positions[...] = mask.sum(axis=1, keepdims=True) - 1
            tokens = sampling.Tokens(choice, count, read, ends, chances)
            tokens.choose(logits, 0, start, first)
            made = 1
            while made < count:
                if ends and made % _LOOK == 0 and not tokens.running.any():
                    break
                plan.run()
                tokens.choose(plan.logits, made, start + made, never)
                made += 1
            found = tokens.made[:, :made]
            if ends:
                made = _until(on_host(found), ends)
                found = found[:, :made]
        if choice.drawn and made < count:  # as many draws as the plain loop makes
            rng.restore(state)
            rng.generator().random((made, rows))
        cache.advance(made - 1)
        return found


def _until(tokens: Any, ends: list[int]) -> int:
    """How many tokens there are until all rows have ended."""
    is_end = np.isin(tokens, ends)
    ended = is_end.any(axis=1)
    where = np.where(ended, is_end.argmax(axis=1) + 1, tokens.shape[1])
    return int(where.max(initial=1))
