"""TokenPlan: a model's step of one token as one CUDA graph, for every position.

The new ids, their position and the cache are at fixed places on the GPU. A run reads
them there, writes new keys and values into the cache, and leaves logits at a fixed
place too: replaying the graph needs nothing of the host.
"""

from __future__ import annotations

import operator
import weakref
from typing import Any

import numpy as np

from burnish.backend.cuda.decoding import few_rows
from burnish.backend.cuda.graphs import graphs
from burnish.caches import Cache, InPlace
from burnish.capture import CaptureError, written
from burnish.capture.ref import Ref
from burnish.nn import Module
from burnish.nn.core.param import Stored, version
from burnish.plan.cuda.tokens.graph import Launches
from burnish.plan.cuda.tokens.weights import Weights
from burnish.plan.cuda.units.whole import WholeTape
from burnish.tensor import Tensor


class TokenPlan:
    """The step for caches of one shape.

    ids (N, 1), queries (1,), positions (N, 1), mask (N, S): what a run reads, int64;
    the last two are None where the model is called without them. logits (N, V).
    """

    def __init__(
        self,
        model: Module,
        shapes: dict[Module, list[tuple[int, ...]]],
        room: graphs.Room,
        weights: Weights,
        half: str,
        is_masked: bool,
    ):
        self._model, self._owners, self._half = model, tuple(shapes), half
        self._shapes = [shape for pair in shapes.values() for shape in pair]
        self._room, self._weights = room, weights
        self._device = weights.device
        self._cache: Any = None
        n, length = self._shapes[0][0], self._shapes[0][2]
        self._program: Any = None
        zeros, ones = self._device.xp.zeros, self._device.xp.ones
        with room.building():
            self.ids, self.queries = zeros((n, 1), np.int64), zeros(1, np.int64)
            self.positions: Any = zeros((n, 1), np.int64) if is_masked else None
            self.mask: Any = ones((n, length), np.int64) if is_masked else None
            self._build()

    @property
    def summary(self) -> str:
        """Its parts, in words."""
        own, _ = self._launches.count
        return (
            f"one CUDA graph for all positions, {graphs.launches(self._graph)} "
            f"launches, {own} of them products of few rows and attention with what is "
            f"around them; {self._half or 'float32'}"
        )

    @property
    def logits(self) -> Any:
        """What the last run has computed (N, V), until the next one."""
        made = self._program.filled(self._values).data
        return made.reshape(len(made), -1)

    def run(self) -> None:
        """Compute logits, on the current stream."""
        self._graph.launch()

    def running(self) -> Any:
        """In the `with` block its runs are behind those of the model's other plans."""
        return self._room.running()

    def check(self) -> None:
        """Build again where a parameter changed. Raises CaptureError for a module."""
        self._program.check()
        if not all(map(operator.is_, map(version, self._sources), self._seen)):
            self._build()

    # --- the cache ---

    def take(self, cache: Cache) -> None:
        """Have a cache's keys and values where the graph reads them."""
        if self.has(cache):
            return
        self.release()
        for room, held in zip(self._buffers, _flat(cache), strict=True):
            room[...] = _as(held, room.dtype)
        cache.hold(
            dict(zip(self._owners, _pairs(self._buffers, self._owners), strict=True))
        )
        self._cache = weakref.ref(cache)

    def has(self, cache: Cache) -> bool:
        """Whether a cache's arrays are the graph's."""
        return self._cache is not None and self._cache() is cache

    def release(self) -> None:
        """Give the cache that is here float32 arrays of its own."""
        cache = None if self._cache is None else self._cache()
        self._cache = None
        if cache is not None:
            own = [_as(room, np.dtype(np.float32)).copy() for room in self._buffers]
            pairs = _pairs(own, self._owners)
            cache.hold(dict(zip(self._owners, pairs, strict=True)))

    # --- how it is made ---

    def _build(self) -> None:
        room, xp = self._room, self._device.xp
        with room.building(), room.computing():
            wide = [xp.zeros(shape, np.float32) for shape in self._shapes]
            if self._program is None:
                self._program = self._captured(wide)
            self._launches = Launches(self._program, self._weights, self._half)
            if not hasattr(self, "_buffers"):
                dtype = np.dtype(np.float32)
                if self._half and self._launches.fits_half:
                    dtype = few_rows.halved(wide[0][:1, :1, :1], self._half).dtype
                self._buffers = [
                    each if each.dtype == dtype else xp.zeros(each.shape, dtype)
                    for each in wide
                ]
            given = [self._tensor(array) for array in self._inputs]
            self._values = self._program.values(given)
            self._launch_all()  # compiles kernels
            self._values = self._program.values(given)
            self._graph = room.captured(self._launch_all)
        program = self._program
        found = {id(i): i for i in program.fixed.values() if isinstance(i, Stored)}
        for module in program.watched.values():
            found |= {id(item): item for _, item in module.named_tensors()}
        self._sources = list(found.values())
        self._seen = [version(source) for source in self._sources]

    @property
    def _inputs(self) -> list[Any]:
        own = [self.ids, self.queries]
        if self.mask is not None:
            own += [self.positions, self.mask]
        return [*own, *self._buffers]

    def _tensor(self, array: Any) -> Tensor:
        return Tensor.wrap(array, self._device)

    def _launch_all(self) -> None:
        for launch in self._launches.every:
            launch(self._values)

    def _captured(self, wide: list[Any]) -> Any:
        """The step's program, with room for keys and values at places of its own."""
        model, owners = self._model, self._owners

        def step(ids: Tensor, queries: Tensor, *buffers: Tensor) -> Any:
            return model(ids, cache=InPlace(owners, queries, buffers))

        def masked(
            ids: Tensor,
            queries: Tensor,
            positions: Tensor,
            mask: Tensor,
            *buffers: Tensor,
        ) -> Any:
            return model(ids, mask, positions, cache=InPlace(owners, queries, buffers))

        own = [self.ids, self.queries]
        if self.mask is not None:
            own += [self.positions, self.mask]
        given = tuple(map(self._tensor, [*own, *wide]))
        program = written(
            WholeTape(), masked if self.mask is not None else step, given, {}
        )
        if not isinstance(program.results, Ref):
            raise CaptureError("the model gives more than logits")
        return program


def _flat(cache: Cache) -> list[Any]:
    return [room for pair in cache.rooms(1).values() for room in pair]


def _pairs(arrays: list[Any], owners: tuple[Module, ...]) -> list[list[Any]]:
    count = len(arrays) // len(owners)
    return [arrays[i * count : (i + 1) * count] for i in range(len(owners))]


def _as(array: Any, dtype: Any) -> Any:
    """An array of a cache in another of its dtypes; uint16 are bits of bfloat16."""
    if array.dtype == dtype:
        return array
    wide = few_rows.widened(array)
    return (
        wide
        if dtype == np.float32
        else few_rows.halved(wide, "bfloat16" if dtype == np.uint16 else "float16")
    )
