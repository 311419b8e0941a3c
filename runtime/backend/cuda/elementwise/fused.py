"""One kernel for a formula of several element-wise steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from burnish.backend.cuda.calls import Run, called
from burnish.backend.cuda.kernels import ELEMENTS, LONG, bound, kernel, passed, wide
from burnish.backend.cuda.layout import contiguous, empty, is_last
from burnish.backend.symbols import Script, Symbol, Unwritten
from burnish.errors import InputError

_THREADS = 256
_CAST = 8
"""Elements of a thread of a cast: 16 bytes of half precision."""


def evaluated(
    formula: Callable[..., Any], arrays: tuple[Any, ...], *, writes: bool = False
) -> Any:
    """formula(*arrays) in one kernel, or None where that is not possible.

    writes: the formula is a step(y, *arrays) that writes into y, as `filled` has it.
    The arrays broadcast to the shape of the greatest; Python numbers are constants of
    the kernel. Floating results have the arrays' common dtype: float32 for half
    precision beside it.
    """
    prepare = _preparing(formula, writes)
    return None if prepare is None else called(prepare, arrays, {})


def _preparing(formula: Callable[..., Any], writes: bool) -> Any:
    """`prepared` of a formula, the same object for all with its code and constants."""
    code = getattr(formula, "__code__", None)
    key: list[Any] = [code, writes]
    if code is not None and formula.__closure__:
        key += [_key(cell.cell_contents) for cell in formula.__closure__]
    if None in key:
        return None
    parts = tuple(key)
    made = _known.get(parts)
    if made is None:
        if len(_known) >= _MANY:
            _known.clear()  # other threads may do so at any time
        made = _known[parts] = lambda *arrays: prepared(formula, arrays, writes=writes)
    return made


def prepared(
    formula: Callable[..., Any], arrays: tuple[Any, ...], *, writes: bool = False
) -> Run | None:
    """How to compute `evaluated` of arrays alike; None where that is not possible."""
    turned = _turned(arrays)
    run = _launched(formula, turned or arrays, writes)
    if run is None or turned is None:
        return run

    def in_order(*arrays: Any) -> Any:
        y = run(*_turned(arrays))
        return y.transpose(0, -1, *range(1, y.ndim - 1))

    return in_order


def _turned(arrays: tuple[Any, ...]) -> Any:
    """The arrays with channels last, where the largest one is so in memory."""
    import cupy

    held = [a for a in arrays if isinstance(a, cupy.ndarray)]
    whole = max(held, key=lambda a: (a.size, a.ndim, not a._c_contiguous))
    rank = whole.ndim
    order = (0, *range(2, rank), 1)
    if rank < 3 or whole._c_contiguous or not whole.transpose(order)._c_contiguous:
        return None
    if any(a.ndim > rank for a in held):
        return None
    return tuple(
        a.reshape((1,) * (rank - a.ndim) + a.shape).transpose(order)
        if isinstance(a, cupy.ndarray)
        else a
        for a in arrays
    )


def _launched(formula: Any, arrays: tuple[Any, ...], writes: bool) -> Run | None:
    """`prepared` for arrays whose order in memory is that of their axes."""
    import cupy

    ndarray = cupy.ndarray
    held = [a for a in arrays if isinstance(a, cupy.ndarray)]
    floats = {a.dtype for a in held if a.dtype.kind != "b"}
    known = all(a.dtype.name in ELEMENTS for a in held)
    if not known or not floats:
        return None
    dtype = max(floats, key=lambda each: each.itemsize)
    if len(floats) > 1 and (writes or not _are_mixed(floats, dtype)):
        return None
    beside = [a.dtype for a in arrays if isinstance(a, np.generic)]
    if not writes and np.result_type(dtype, *beside) != dtype:
        return None
    whole = max(held, key=lambda a: (a.size, a.ndim))
    if any(a.ndim > whole.ndim for a in held):
        return None
    kinds: list[Any] = []
    inputs: list[tuple[int, int, bool]] = []  # among arrays and arguments; in C order?
    arguments: list[Any] = []  # the kernel's, with None for its arrays
    places = 0
    width = 8 if dtype.itemsize == 2 else 16 // dtype.itemsize
    for index, array in enumerate(arrays):
        if not isinstance(array, ndarray):
            kinds.append(array.item() if isinstance(array, np.generic) else array)
            continue
        layout, repeats = _layout(array.shape, whole.shape, width)
        if layout is None:
            return None
        kinds.append((array.dtype.name, layout, len(repeats) > 2))
        inputs.append((index, len(arguments), array._c_contiguous))
        arguments += (None, *passed(*repeats))
        if array._c_contiguous and layout in ("same", "rows"):
            places |= array.data.ptr
    index_type = "unsigned" if whole.size < LONG else "long long"
    try:
        made, kind = _make(formula, dtype.name, writes, kinds, width, index_type)
    except (Unwritten, InputError):
        return None
    blocks, shape = -(-whole.size // (_THREADS * width)), whole.shape
    if blocks >= LONG:
        return None
    result = np.dtype(bool) if kind == "bool" else dtype
    if not blocks:
        return lambda *arrays: ndarray(shape, result)
    arguments += (None, *passed(whole.size, not places & 15))

    def run(*arrays: Any) -> Any:
        given = arguments.copy()
        for index, place, is_tidy in inputs:
            array = arrays[index]
            given[place] = array if is_tidy else contiguous(array)
        given[-3] = y = ndarray(shape, result)
        made((blocks,), (_THREADS,), given)
        return y

    return run


def _layout(
    shape: tuple[int, ...], whole: tuple[int, ...], width: int
) -> tuple[str | None, tuple[int, ...]]:
    """An input's layout in the kernel, None for none, and how it is repeated."""
    if shape == whole:
        return "same", ()
    groups = _groups(shape, whole)
    if groups is None or len(groups) > 2:
        return None, ()
    *outer, (inner, count) = groups or [(1, 1)]
    repeats = (inner, count, *(number for group in outer for number in group))
    if inner % width == 0:
        return "runs", repeats
    return "rows" if inner == 1 and count % width == 0 else "spread", repeats


def _are_mixed(floats: set[Any], dtype: Any) -> bool:
    """Whether float32 and one dtype of half precision are together."""
    return len(floats) == 2 and dtype == np.float32


_known: dict[tuple[Any, ...], Callable[..., Run | None]] = {}
_MANY = 4096


def _key(value: Any) -> Any:
    """A constant as a part of a key; None for other values."""
    if isinstance(value, np.generic):
        return value.dtype.num, repr(value.item())
    if value is None or isinstance(value, int | float | str):
        return type(value), repr(value)
    return None


def _make(
    formula: Any, floating: str, writes: bool, kinds: Any, width: int, index: str
) -> Any:
    dtype = np.dtype(np.float64 if floating == "float64" else np.float32)
    body, kind = written(formula, dtype, writes, kinds)
    inputs = tuple(
        (ELEMENTS[kind[0]], *kind[1:]) for kind in kinds if isinstance(kind, tuple)
    )
    code = bound(
        "elementwise",
        wide=wide(dtype),
        inputs=inputs,
        output="bool" if kind == "bool" else ELEMENTS[floating],
        body=body,
        width=width,
        index=index,
    )
    return code, kind


def cast(x: Any, dtype: Any) -> Any:
    """A float array with another floating dtype, in x's order; x where it has it."""
    import cupy

    if x.dtype == dtype:
        return x
    if not x._c_contiguous and not is_last(x):
        x = contiguous(x)
    is_turned = not x._c_contiguous
    y = empty(x.shape, dtype) if is_turned else cupy.ndarray(x.shape, dtype)
    blocks = -(-x.size // (_THREADS * _CAST))
    if blocks >= LONG or not all(a.name in ELEMENTS for a in (x.dtype, dtype)):
        return x.astype(dtype)
    if blocks:
        made = kernel(
            "elementwise",
            wide=wide(x.dtype, dtype),
            inputs=((ELEMENTS[x.dtype.name], "same", False),),
            output=ELEMENTS[dtype.name],
            body=("y = x0;",),
            width=_CAST,
            index="long long",
        )
        fine = not (x.data.ptr | y.data.ptr) & 31
        made((blocks,), (_THREADS,), (x, y, x.size, fine))
    return y


def written(
    formula: Any, dtype: Any, writes: bool, kinds: Any
) -> tuple[tuple[str, ...], str]:
    """The statements of a formula, which leave its result in y, and the kind of it."""
    script = Script(dtype)
    count = 0
    arguments: list[Any] = []
    for kind in kinds:
        if isinstance(kind, tuple):
            name = "bool" if kind[0] == "bool" else "wide"
            arguments.append(script.variable(f"x{count}", name))
            count += 1
        else:
            arguments.append(kind)
    y = script.variable("y")
    if writes:
        formula(y, *arguments)
        return tuple(script.lines), "wide"
    result = formula(*arguments)
    if not isinstance(result, Symbol):
        raise Unwritten("a kernel's formula gives one array")
    y = script.variable("y", result.kind)
    script.change(y, result)
    return tuple(script.lines), result.kind


def repeated(shape: tuple[int, ...], whole: tuple[int, ...]) -> tuple[int, int] | None:
    """(inner, count): element i of `whole` sees number i // inner % count of `shape`.

    None where the axes that are repeated are not all before and after the others.
    """
    groups = _groups(shape, whole)
    if groups is None or len(groups) > 1:
        return None
    return groups[0] if groups else (1, 1)


def _groups(
    shape: tuple[int, ...], whole: tuple[int, ...]
) -> list[tuple[int, int]] | None:
    """`repeated` of each group of axes between others that are repeated.

    None where shapes do not broadcast.
    """
    sizes = (1,) * (len(whole) - len(shape)) + shape
    groups: list[tuple[int, int]] = []
    inner, before = 1, False
    for own, n in zip(reversed(sizes), reversed(whole), strict=True):
        if own not in (1, n):
            return None
        if n == 1:
            continue
        if own == 1:
            before = False
        elif before:
            groups[0] = groups[0][0], groups[0][1] * n
        else:
            groups.insert(0, (inner, n))
            before = True
        inner *= n
    return groups
