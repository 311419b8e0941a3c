"""Products of a few rows with weights, which kernels read once and in place."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from burnish.backend.cuda.decoding import overlap
from burnish.backend.cuda.kernels import ELEMENTS, kernel, structure

_NOTHING = np.uint64(0)
MATRIX = 2
"""Rows above which half precision goes through matrix instructions."""

MOST = {"": 16, "float16": 32, "bfloat16": 32}
"""The most rows that kernels take, by the half precision that they may compute in."""

_SHARED = 40 << 10
"""Bytes of rows that a block holds."""

_LOADS = {"float": 4, "float16": 8, "bfloat16": 8, "int8": 8, "int4": 16}
"""Values of a weight that a thread loads at once, where it sums products itself."""

_WIDE = {"float": 4, "float16": 8, "bfloat16": 8, "int8": 16, "int4": 32}
"""The same for matrix instructions."""

ACTIVATIONS = ("none", "relu", "gelu", "gelu_tanh", "sigmoid", "tanh", "swish")
"""Functions that are applied before a result is stored."""


class Weight(NamedTuple):
    """A matrix (outs, ins), and the bias of its product.

    kind: "float", "float16" or "bfloat16" values; or codes from 0, "int8" a byte each,
    "int4" eight in four bytes, with scales and perhaps zero points (outs, ins / block).
    bias, scales, zeros: of float32.
    """

    kind: str
    values: Any
    outs: int
    ins: int
    bias: Any = None
    scales: Any = None
    zeros: Any = None
    block: int = 0


class Norm(NamedTuple):
    """Normalisation before the product: "layer" or "rms", weight, bias or None."""

    kind: str
    gain: Any
    shift: Any
    eps: float


def takes(rows: int, weights: list[Weight], half: str) -> bool:
    """Whether there is a kernel for so many rows of these weights."""
    first = weights[0]
    step = max(_WIDE[first.kind], 8) if half else max(_LOADS[first.kind], 8)
    same = all(w[0] == first.kind and w.block == first.block for w in weights)
    return same and 0 < rows <= MOST[half] and not first.ins % step and len(weights) < 5


def takes_norm(rows: int, ins: int, half: str) -> bool:
    """Whether a product can standardize its rows itself."""
    return rows <= (MATRIX if half else 4) and 4 * rows * ins <= _SHARED


def product(
    x: Any,
    weights: list[Weight],
    *,
    half: str = "",
    act: tuple[str, float] = ("none", 0.0),
    gated: bool = False,
    norm: Norm | None = None,
    residual: Any = None,
    out: Any = np.float32,
) -> Any:
    """act(norm(x) @ weight.T + bias) + residual, (rows, outs): weights side by side.

    x (rows, ins) of float32 or float16. gated: the weights are two of one shape, and
    the result is act(first) * second. half: what products are rounded to where that is
    faster. out: the result's dtype.
    """
    import cupy

    rows, ins = x.shape
    first, split = weights[0], half and rows > MATRIX
    columns = first.outs if gated else sum(w.outs for w in weights)
    y = cupy.ndarray((rows, columns), out)
    x = _read_in_packs(x)
    given = structure(np.array([_record(w) for w in weights], np.int64))
    setting: dict[str, Any] = {
        "wide": "float",
        "weights": first.kind,
        "rows": rows,
        "count": len(weights),
        "gated": gated,
        "act": act[0],
        "low": float(act[1]),
        "input": ELEMENTS[x.dtype.name],
        "output": ELEMENTS[np.dtype(out).name],
    }
    beside = _NOTHING if residual is None else residual
    steps = x.strides[0] // x.itemsize, columns, residual_step(residual)
    sizes = tuple(map(np.int32, (ins, first.block or ins, *steps)))
    setting["overlaps"] = overlap.overlaps(x.data.device_id)
    if split:
        codes, shared = _WIDE[first.kind], 0
        tiles = 2 if gated or columns >= 8192 else 1
        each = 16 if gated else 16 * tiles
        own = -(-columns // each), ins, codes, tiles
        parts, depth, turns = _parts(*own, setting["overlaps"])
        setting |= {"codes": codes, "tiles": tiles, "depth": depth, "half": half}
        made = kernel("some_rows", **setting, parts=parts, turns=turns)
        arguments: tuple[Any, ...] = (x, given, beside, y, *sizes)
    else:
        codes, parts = _LOADS[first.kind], 1
        outs, splits, depth = _shape(columns, ins, rows, codes, gated)
        setting |= {"codes": codes, "outs": outs, "splits": splits, "depth": depth}
        each = outs * (8 // splits) // (2 if gated else 1)
        made = kernel("few_rows", **setting, norm="" if norm is None else norm.kind)
        shared = 4 * rows * ins if norm else 0
        gain, shift, eps = (None, None, 0.0) if norm is None else norm[1:]
        by = [_NOTHING if part is None else part for part in (gain, shift)]
        arguments = (x, given, *by, beside, y, np.float32(eps), *sizes)
    counts = [-(-w.outs // each) for w in (weights[:1] if gated else weights)]
    overlap.run(made, (sum(counts) * parts,), (256,), arguments, shared)
    return y


def _parts(
    blocks: int, ins: int, codes: int, tiles: int, clusters: bool
) -> tuple[int, int, int]:
    """Blocks that share outputs, windows of a warp's loads, and how often it loads.

    clusters: whether blocks can read each other's shared memory (as of Hopper).

    There should be a block for every part of a GPU, and loads enough on their way.
    """
    windows = -(-ins // (4 * codes))
    parts = 1
    while (
        clusters and parts < 4 and blocks * parts < 132 and windows >= 8 * (parts + 1)
    ):
        parts += 1
    each = -(-windows // (8 * parts))
    depth = max(1, min(each, (4 if codes == 8 else 2) // tiles))
    return parts, depth, -(-each // depth)


def _shape(
    columns: int, ins: int, rows: int, codes: int, gated: bool
) -> tuple[int, int, int]:
    """Outputs of a warp, warps that share a row, loads of a thread before it sums.

    There should be blocks for every part of a GPU, and loads enough on their way.
    """
    outs = 4 if columns >= 8192 or rows > 4 else 2
    if gated:
        outs = max(outs, 2)
    splits = 1
    while splits < 8 and columns * splits // (8 * outs) < 264:
        splits *= 2
    while splits > 1 and ins < 32 * codes * splits // 2:
        splits //= 2
    passes = -(-ins // (32 * codes * splits))
    depth = 1 if rows > 4 else min(4 if outs == 2 else 2, passes)
    return outs, splits, depth


def residual_step(residual: Any) -> int:
    """Elements from one of its rows to the next."""
    if residual is None or residual.shape[0] == 1:
        return 0
    return int(residual.strides[0] // residual.itemsize)


def _record(w: Weight) -> list[int]:
    parts = (w.values, w.scales, w.zeros, w.bias)
    return [0 if part is None else part.data.ptr for part in parts] + [w.outs]


def _read_in_packs(x: Any) -> Any:
    """The rows, copied where they cannot be read 16 bytes at a time."""
    import cupy

    aligned = not (x.data.ptr | x.strides[0]) & 15 and x.strides[1] == x.itemsize
    return x if aligned else cupy.ascontiguousarray(x)


def coded(numbers: np.ndarray[Any, Any], bits: int) -> np.ndarray[Any, Any]:
    """Signed codes (outs, ins) as kernels read them."""
    raised = (numbers.astype(np.int16) + (1 << bits - 1)).astype(np.uint8)
    if bits == 8:
        return raised
    made: np.ndarray[Any, Any] = raised[:, ::2] | raised[:, 1::2] << 4
    return np.ascontiguousarray(made)


def halved(array: Any, half: str) -> Any:
    """A float32 array in half precision; bfloat16 as the bits of each number."""
    if half == "float16":
        return array.astype(np.float16)
    bits = array.astype(np.float32, copy=False).view(np.uint32)
    raised = bits + (bits >> np.uint32(16) & np.uint32(1)) + np.uint32(0x7FFF)
    return (raised >> np.uint32(16)).astype(np.uint16)


def widened(array: Any) -> Any:
    """The float32 array of one in half precision."""
    if array.dtype != np.uint16:
        return array.astype(np.float32)
    return (array.astype(np.uint32) << np.uint32(16)).view(np.float32)


def blocks(shape: tuple[int, ...], counts: tuple[int, ...], block: int) -> int:
    """Values of a row that share a scale, for blocks by axis; 0 where unsupported."""
    if math.prod(counts) == 1:
        found = shape[1]
    elif counts[0] != shape[0] or len(counts) > 2:
        return 0
    else:
        found = min(block, shape[1])
    return 0 if found % 32 or shape[1] % found else found
