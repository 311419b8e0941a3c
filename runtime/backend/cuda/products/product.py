"""One product of matrices by cublasLt: descriptors, an algorithm, and its launch."""

from __future__ import annotations

import functools
from typing import Any

from burnish.backend.cuda.libraries.found import shared_library
from burnish.backend.cuda.libraries.workspace import WORKSPACE, workspace
from burnish.backend.cuda.products.matrices import Matrix

TYPES = {
    "e": (2, 68, 0),
    "E": (14, 68, 0),  # bfloat16
    "f": (0, 68, 0),
    "d": (1, 70, 1),
    "tf32": (0, 77, 0),
}
"""By dtype: CUDA's data type, the type to compute in, the type of alpha and beta."""

# attributes of descriptors, layouts and preferences, as cublasLt.h numbers them
_TRANSPOSE_A, _TRANSPOSE_B, _EPILOGUE, _BIAS = 3, 4, 7, 8
_BATCH_COUNT, _BATCH_STRIDE = 5, 6
_PREFERRED_WORKSPACE, _ALIGNMENTS = 1, (5, 6, 7, 8)
_EPILOGUES, _WITH_BIAS = {"": 1, "gelu": 32}, {"": 4, "gelu": 36}


class _Library:
    """cublasLt, loaded; its functions say what went wrong."""

    def __init__(self, found: Any):
        import ctypes

        self.found, self.ctypes = found, ctypes
        self.run = found.cublasLtMatmul  # without argtypes: it is given ctypes' objects
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


class Product:
    """One product's descriptors and algorithm, to run with any arrays alike.

    Its arguments are made once; a call writes the addresses that are new into them.
    """

    def __init__(self, lt: _Library, given: dict[str, Any], found: Any, scale: Any):
        from cupy.cuda import get_current_stream

        ctypes = lt.ctypes
        self.call, self.describe, self.current = lt.run, lt.describe, get_current_stream
        self.adds_bias, self.device = given["adds_bias"], given["device"]
        self.held = scale(given["scale"]), scale(0), found  # alive, as arguments are
        one, zero, algorithm = map(
            ctypes.c_void_p,
            map(ctypes.addressof, (*self.held[:2], found.algo)),
        )
        self.bias, self.a, self.b, self.y, self.room, self.stream = (
            ctypes.c_void_p() for _ in range(6)
        )
        description, out = given["description"], given["y"]
        self.bias_at = (
            *(description, _BIAS),
            *(ctypes.byref(self.bias), ctypes.c_size_t(8)),
        )
        self.arguments = (
            *(given["handle"], description),
            *(one, self.b, given["b"], self.a, given["a"]),
            *(zero, self.y, out, self.y, out),
            *(algorithm, self.room, ctypes.c_size_t(WORKSPACE), self.stream),
        )

    def run(self, a: int, b: int, y: int, bias: Any) -> None:
        """Write the product of the arrays at a and b, and this bias, to y."""
        if bias is not None and self.adds_bias:
            place = bias.data.ptr
            if place != self.bias.value:
                self.bias.value = place
                self.describe(*self.bias_at)
        self.a.value, self.b.value, self.y.value = a, b, y
        self.stream.value = stream = self.current().ptr
        self.room.value = workspace(self.device, stream).data.ptr
        if status := self.call(*self.arguments):
            raise RuntimeError(f"cublasLtMatmul: status {status}")


def product(
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
    act: str,
) -> Product | None:
    """How to compute a product, with the bias in it where cublasLt can; or None."""
    lt = library()
    if lt is None:
        return None
    sizes = (kind, m, n, k, count, a, b, fine, device, scale, act)
    for adds_bias in (False,) if plain else (True,) if act else (True, False):
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
    act: str,
    adds_bias: bool,
) -> Product | None:
    c = lt.ctypes
    number, compute, scale = TYPES[kind]
    description = c.c_void_p()
    lt.call("cublasLtMatmulDescCreate", c.byref(description), compute, scale)
    attributes = ((_TRANSPOSE_A, int(b.transposed)), (_TRANSPOSE_B, int(a.transposed)))
    epilogue = (_WITH_BIAS if adds_bias else _EPILOGUES)[act]
    for attribute, value in (*attributes, (_EPILOGUE, epilogue)):
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
    return Product(lt, given, found, c.c_double if kind == "d" else c.c_float)


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
