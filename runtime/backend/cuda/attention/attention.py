"""Attention in one kernel or three, and its gradients in one or two."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from burnish.backend.cuda.calls import Run, called
from burnish.backend.cuda.kernels import (
    ELEMENTS,
    LONG,
    by_value,
    has_fast_tf32,
    is_hopper,
    kernel,
    passed,
)
from burnish.backend.cuda.libraries import workspace
from burnish.backend.cuda.norms.rows import (
    contiguous,
    launcher,
    softmax_gradient,
    takes,
)
from burnish.backend.cuda.products import cublaslt

_MASKS = ("bool", "float16", "bfloat16", "float32")
_WARPS = 4
_FEW = 128
"""Keys that a block of eight warps has whole, with all gradients in one kernel."""
_LOG2E = 1.4426950408889634
_BLOCKS = 132
"""Fewer blocks of queries leave parts of a GPU idle: smaller ones then."""


def attended(q: Any, k: Any, v: Any, mask: Any, scale: float, is_causal: bool) -> Any:
    """softmax(q @ k.mT * scale + mask) @ v, or None where no kernels do it.

    q (..., T, D), k (..., S, D), v (..., S, E), at most four axes; mask broadcasts to
    (..., T, S): booleans, True where a key takes part, or numbers to add.
    """
    return called(prepared, (q, k, v, mask, scale, is_causal), {})


def prepared(
    q: Any, k: Any, v: Any, mask: Any, scale: float, is_causal: bool
) -> Run | None:
    """How to compute `attended` of arrays alike; None where no kernels do it."""
    if not 2 <= q.ndim <= 4 or not takes(q, k, v) or q.shape[:-2] != k.shape[:-2]:
        return None
    shape = (*q.shape[:-1], k.shape[-2])
    layout = _described(mask, shape)
    if layout is None or v.shape[:-1] != k.shape[:-1]:
        return None
    whole = _in_one(q, k, v, mask, layout, scale, is_causal)
    run = whole or _in_three(q, k, v, mask, layout, scale, is_causal)
    return run and (lambda q, k, v, mask, *_: run(q, k, v, mask)[0])


def attended_for_gradient(
    q: Any, k: Any, v: Any, mask: Any, scale: float, is_causal: bool
) -> Any:
    """(attention, what its gradients read beside it), or None.

    Read are the logarithms of its queries' sums in half precision, weights in single.
    """
    if not are_alike(q, k, v) or q.dtype.char not in "eEf" or not takes(q, k, v):
        return None
    if q.dtype.char == "f":
        return called(_prepared_in_three, (q, k, v, mask, scale, is_causal), {})
    layout = _described(mask, (*q.shape[:-1], k.shape[-2]))
    if layout is None:
        return None
    q, k, v = (a if _in_packs(a) else contiguous(a) for a in (q, k, v))
    whole = _in_one(q, k, v, mask, layout, scale, is_causal, True)
    return None if whole is None else whole(q, k, v, mask)


def are_alike(q: Any, k: Any, v: Any) -> bool:
    """Whether `attended_for_gradient` takes heads of these shapes."""
    if len(q.shape) != 4 or v.shape != k.shape:
        return False
    return bool(q.shape[:2] == k.shape[:2] and q.shape[-1] == k.shape[-1])


def attention_gradient(
    g: Any,
    y: Any,
    logs: Any,
    q: Any,
    k: Any,
    v: Any,
    mask: Any,
    scale: float,
    is_causal: bool,
) -> Any:
    """The gradients of q, k and v in `attended_for_gradient`; None for no kernels.

    logs: what is read beside y.
    """
    if q.dtype.char == "f":
        return _gradient_by_weights(g, logs, q, k, v, scale)
    import cupy

    q, k, v, y, g = (a if _in_packs(a) else contiguous(a) for a in (q, k, v, y, g))
    n, h, t, d = q.shape
    keys = k.shape[-2]
    kind, steps = _described(mask, (n, h, t, keys))
    made = [
        cupy.ndarray((n, rows, h, d), q.dtype).transpose(0, 2, 1, 3)
        for rows in (t, keys, keys)
    ]
    arrays = (q, k, v, y, g, *made)
    strides = [step for array in arrays for step in _steps(array)]
    sizes = by_value(np.array([*strides, *steps, h], np.int64))
    held, sums = q if mask is None else mask, cupy.ndarray((n, h, t), np.float32)
    setting = {
        "element": ELEMENTS[q.dtype.name],
        "wide": "float",
        "d": d,
        "mask": kind,
        "mask_type": "bool" if mask is None else ELEMENTS[mask.dtype.name],
        "causal": is_causal,
    }
    ends = np.float32(scale), np.int32(t), np.int32(keys), sizes
    if keys <= _FEW and d <= 64 and n * h >= _BLOCKS:
        warps = 2 * max(1, -(-keys // 32))
        name, by_query = "attention_gradient_whole", bool(steps[2])
        run = kernel(name, warps=warps, by_query=by_query, **setting)
        run((n * h,), (32 * warps,), (*arrays, held, logs, sums, *ends))
        return made
    for form, rows, tile in (
        ("queries", t, 32),
        ("keys", keys, 32 if d <= 64 else 16),
    ):
        run = kernel(
            "attention_gradient", form=form, tile=tile, warps=_WARPS, **setting
        )
        blocks = (-(-rows // (16 * _WARPS)), n * h)
        run(blocks, (32 * _WARPS,), (*arrays, held, logs, sums, *ends))
    return made


def _gradient_by_weights(
    g: Any, weights: Any, q: Any, k: Any, v: Any, scale: float
) -> Any:
    g = contiguous(g)
    slope = cublaslt.matmul(g, v.mT)
    if slope is not None:
        slope = softmax_gradient(slope, weights, -1, "softmax")
    if slope is None:
        return None
    parts = (
        cublaslt.matmul(slope, k, scale=scale),
        cublaslt.matmul(slope.mT, q, scale=scale),
        cublaslt.matmul(weights.mT, g),
    )
    return None if any(part is None for part in parts) else parts


def _described(mask: Any, shape: tuple[int, ...]) -> Any:
    """(kind of the mask, its strides along four axes); None for another mask."""
    if mask is None:
        return "", (0, 0, 0, 0)
    if mask.dtype.name not in _MASKS or mask.ndim > len(shape):
        return None
    lead, size = len(shape) - mask.ndim, mask.itemsize
    if any(o not in (1, n) for n, o in zip(shape[lead:], mask.shape, strict=True)):
        return None
    found = tuple(
        0 if n == 1 else step // size
        for n, step in zip(mask.shape, mask.strides, strict=True)
    )
    kind = "allowed" if mask.dtype == bool else "added"
    return kind, (0,) * (4 - len(found)) + found


def _in_one(
    q: Any,
    k: Any,
    v: Any,
    mask: Any,
    layout: Any,
    scale: float,
    is_causal: bool,
    kept: bool = False,
) -> Run | None:
    """By matrix instructions: half precision, TF32, or single in parts of TF32.

    Gives the logarithms of the queries' sums too, None unless they are `kept`.
    """
    from cupy import ndarray

    d, kind = q.shape[-1], q.dtype.char
    in_parts = kind == "f" and not workspace.rounds()
    if kind not in "eEf" or d % 16 or d > (64 if in_parts else 128):
        return None
    if in_parts and not has_fast_tf32():
        return None
    if v.shape[-1] != d or not all(map(_in_packs, (q, k, v))):
        return None
    n, h = (1, 1, *q.shape[:-2])[-2:]
    t, scores = q.shape[-2], n * h
    if scores >= 1 << 16:
        return None
    plain = mask is None and not is_causal and scale > 0 and k.shape[-2] > 0
    form = _form(kind != "f", in_parts, d, t, scores, plain)
    warps, shared = form["warps"], form.pop("shared", 0)
    blocks = (-(-t // (16 * form["tiles"] * warps)), scores)
    made = kernel(
        **form,
        element=ELEMENTS[q.dtype.name],
        wide="float",
        d=d,
        mask=layout[0],
        mask_type="bool" if mask is None else ELEMENTS[mask.dtype.name],
        by_query=bool(layout[1][2]),
        causal=is_causal,
        plain=plain,
        kept=kept,
    )
    steps = [step for array in (q, k, v) for step in _steps(array)]
    steps += (t * h * d, d, h * d)  # y's, which has its heads side by side
    sizes = by_value(np.array([*steps, *layout[1], h], np.int64))
    numbers = np.float32(scale * _LOG2E), np.int32(t), np.int32(k.shape[-2])
    ends = *passed(*numbers), sizes
    if shared:
        made.max_dynamic_shared_size_bytes = shared
    launch = made.kernel  # the current GPU's, as `kernels.bound` has it
    shape, dtype = q.shape, q.dtype

    def run(q: Any, k: Any, v: Any, mask: Any) -> tuple[Any, Any]:
        y = ndarray((n, t, h, d), dtype).transpose(0, 2, 1, 3)
        given = (q, k, v, y, q if mask is None else mask, *ends)
        logs = ndarray((n, h, t), np.float32) if kept else None
        beside = (logs,) if kept else ()
        launch(blocks, (32 * warps,), (*given, *beside), shared_mem=shared)
        return y if len(shape) == 4 else y.reshape(shape), logs

    return run


def _form(
    is_half: bool, in_parts: bool, d: int, t: int, heads: int, plain: bool
) -> dict[str, Any]:
    """The template for t queries a head, its tiles, and its shared memory in bytes."""
    if is_half and d in (64, 128) and is_hopper():
        if heads * -(-t // 64) <= 2 * _BLOCKS:
            keys, warps, resident = (128 if d == 64 else 64), 4, 2
        elif d == 64:
            keys, warps, resident = (64, 8, 2) if plain else (64, 4, 3)
        else:
            keys, warps, resident = 128, 8, 1
        return {
            "template": "attention_wide",
            "chip": "sm_90a",
            "warps": warps,
            "tiles": 1,
            "keys": keys,
            "resident": resident,
            "shared": 3 * 2 * keys * d * 2,
        }
    tiles = 2 if is_half and d <= 64 and heads * -(-t // 128) >= _BLOCKS else 1
    return {
        "template": "attention_parts" if in_parts else "attention",
        "warps": 4 if tiles > 1 or heads * -(-t // 64) >= _BLOCKS else 2,
        "tiles": tiles,
        "keys": 64 if d <= (80 if is_half else 64) else 32,
    }


def _steps(array: Any) -> list[int]:
    """Elements from one batch, head and row to the next."""
    steps = [step // array.itemsize for step in array.strides[:-1]]
    return [0] * (3 - len(steps)) + steps


def _in_packs(array: Any) -> bool:
    """Whether 16 bytes of a row can be read at a time."""
    *steps, last = array.strides
    return (
        last == array.itemsize
        and not array.data.ptr & 15
        and not any(step & 15 for step in steps)
    )


def _prepared_in_three(
    q: Any, k: Any, v: Any, mask: Any, scale: float, is_causal: bool
) -> Run | None:
    layout = _described(mask, (*q.shape[:-1], k.shape[-2]))
    return layout and _in_three(q, k, v, mask, layout, scale, is_causal)


def _in_three(
    q: Any, k: Any, v: Any, mask: Any, layout: Any, scale: float, is_causal: bool
) -> Run | None:
    """By two products and a softmax between them; gives the weights too."""
    from cupy import ndarray

    if mask is not None and mask.dtype not in (np.dtype(bool), q.dtype):
        return None
    first = cublaslt.prepared_scores(q, k, scale)
    if first is None:
        return None
    shape, (kind, steps) = (*q.shape[:-1], k.shape[-2]), layout
    last = cublaslt.prepared(ndarray(shape, q.dtype), v)
    heads = shape[-3] if len(shape) > 2 else 1
    rows, n = prod(shape[:-1]), shape[-1]
    index = "unsigned" if rows < LONG else "long long"
    setting = {"mask": kind, "causal": is_causal, "index": index}
    name, size = "attention_softmax", (rows, n, 1)
    softmax = launcher(name, size, q.dtype, True, holds=True, **setting)
    if last is None or softmax is None:
        return None
    sizes = passed(rows, n, heads, shape[-2], *steps)

    def run(q: Any, k: Any, v: Any, mask: Any, *_: Any) -> Any:
        scores = first(q, k)
        softmax(scores, scores, scores if mask is None else mask, *sizes)
        return last(scores, v), scores

    return run
