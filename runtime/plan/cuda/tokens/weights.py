"""Weights of a model as the kernels of a step of one token read them."""

from __future__ import annotations

from typing import Any

import numpy as np

from burnish.backend import Device
from burnish.backend.cuda.decoding import decode_attention, few_rows
from burnish.backend.cuda.decoding.few_rows import Norm, Weight
from burnish.lowbit.packed import Packed
from burnish.nn.core.param import Stored, version
from burnish.ops.quantized.small import unpacked
from burnish.plan.graph import Constant, Node

_CPU = Device("cpu")


class Weights:
    """What kernels read instead of parameters, for all plans of a model on a device."""

    def __init__(self, device: Device):
        self.device = device
        self._kept: dict[Any, tuple[Any, Any]] = {}

    def find(self, node: Node, half: str) -> Weight | None:
        """A product's weight, as kernels read it; None where none does."""
        weight, bias = node.args[1:3]
        if not isinstance(weight, Constant) or len(weight.shape) != 2:
            return None
        stored, turned = weight.stored, bool(node.options.get("turned"))
        if stored is None or not (bias is None or isinstance(bias, Constant)):
            return None
        key, now = (id(stored), half, turned), version(stored)
        known = self._kept.get(key)
        if known is None or known[0] is not now:
            known = self._kept[key] = now, self._made(stored, half, turned)
        made: Weight | None = known[1]
        if made is None or bias is None:
            return made
        both = (id(stored), *map(id, bias.sources))
        known = self._kept.get(both)
        now = [version(each) for each in bias.sources]
        if known is None or any(a is not b for a, b in zip(known[0], now, strict=True)):
            flat = _float(bias.make()).reshape(-1)
            known = self._kept[both] = now, flat
        return made._replace(bias=known[1]) if known[1].size == made.outs else None

    def norm(self, kind: str, node: Node) -> Norm:
        """The norm of a node, whose weight and bias are constants or None."""
        own = [
            None if p is None else _float(p.make()).reshape(-1) for p in node.args[1:]
        ]
        gain, shift = [*own, None, None][:2]
        return Norm(kind, gain, shift, float(node.options["eps"]))

    def room(self, *sizes: int) -> Any:
        """Where attention adds up its parts, for (N, H, K, D, S)."""
        return decode_attention.Room(*sizes)

    def _made(self, stored: Stored, half: str, turned: bool) -> Weight | None:
        held = stored.held
        if isinstance(held, Packed) and not turned:
            made = self._codes(held)
            if made is not None:
                return made
        array = stored.data
        if array.dtype not in (np.float32, np.float16):
            return None
        if turned:
            array = array.T
        outs, ins = array.shape
        kind = half or ("float16" if array.dtype == np.float16 else "float")
        if half and array.dtype != half:
            array = few_rows.halved(array, half)
        array = array if array.flags.c_contiguous else array.copy(order="C")
        return Weight(kind, array, outs, ins)

    def _codes(self, held: Packed) -> Weight | None:
        kind, shape = held.scheme.kind, held.shape
        level = held.scheme.level
        block = few_rows.blocks(shape, level.counts(shape), level.blocks(shape)[-1])
        if not kind.whole or kind.bits not in (4, 8) or not block:
            return None
        here = held.put(_CPU)
        numbers = unpacked(here.codes, here.scheme.kind, here.scheme.store, shape)
        counts = shape[0], shape[1] // block

        def spread(part: Any) -> Any:
            wide = np.asarray(part).astype(np.float32)
            rows = (
                wide.reshape(counts) if wide.size > 1 else np.broadcast_to(wide, counts)
            )
            return self.device.put(np.ascontiguousarray(rows))

        codes = self.device.put(few_rows.coded(np.asarray(numbers), kind.bits))
        zeros = None if here.zero_points is None else spread(here.zero_points)
        name = "int8" if kind.bits == 8 else "int4"
        return Weight(
            name, codes, shape[0], shape[1], None, spread(here.scales), zeros, block
        )


def _float(array: Any) -> Any:
    made = array.astype(np.float32)
    return made if made.flags.c_contiguous else made.copy(order="C")
