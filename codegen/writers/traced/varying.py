"""Find constants that Python computed from dynamic sizes, by their values.

Empirical: a rule is accepted where it gives the constants of all captures, which are of
three sizes for each dynamic axis.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import onnx_ir as ir

from burnish.codegen.writers.traced.sizes import Size, Varying, sized

if TYPE_CHECKING:
    from burnish.codegen.writers.traced.emitter import Emitter


def written(emit: Emitter, item: Varying) -> ir.Value | None:
    """Equal elements, counted ones, triangles, each also repeated, or one over a size.

    None for others.
    """
    if isinstance(item.captures[0], float):
        return _share(emit, item)
    arrays = [np.asarray(each) for each in item.captures]
    shape = tuple(
        sized(*sizes) for sizes in zip(*(a.shape for a in arrays), strict=True)
    )
    if not all(a.size for a in arrays):
        return None
    if (made := _uniform(emit, arrays, shape)) is not None:
        return made
    again = [axis for axis in range(len(shape)) if _repeats(arrays, axis)]
    for axis in again:
        arrays = [a.take([0], axis=axis) for a in arrays]
    once = tuple(1 if axis in again else n for axis, n in enumerate(shape))
    for rule in (_counted, _triangle):
        made = rule(emit, arrays, once)
        if made is not None:
            return made if once == shape else emit("Expand", made, emit.ints(shape))
    return None


def _repeats(arrays: list[Any], axis: int) -> bool:
    """Whether all elements along an axis are the first one's."""
    return all((a == a.take([0], axis=axis)).all() for a in arrays)


def _share(emit: Emitter, item: Varying) -> ir.Value | None:
    """1 / n"""
    over = [1 / each for each in item.captures if each]
    if len(over) < len(item.captures) or any(
        abs(n - round(n)) > 1e-9 * n for n in over
    ):
        return None
    size = sized(*map(round, over))
    assert isinstance(size, Size)
    count = emit("Cast", emit.value(size), to=int(ir.DataType.FLOAT))
    return emit("Reciprocal", count)


def _uniform(emit: Emitter, arrays: list[Any], shape: tuple[int, ...]) -> Any:
    first = arrays[0].ravel()[:1]
    if not all((a == first).all() for a in arrays):
        return None
    return emit("Expand", first.reshape(()), emit.ints(shape))


def _counted(emit: Emitter, arrays: list[Any], shape: tuple[int, ...]) -> Any:
    """start, start + step, ... along one axis"""
    long = [i for i, n in enumerate(shape) if isinstance(n, Size)]
    if len(long) != 1 or any(n != 1 for i, n in enumerate(shape) if i != long[0]):
        return None
    flat = [a.ravel() for a in arrays]
    longest = max(flat, key=len)
    if longest.dtype.kind not in "iuf" or len(longest) < 2:
        return None
    start, step = longest[0], longest[1] - longest[0]
    for line in flat:
        if not (line == start + step * np.arange(len(line))).all():
            return None
    kind = longest.dtype
    places = emit.counted(shape[long[0]])
    made = emit.cast(places, kind)
    if step != 1:
        made = emit("Mul", made, np.asarray(step, kind))
    if start != 0:
        made = emit("Add", made, np.asarray(start, kind))
    if len(shape) > 1:
        made = emit(
            "Unsqueeze", made, emit.ints(i for i in range(len(shape)) if i != long[0])
        )
    return made


def _triangle(emit: Emitter, arrays: list[Any], shape: tuple[int, ...]) -> Any:
    """One number on and below a diagonal of the last two axes, another one above."""
    if len(shape) < 2 or any(n != 1 for n in shape[:-2]):
        return None
    biggest = max(arrays, key=np.size)
    low, high = biggest[..., -1, 0].item(), biggest[..., 0, -1].item()
    for offset in range(-2, 3):
        if all(_is_triangle(a, low, high, offset) for a in arrays):
            break
    else:
        return None
    rows, columns = map(emit.counted, shape[-2:])
    rows = emit("Unsqueeze", rows, emit.ints([1]))
    if offset:
        rows = emit("Add", rows, np.int64(offset))
    below = emit("LessOrEqual", columns, rows)
    kind = biggest.dtype
    if kind.kind == "b":
        made = below if low else emit("Not", below)
    else:
        made = emit("Where", below, np.asarray(low, kind), np.asarray(high, kind))
    if len(shape) > 2:
        made = emit("Unsqueeze", made, emit.ints(range(len(shape) - 2)))
    return made


def _is_triangle(array: Any, low: Any, high: Any, offset: int) -> bool:
    rows, columns = array.shape[-2:]
    below = np.tri(rows, columns, offset, dtype=np.bool_)
    return bool((array == np.where(below, low, high)).all())
