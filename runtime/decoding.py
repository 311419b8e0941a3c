"""Decoding with one plan for all positions.

A language model's forward takes a `Cache`, whose arrays have room for more positions
than there are yet. `Decoder` runs a model's steps of a token as a plan of kernels:
where the new rows of keys and values go, and what a query sees, are data of a call, so
that a plan serves every position. On a GPU it is one CUDA graph, see
`burnish.plan.cuda.tokens.plan`.

    decoder, cache = Decoder(model), Cache(1024)
    logits = decoder(prompt, cache=cache)       # as the model does it
    logits = decoder(token, cache=cache)        # by the plan

N batch, T new positions, V vocabulary.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from burnish import ops
from burnish.autodiff import recording
from burnish.backend import Device, namespace
from burnish.caches import Cache, InPlace
from burnish.errors import CaptureError, InputError
from burnish.nn import Module
from burnish.tensor import Tensor

PRECISIONS = ("fp32", "tf32", "fp16", "bf16")
"""Precisions in which steps of a token may be computed; a CPU has "fp32" and "bf16"."""

_FEW = 2
"""New positions up to which a call is planned: more of them are products that the plain
call is fast at, and a plan would keep weights packed a second time."""


class Decoder:
    """A language model whose steps of a token are planned; called as the model is.

    What is no such step, or has no plan, runs as the model does it: prompts, a model
    whose code asks for the cache's length. `explain()` says why. precision: on a GPU,
    "fp32" and "tf32" read weights as they are; with "fp16" and "bf16" steps have
    weights and a cache in half precision, and sums, norms, softmax and logits in single
    precision. Quantized weights of 8 and 4 bits become floats in registers in each. On
    a CPU steps are those of `burnish.compile` with that precision: with "bf16" they
    read half as many bytes of weights, and the cache stays float32.
    """

    def __init__(self, model: Module, precision: str = "fp32"):
        if precision not in PRECISIONS:
            raise InputError(
                f"Decoder: expected precision {', '.join(map(repr, PRECISIONS))}, "
                f"got {precision!r}"
            )
        if model.device.is_autodiff:
            raise InputError(
                f"Decoder: expected a model for inference, got one on "
                f"{str(model.device)!r}; give it model.valid()"
            )
        self.model, self._precision = model, precision
        self._on_gpu: Any = None
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
        if self._on_gpu is not None and cache is not None:
            self._on_gpu.release(cache)
        made = self.model(ids, attention_mask, position_ids, cache=cache)
        return made

    def followed(
        self,
        ids: Tensor,
        mask: Any,
        cache: Cache,
        count: int,
        ends: list[int],
        rest: int,
        **choice: Any,
    ) -> Tensor | None:
        """ids (N, T) with tokens behind them by a loop on the GPU; None without one.

        mask: `attention_mask` (N, T) or None; ends: the tokens that end a row, rest:
        the one behind them; choice: `burnish.generation.follow`'s.
        """
        if is_on_cpu(ids.device) or recording.tape is not None:
            return None
        if self._why or not ids.shape[1] or count < 1:
            return None
        given = (Tensor(mask, "int64"), _places(mask)) if mask is not None else ()
        logits = self.model(ids, *given, cache=cache).data[:, -1]
        if not cache.is_plain or logits.dtype != np.float32:
            return None
        from burnish.backend.cuda.decoding.sampling import Choice

        how = Choice(
            bool(choice.get("do_sample")),
            float(choice.get("temperature", 1.0)),
            choice.get("top_k"),
            float(choice.get("top_p", 1.0)),
            rest,
        )
        banned = [*choice.get("suppress", ())], [*choice.get("begin_suppress", ())]
        try:
            loop = self._loop()
            made = loop.follow(logits, cache, mask, count, how, ends, banned)
        except CaptureError as error:
            self._why = str(error)
            return None
        return ops.concat([ids, Tensor.wrap(made, ids.device)], axis=1)

    def _loop(self) -> Any:
        if self._on_gpu is None:
            from burnish.plan.cuda.tokens.loop import TokenLoop

            self._on_gpu = TokenLoop(self.model, self._precision)
        return self._on_gpu

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
        if self._on_gpu is not None:
            return "\n".join(plan.summary for plan in self._on_gpu.plans.values())
        reports = [made.explain() for pair in self._compiled.values() for made in pair]
        return "\n".join(reports)

    @property
    def known(self) -> list[Any]:
        """The plans that there are."""
        if self._on_gpu is not None:
            return list(self._on_gpu.plans.values())
        every = [made for pair in self._compiled.values() for made in pair]
        return [each for made in every for each in made.known if _is_plan(each)]

    def _may_plan(self, ids: Tensor) -> bool:
        few = _FEW if is_on_cpu(ids.device) else 1
        return recording.tape is None and not self._why and 0 < ids.shape[1] <= few

    def _step(self, ids: Tensor, mask: Any, positions: Any, cache: Cache) -> Any:
        """The plan's output for new ids; None where there is no plan."""
        if not is_on_cpu(ids.device):
            return self._step_on_gpu(ids, mask, positions, cache)
        time, start = ids.shape[1], cache.length
        buffers = cache.rooms(time)
        flat = [
            Tensor.wrap(room, ids.device) for pair in buffers.values() for room in pair
        ]
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

    def _step_on_gpu(self, ids: Tensor, mask: Any, positions: Any, cache: Cache) -> Any:
        shown, at = None, None
        if mask is not None or positions is not None:
            room = next(iter(cache.rooms(1).values()))[0].shape[2]
            shown = _widened(mask, ids, cache.length + 1, room).data
            at = cache.length if positions is None else Tensor(positions).data
        try:
            return self._loop().step(ids, shown, at, cache)
        except CaptureError as error:
            self._why = str(error)
            return None

    def _functions(self, owners: tuple[Module, ...]) -> tuple[Any, Any]:
        if owners not in self._compiled:
            self._compiled[owners] = _steps(self.model, owners, self._precision)
        return self._compiled[owners]


def _steps(
    model: Module, owners: tuple[Module, ...], precision: str
) -> tuple[Any, Any]:
    """A compiled step without a mask, and one with positions and a mask."""
    from burnish.plan import compile  # noqa: A004 - the word for it

    def step(ids: Tensor, queries: Tensor, *buffers: Tensor) -> Any:
        return model(ids, cache=InPlace(owners, queries, buffers))

    def masked_step(
        ids: Tensor, queries: Tensor, positions: Tensor, mask: Tensor, *buffers: Tensor
    ) -> Any:
        return model(ids, mask, positions, cache=InPlace(owners, queries, buffers))

    kinds = step, masked_step
    plain, masked = (compile(each, precision=precision) for each in kinds)
    return plain, masked


def is_on_cpu(device: Device) -> bool:
    """Whether steps on a device are those of a CPU's plan."""
    return device.kind == "cpu"


def _places(mask: Any) -> Tensor:
    """Where the tokens of padded prompts are (N, T), counted from the first one."""
    return Tensor(namespace(mask).maximum(mask.cumsum(1) - 1, 0), "int64")


def _is_plan(made: Any) -> bool:
    """Whether calls of a signature run kernels."""
    return hasattr(made, "segments")


def _widened(mask: Any, ids: Tensor, length: int, room: int) -> Tensor:
    """A mask (N, past + T) with ones behind it, which causality hides."""
    xp = ids.device.xp
    shown = xp.ones((ids.shape[0], room), np.int64)
    if mask is not None:
        given = xp.asarray(mask.data if isinstance(mask, Tensor) else mask)
        if given.shape != (ids.shape[0], length):
            raise InputError(
                f"decoder: expected an attention_mask of shape "
                f"{(ids.shape[0], length)}, past and new positions, got {given.shape}"
            )
        shown[:, :length] = given
    return Tensor.wrap(shown, ids.device)
