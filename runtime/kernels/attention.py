"""Attention and its gradients by kernels, without the matrix of scores."""

from __future__ import annotations

from typing import Any

import numpy as np

from burnish.kernels import direct
from burnish.kernels.forms import attention_gradient_room, attention_room

_FEW = 1 << 16
"""Products below which a call of the kernel costs more than it spares."""


def fits(q: Any, k: Any, v: Any, mask: Any) -> bool:
    """Whether kernels do attention of these arrays, or of tensors like them

    q (..., H, T, D), k (..., G, S, D), v (..., G, S, E), with H a multiple of G; the
    mask broadcasts to (..., H, T, S). One axis before the heads at most.
    """
    rank = len(q.shape)
    if any(a.dtype != np.float32 for a in (q, k, v)) or not 2 <= rank <= 4:
        return False
    (batches, heads, queries, size), k4, v4 = (_four(a.shape) for a in (q, k, v))
    groups, keys, values = k4[1], k4[2], v4[3]
    if batches * heads * queries * keys * size < _FEW or direct.usable() is None:
        return False
    if k4 != (batches, groups, keys, size) or heads % groups or not values:
        return False
    if v4 != (batches, groups, keys, values) or {len(k.shape), len(v.shape)} != {rank}:
        return False
    full = (batches, heads, queries, keys)[-rank:]
    return mask is None or (
        mask.dtype in (np.float32, np.bool_) and _broadcasts(mask.shape, full)
    )


def attended(
    q: Any,
    k: Any,
    v: Any,
    mask: Any,
    scale: float,
    is_causal: bool,
    kept: Any = None,
    keep: Any = None,
    keep_factor: float = 1.0,
) -> Any:
    """softmax(q @ k.T * scale, masked) @ v of arrays that `fits` takes

    keep: booleans (..., H, T, S) that drop weights where they are False; the others are
    multiplied by keep_factor.
    kept: (..., H, T, 2) for what the gradient needs of each query: its greatest score,
    and the inverse of the sum of its exponentials.
    """
    fields = _fields(q, k, v, mask, is_causal)
    size, keys, values = (fields[name] for name in ("size", "keys", "values"))
    out = np.empty((*q.shape[:-1], values), np.float32)
    parts = _parts(fields, 1, fields["batches"] * fields["heads"])
    room = attention_room(size, keys, values)
    direct.launch(
        "attention", parts, **fields, **_steps("out", out), kept=kept,
        space=np.empty(parts * room, np.float32), room=room,
        zero_if_empty=mask is not None, scale=scale, blocked=-np.inf,
        **_dropping(keep, keep_factor),
    )  # fmt: skip
    return out


def attention_gradient(
    g: Any,
    y: Any,
    kept: Any,
    q: Any,
    k: Any,
    v: Any,
    mask: Any,
    scale: float,
    is_causal: bool,
    keep: Any = None,
    keep_factor: float = 1.0,
) -> tuple[Any, Any, Any]:
    """The gradients of q, k and v, given `attended`'s result and what it kept."""
    fields = _fields(q, k, v, mask, is_causal)
    size, keys, values = (fields[name] for name in ("size", "keys", "values"))
    dq, dk, dv = (np.empty(a.shape, np.float32) for a in (q, k, v))
    given = zip(("g", "y", "dq", "dk", "dv"), (g, y, dq, dk, dv), strict=True)
    for name, array in given:
        fields |= _steps(name, array)
    units = fields["batches"] * fields["heads"] // fields["shared"]
    parts = _parts(fields, 3, units)
    room = attention_gradient_room(size, keys, values)
    direct.launch(
        "attention_gradient", parts, **fields, kept=kept, scale=scale, room=room,
        space=np.empty(parts * room, np.float32), **_dropping(keep, keep_factor),
    )  # fmt: skip
    return dq, dk, dv


def _fields(q: Any, k: Any, v: Any, mask: Any, is_causal: bool) -> dict[str, Any]:
    """What both records say of the inputs."""
    sizes = sizes_of(q.shape, v.shape)
    fields: dict[str, Any] = {"mask": None, "mask_is_bool": 0}
    fields |= {f"mask_{axis}": 0 for axis in ("batch", "head", "query", "key")}
    if mask is not None:
        scores = (sizes[name] for name in ("batches", "heads", "queries", "keys"))
        seen = np.broadcast_to(mask, tuple(scores))
        steps = (step // mask.itemsize for step in seen.strides)
        fields |= zip(list(fields)[2:], steps, strict=True)
        fields |= {"mask": mask, "mask_is_bool": mask.dtype == np.bool_}
    for name, part in zip("qkv", (q, k, v), strict=True):
        fields |= _steps(name, part)
    return fields | sizes | {"is_causal": is_causal}


def _dropping(keep: Any, factor: float) -> dict[str, Any]:
    """What both records say of dropout's mask, whose bytes are in memory."""
    mask = None if keep is None else np.ascontiguousarray(keep)
    return {"keep": mask, "keep_bound": -1, "keep_factor": factor}


def sizes_of(q: tuple[int, ...], v: tuple[int, ...]) -> dict[str, int]:
    """The sizes in the records of attention, from the shapes of queries and values."""
    batches, heads, queries, size = _four(q)
    _, groups, keys, values = _four(v)
    return {
        "batches": batches, "heads": heads, "shared": heads // groups,
        "queries": queries, "keys": keys, "size": size, "values": values,
    }  # fmt: skip


def _steps(name: str, array: Any) -> dict[str, Any]:
    """An array, contiguous, and the distances between its batches, heads and rows."""
    _, heads, rows, width = _four(array.shape)
    steps = {"batch": heads * rows * width, "head": rows * width, "row": width}
    found = {f"{name}_{axis}": step for axis, step in steps.items()}
    return {name: np.ascontiguousarray(array), **found}


def _parts(fields: dict[str, Any], work: int, units: int) -> int:
    pairs = fields["batches"] * fields["heads"] * fields["queries"] * fields["keys"]
    products = work * pairs * (fields["size"] + fields["values"])
    return min(direct.shares(products / 4), units)


def _four(shape: Any) -> tuple[int, ...]:
    return (1,) * (4 - len(shape)) + tuple(shape)


def _broadcasts(shape: Any, full: tuple[int, ...]) -> bool:
    """Whether a shape broadcasts to this one, without more axes than it."""
    behind = full[len(full) - len(shape) :]
    return len(behind) == len(shape) and all(
        n in (1, size) for n, size in zip(shape, behind, strict=True)
    )
