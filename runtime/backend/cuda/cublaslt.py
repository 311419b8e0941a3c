"""Matrix products by cublasLt, with a bias added in the same kernel.

Row-major matrices are column-major ones transposed, so that cublasLt is asked for
y.T = b.T @ a.T. Products of single precision are computed in single precision (no
TF32) unless `planned` says otherwise, those of half precision are summed in it.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Iterator
from math import prod
from typing import Any, NamedTuple

from burnish.backend.cuda.found import shared_library

_TYPES = {"e": (2, 68, 0), "f": (0, 68, 0), "d": (1, 70, 1), "tf32": (0, 77, 0)}
"""By dtype: CUDA's data type, the type to compute in, the type of alpha and beta."""

WORKSPACE = 64 << 20
"""Bytes that a product, or a convolution, may use beside its arrays."""
_MANY = 1024  # products that are remembered in a thread

# attributes of descriptors, layouts and preferences, as cublasLt.h numbers them
_TRANSPOSE_A, _TRANSPOSE_B, _EPILOGUE, _BIAS = 3, 4, 7, 8
_BATCH_COUNT, _BATCH_STRIDE = 5, 6
_PREFERRED_WORKSPACE, _ALIGNMENTS = 1, (5, 6, 7, 8)
_WITH_BIAS = 4


class Matrix(NamedTuple):
    """The layout of a matrix, or of a batch of them, in elements."""

    transposed: bool
    lead: int  # from one row to the next (column, where transposed)
    stride: int  # from one matrix of a batch to the next


class _Library:
    """cublasLt, loaded; its functions say what went wrong."""

    def __init__(self, found: Any):
        import ctypes

        self.found, self.ctypes = found, ctypes
        self.run = found.cublasLtMatmul
        pointers = [ctypes.c_void_p] * 14
        self.run.argtypes = [*pointers, ctypes.c_size_t, ctypes.c_void_p]
        self.describe = found.cublasLtMatmulDescSetAttribute
        self.handles: dict[int, Any] = {}
        self.result = type(
            "Result",
            (ctypes.Structure,),
            {
                "_fields_": [
                    ("algo", ctypes.c_uint64 * 8),
                    ("workspace", ctypes.c_size_t),
                    ("state", ctypes.c_int),
                    ("waves", ctypes.c_float),
                    ("reserved", ctypes.c_int * 4),
                ]
            },
        )

    def call(self, name: str, *args: Any) -> None:
        if status := getattr(self.found, name)(*args):
            raise RuntimeError(f"{name}: status {status}")

    def set(self, name: str, place: Any, attribute: int, value: Any) -> None:
        size = self.ctypes.c_size_t(self.ctypes.sizeof(value))
        self.call(name, place, attribute, self.ctypes.byref(value), size)

    def handle(self, device: int) -> Any:
        if device not in self.handles:
            made = self.ctypes.c_void_p()
            self.call("cublasLtCreate", self.ctypes.byref(made))
            self.handles[device] = made
        return self.handles[device]


@functools.cache
def library() -> _Library | None:
    """cublasLt from its wheel or the system's libraries; None where it is missing."""
    found = shared_library("libcublasLt", ("13", "12"))
    return None if found is None else _Library(found)


class _Held(threading.local):
    """State of a thread; descriptors hold the bias of one call."""

    def __init__(self) -> None:
        self.ready: dict[Any, Any] = {}
        self.linears: dict[Any, Any] = {}
        self.products: dict[Any, _Product | None] = {}
        self.scratch: Any = None  # the workspace, where a caller has its own
        self.tf32 = self.in_plan = False


_held = _Held()
_workspaces: dict[tuple[int, int], Any] = {}


@contextlib.contextmanager
def planned(room: Any, tf32: bool) -> Iterator[None]:
    """In the `with` block this thread's products are a plan's.

    They use this array of WORKSPACE bytes. tf32: those of single precision round what
    they multiply to 11 bits.
    """
    held = _held
    before = held.scratch, held.tf32, held.in_plan
    held.scratch, held.tf32, held.in_plan = room, tf32, True
    try:
        yield
    finally:
        held.scratch, held.tf32, held.in_plan = before


def in_plan() -> bool:
    """Whether this thread's products are a plan's."""
    return _held.in_plan


def matmul(a: Any, b: Any, bias: Any = None, *, scale: float = 1.0) -> Any:
    """scale * a @ b + bias; a (..., m, k), b (..., k, n), bias (n,) -> (..., m, n)

    None where cublasLt is missing or does no such product: other dtypes, vectors,
    empty arrays.
    """
    import cupy

    kind = a.dtype.char
    if bias is not None:
        if bias.dtype.char != kind:
            return None
        if bias.data.ptr & 15:
            bias = bias.copy()
    first, second = a.data, b.data
    place, other = first.ptr, second.ptr
    ends = place | other
    fine = 256 if not ends & 255 else 16 if not ends & 15 else 1
    key = (
        kind,
        b.dtype.char,
        a.shape,
        a.strides,
        b.shape,
        b.strides,
        bias is None,
        fine,
        first.device_id,
        scale,
        _held.tf32,
    )
    ready = _held.ready
    try:
        found = ready[key]
    except KeyError:
        if len(ready) >= _MANY:
            ready.clear()
            _held.products.clear()
        found = ready[key] = _prepared(a, b, bias, fine, scale)
    if found is None:
        return None
    product, shape, copies = found
    if copies is not None:
        a, b = copies(a, b)
        place, other = a.data.ptr, b.data.ptr
    y = cupy.ndarray(shape, a.dtype)
    product.run(place, other, y.data.ptr, bias)
    if bias is not None and not product.adds_bias:
        y += bias
    return y


def linear(x: Any, weight: Any, bias: Any = None) -> Any:
    """x @ weight.T + bias, or None; x (..., k), weight (n, k), bias (n,)"""
    import cupy

    first, second = x.data, weight.data
    place, other = first.ptr, second.ptr
    whole = x._c_contiguous and weight._c_contiguous and not (place | other) & 15
    kind = x.dtype.char
    key = (kind, x.shape, weight.shape, bias is None, first.device_id, _held.tf32)
    found = _held.linears.get(key) if whole else None
    alike = kind == weight.dtype.char and (bias is None or kind == bias.dtype.char)
    if found is None or not alike or (bias is not None and bias.data.ptr & 15):
        if x.ndim < 2 or x.shape[-1] != weight.shape[1]:
            return None
        y = matmul(x, weight.T, bias)
        if y is not None and whole:
            if len(_held.linears) >= _MANY:
                _held.linears.clear()
            _held.linears[key] = _prepared(x, weight.T, bias, 16, 1.0)
        return y
    product, shape, _ = found
    y = cupy.ndarray(shape, x.dtype)
    product.run(place, other, y.data.ptr, bias)
    if bias is not None and not product.adds_bias:
        y += bias
    return y


def _prepared(a: Any, b: Any, bias: Any, fine: int, scale: float) -> Any:
    """(product, shape of the result, what copies the arrays or None); None for none."""
    kind = a.dtype.char
    if kind not in _TYPES or b.dtype.char != kind or a.ndim < 2 or b.ndim < 2:
        return None
    if not a.size or not b.size:
        return None
    lead = a.shape[:-1]
    batch = () if b.ndim == 2 else _broadcast(a.shape[:-2], b.shape[:-2])
    if b.ndim > 2:
        lead = (*batch, a.shape[-2])

    def copied(a: Any, b: Any) -> tuple[Any, Any]:
        return _laid_out(_flat(a, b), batch), _laid_out(b, batch)

    one, other = _flat(a, b), b
    as_they_are = one is a or a._c_contiguous
    first, second = _described(one, batch), _described(other, batch)
    copies = None
    if first is None or second is None or not as_they_are:
        copies, (one, other) = copied, copied(a, b)
        first, second = _described(one, batch), _described(other, batch)
        assert first is not None
        assert second is not None
        fine = 16
    n, k = other.shape[-1], one.shape[-1]
    m, count = one.shape[-2], prod(batch)
    sizes, fine = (m, n, k, count), max(fine, a.itemsize)
    form = "tf32" if kind == "f" and _held.tf32 else kind
    key = (form, *sizes, first, second, fine, bias is None, a.data.device_id, scale)
    products = _held.products
    if key not in products:
        products[key] = _planned(*key)
    product = products[key]
    return None if product is None else (product, (*lead, n), copies)


def _flat(a: Any, b: Any) -> Any:
    """All rows of a as one matrix, where b is one."""
    if b.ndim > 2 or a.ndim == 2:
        return a
    return a.reshape(prod(a.shape[:-1]), a.shape[-1])


def _broadcast(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    import numpy as np

    return a if a == b else np.broadcast_shapes(a, b)


def _laid_out(x: Any, batch: tuple[int, ...]) -> Any:
    """x, copied where its matrices cannot be described or 16 bytes be read at once."""
    import cupy

    if _described(x, batch) is None or x.data.ptr % 16:
        x = x.copy()
    if _described(x, batch) is None:
        x = cupy.ascontiguousarray(cupy.broadcast_to(x, (*batch, *x.shape[-2:])))
    return x


def _described(x: Any, batch: tuple[int, ...]) -> Matrix | None:
    size = x.itemsize
    rows, columns = x.shape[-2:]
    down, across = x.strides[-2] // size, x.strides[-1] // size
    if (across == 1 or columns == 1) and (down >= columns or rows == 1):
        transposed, lead = False, columns if rows == 1 else down
    elif (down == 1 or rows == 1) and (across >= rows or columns == 1):
        transposed, lead = True, rows if columns == 1 else across
    else:
        return None
    stride = _batch_stride(x, batch)
    return None if stride is None else Matrix(transposed, lead, stride)


def _batch_stride(x: Any, batch: tuple[int, ...]) -> int | None:
    """How far apart the matrices of a batch are; None where that changes."""
    ahead = len(batch) - (x.ndim - 2)
    if not batch or x.ndim == 2 or prod(x.shape[:-2]) == 1:
        return 0
    stride = expected = None
    for axis in reversed(range(len(batch))):
        own = axis - ahead
        if batch[axis] == 1:
            continue
        if own < 0 or x.shape[own] == 1:
            return None  # some axes are repeated and others are not
        here = x.strides[own] // x.itemsize
        if expected is not None and here != expected:
            return None
        if stride is None:
            stride = here
        expected = here * batch[axis]
    return stride or 0


class _Product:
    """One product's descriptors and algorithm, to run with any arrays alike."""

    def __init__(self, lt: _Library, given: dict[str, Any], found: Any, scale: Any):
        ctypes = lt.ctypes
        self.lt, self.given, self.found = lt, given, found
        self.adds_bias = given["adds_bias"]
        self.one, self.zero = scale(given["scale"]), scale(0)
        self.pointer, self.bias = ctypes.c_void_p(), 0
        self.bias_at = (
            given["description"],
            _BIAS,
            ctypes.byref(self.pointer),
            ctypes.c_size_t(8),
        )
        self.start = (given["handle"], given["description"], self._at(self.one))
        self.end, self.algorithm = self._at(self.zero), self._at(found.algo)

    def _at(self, held: Any) -> Any:
        return self.lt.ctypes.c_void_p(self.lt.ctypes.addressof(held))

    def run(self, a: int, b: int, y: int, bias: Any) -> None:
        import cupy

        lt, given = self.lt, self.given
        if bias is not None and self.adds_bias:
            place = bias.data.ptr
            if place != self.bias:
                self.pointer.value = self.bias = place
                lt.describe(*self.bias_at)
        stream = cupy.cuda.get_current_stream().ptr
        room = workspace(given["device"])
        out = given["y"]
        status = lt.run(
            *self.start,
            b,
            given["b"],
            a,
            given["a"],
            self.end,
            y,
            out,
            y,
            out,
            self.algorithm,
            room.data.ptr,
            WORKSPACE,
            stream,
        )
        if status:
            raise RuntimeError(f"cublasLtMatmul: status {status}")


def rounds() -> bool:
    """Whether this thread's products of single precision are TF32."""
    return _held.tf32


def workspace(device: int) -> Any:
    """The WORKSPACE bytes of the current stream; a caller's own, where it has some."""
    import cupy

    if _held.scratch is not None:
        return _held.scratch
    where = (device, cupy.cuda.get_current_stream().ptr)
    if where not in _workspaces:
        _workspaces[where] = cupy.ndarray(WORKSPACE, "uint8")
    return _workspaces[where]


def _planned(
    kind: str,
    m: int,
    n: int,
    k: int,
    count: int,
    a: Matrix,
    b: Matrix,
    fine: int,
    plain: bool,
    device: int,
    scale: float,
) -> _Product | None:
    """How to compute a product, with the bias in it where cublasLt can; or None."""
    lt = library()
    if lt is None:
        return None
    sizes = (kind, m, n, k, count, a, b, fine, device, scale)
    for adds_bias in (False,) if plain else (True, False):
        if (product := _attempt(lt, *sizes, adds_bias)) is not None:
            return product
    return None


def _attempt(
    lt: _Library,
    kind: str,
    m: int,
    n: int,
    k: int,
    count: int,
    a: Matrix,
    b: Matrix,
    fine: int,
    device: int,
    factor: float,
    adds_bias: bool,
) -> _Product | None:
    c = lt.ctypes
    number, compute, scale = _TYPES[kind]
    description = c.c_void_p()
    lt.call("cublasLtMatmulDescCreate", c.byref(description), compute, scale)
    attributes = ((_TRANSPOSE_A, int(b.transposed)), (_TRANSPOSE_B, int(a.transposed)))
    for attribute, value in (*attributes, (_EPILOGUE, _WITH_BIAS if adds_bias else 1)):
        place = "cublasLtMatmulDescSetAttribute"
        lt.set(place, description, attribute, c.c_int32(value))
    lay = functools.partial(_layout, lt, number, count)
    given = {
        "handle": lt.handle(device),
        "description": description,
        "b": lay(*((k, n) if b.transposed else (n, k)), b.lead, b.stride),
        "a": lay(*((m, k) if a.transposed else (k, m)), a.lead, a.stride),
        "y": lay(n, m, n, m * n),
        "adds_bias": adds_bias,
        "device": device,
        "scale": factor,
    }
    preference = c.c_void_p()
    lt.call("cublasLtMatmulPreferenceCreate", c.byref(preference))
    place = "cublasLtMatmulPreferenceSetAttribute"
    lt.set(place, preference, _PREFERRED_WORKSPACE, c.c_size_t(WORKSPACE))
    for attribute, bytes_ in zip(_ALIGNMENTS, (fine, fine, 256, 256), strict=True):
        lt.set(place, preference, attribute, c.c_uint32(bytes_))
    found, got = lt.result(), c.c_int()
    status = lt.found.cublasLtMatmulAlgoGetHeuristic(
        given["handle"],
        description,
        given["b"],
        given["a"],
        given["y"],
        given["y"],
        preference,
        1,
        c.byref(found),
        c.byref(got),
    )
    lt.call("cublasLtMatmulPreferenceDestroy", preference)
    if status or not got.value:
        return None
    return _Product(lt, given, found, c.c_double if kind == "d" else c.c_float)


def _layout(
    lt: _Library, kind: int, count: int, rows: int, columns: int, lead: int, stride: int
) -> Any:
    """A column-major matrix, or a batch of them."""
    c, made = lt.ctypes, lt.ctypes.c_void_p()
    size = (c.c_uint64(rows), c.c_uint64(columns), c.c_int64(lead))
    lt.call("cublasLtMatrixLayoutCreate", c.byref(made), kind, *size)
    if count > 1:
        place = "cublasLtMatrixLayoutSetAttribute"
        lt.set(place, made, _BATCH_COUNT, c.c_int32(count))
        lt.set(place, made, _BATCH_STRIDE, c.c_int64(stride))
    return made
