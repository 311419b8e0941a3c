"""Decoding with one plan for all positions.

A language model's forward takes a `Cache`, whose arrays have room for more positions
than there are yet. `Decoder` runs a model's steps of a token as a plan of kernels:
where the new rows of keys and values go, and what a query sees, are data of a call, so
that a plan serves every position.

    decoder, cache = Decoder(model), Cache(1024)
    logits = decoder(prompt, cache=cache)       # as the model does it
    logits = decoder(token, cache=cache)        # by the plan

N batch, T new positions, V vocabulary.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from burnish.autodiff import recording
from burnish.caches import Cache, InPlace
from burnish.errors import CaptureError, InputError
from burnish.nn import Module
from burnish.tensor import Tensor

_FEW = 2
"""New positions up to which a call is planned: more of them are products that the plain
call is fast at, and a plan would keep weights packed a second time."""


class Decoder:
    """A language model whose steps of a token are planned; called as the model is.

    What is no such step, or has no plan, runs as the model does it: prompts, a model on
    a GPU, one whose code asks for the cache's length. `explain()` says why.
    """

    def __init__(self, model: Module):
        if model.device.is_autodiff:
            raise InputError(
                f"Decoder: expected a model for inference, got one on "
                f"{str(model.device)!r}; give it model.valid()"
            )
        self.model = model
        self._compiled: dict[tuple[Module, ...], tuple[Any, Any]] = {}
        self._planned: dict[Any, bool] = {}
        self._why = ""

    def __call__(
        self,
        input_ids: Any,
        attention_mask: Any = None,
        position_ids: Any = None,
        cache: Cache | None = None,
    ) -> Tensor:
        """Logits (N, 1, V) of the last of ids (N, T); see the module's docstring."""
        ids = Tensor(input_ids, "int64", self.model.device)
        if cache is not None and cache.is_plain and self._may_plan(ids):
            made = self._step(ids, attention_mask, position_ids, cache)
            if made is not None:
                cache.advance(ids.shape[1])
                return made
        made = self.model(ids, attention_mask, position_ids, cache=cache)
        return made

    def check(self, model: Module) -> None:
        """Raise InputError unless this is a decoder of the model."""
        if self.model is not model:
            raise InputError(
                "generate: expected compile=True or a Decoder of this model, got a "
                f"Decoder of another {type(self.model).__name__}; make one of it: "
                "Decoder(model)"
            )

    def explain(self) -> str:
        """The operators of the calls so far that run eagerly, and why."""
        if self._why:
            return f"every call runs eagerly: {self._why}"
        reports = [made.explain() for pair in self._compiled.values() for made in pair]
        return "\n".join(reports)

    @property
    def known(self) -> list[Any]:
        """The plans that there are."""
        every = [made for pair in self._compiled.values() for made in pair]
        return [each for made in every for each in made.known if _is_plan(each)]

    def _may_plan(self, ids: Tensor) -> bool:
        plain = ids.device.kind == "cpu" and recording.tape is None
        return plain and not self._why and 0 < ids.shape[1] <= _FEW

    def _step(self, ids: Tensor, mask: Any, positions: Any, cache: Cache) -> Any:
        """The plan's output for new ids; None where there is no plan."""
        time, start = ids.shape[1], cache.length
        buffers = cache.buffers(time)
        flat = [room for pair in buffers.values() for room in pair]
        if len({room.shape[2] for room in flat}) != 1:
            return None
        queries = Tensor.wrap(np.arange(start, start + time), ids.device)
        bare, masked = self._functions(tuple(buffers))
        given: tuple[Any, ...]
        if mask is None and positions is None:
            run, given = bare, (ids, queries, *flat)
        else:
            shown = _widened(mask, ids, start + time, flat[0].shape[2])
            if positions is None:
                positions = Tensor.wrap(queries.data[None], ids.device)
            run, given = masked, (ids, queries, Tensor(positions), shown, *flat)
        key = run, ids.shape, given[-1].shape
        try:
            if key not in self._planned:
                self._planned[key] = _is_plan(run.planned(*given))
            return run(*given) if self._planned[key] else None
        except CaptureError as error:
            self._why = str(error)
            return None

    def _functions(self, owners: tuple[Module, ...]) -> tuple[Any, Any]:
        if owners not in self._compiled:
            self._compiled[owners] = _steps(self.model, owners)
        return self._compiled[owners]


def _steps(model: Module, owners: tuple[Module, ...]) -> tuple[Any, Any]:
    """A compiled step without a mask, and one with positions and a mask."""
    from burnish.plan import compile  # noqa: A004 - the word for it

    def step(ids: Tensor, queries: Tensor, *buffers: Tensor) -> Any:
        return model(ids, cache=InPlace(owners, queries, buffers))

    def masked_step(
        ids: Tensor, queries: Tensor, positions: Tensor, mask: Tensor, *buffers: Tensor
    ) -> Any:
        return model(ids, mask, positions, cache=InPlace(owners, queries, buffers))

    return compile(step), compile(masked_step)


def _is_plan(made: Any) -> bool:
    """Whether calls of a signature run kernels."""
    return hasattr(made, "segments")


def _widened(mask: Any, ids: Tensor, length: int, room: int) -> Tensor:
    """A mask (N, past + T) with ones behind it, which causality hides."""
    shown = np.ones((ids.shape[0], room), np.int64)
    if mask is not None:
        given = np.asarray(getattr(mask, "data", mask))
        if given.shape != (ids.shape[0], length):
            raise InputError(
                f"decoder: expected an attention_mask of shape "
                f"{(ids.shape[0], length)}, past and new positions, got {given.shape}"
            )
        shown[:, :length] = given
    return Tensor.wrap(shown, ids.device)
