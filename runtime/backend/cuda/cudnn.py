"""Convolutions by cuDNN, through its functions in C.

Values are channels-last in memory, whatever their axes' order: (N, C, *S) arrays whose
channels lie side by side. None of it is needed: where cuDNN is missing or declines,
`conv` gives None.
"""

from __future__ import annotations

import functools
import threading
from math import prod
from typing import Any, NamedTuple

from burnish.backend.cuda import cublaslt
from burnish.backend.cuda.found import shared_library

_TYPES = {"f": 0, "d": 1, "e": 2}
_FMA, _DEFAULT, _TENSOR = 3, 0, 1  # kinds of arithmetic: exact, TF32, half precision
_CORRELATION, _CHANNELS_LAST = 1, 1
_RELU, _IDENTITY, _PROPAGATES = 1, 5, 1
_ELEMENTS = 1 << 31  # cuDNN counts them in 32 bits
_ASKED = 8  # algorithms that the heuristic names
_PRECOMPUTED = 1  # the one algorithm that adds a bias and no activation


class Geometry(NamedTuple):
    """A convolution's sizes: x (N, C, *S), weight (O, C/groups, *K), y (N, O, *P)."""

    x: tuple[int, ...]
    weight: tuple[int, ...]
    y: tuple[int, ...]
    padding: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int


def geometry(x: Any, weight: Any, w: Any, groups: int) -> Geometry | None:
    """The sizes of a convolution with a window; None where padding differs by side.

    x, weight: their shapes. One spatial axis becomes two.
    """
    if any(before != behind for before, behind in w.pads):
        return None
    lead = () if len(w.kernel) > 1 else (1,)
    shapes = [(*s[:2], *lead, *s[2:]) for s in (x, weight, (x[0], weight[0], *w.out))]
    none = (0,) * len(lead)
    if any(prod(shape) >= _ELEMENTS for shape in shapes):
        return None
    padding = (*none, *(before for before, _ in w.pads))
    steps = (*lead, *w.stride), (*lead, *w.dilation)
    return Geometry(shapes[0], shapes[1], shapes[2], padding, *steps, groups)


class _Library:
    """cuDNN, loaded; its functions say what went wrong."""

    def __init__(self, found: Any):
        import ctypes

        self.found, self.ctypes = found, ctypes
        self.perf: Any = type(
            "Perf",
            (ctypes.Structure,),
            {
                "_fields_": [
                    ("algo", ctypes.c_int),
                    ("status", ctypes.c_int),
                    ("time", ctypes.c_float),
                    ("memory", ctypes.c_size_t),
                    ("determinism", ctypes.c_int),
                    ("math", ctypes.c_int),
                    ("reserved", ctypes.c_int * 3),
                ]
            },
        )

    def call(self, name: str, *args: Any) -> None:
        if status := getattr(self.found, name)(*args):
            raise RuntimeError(f"{name}: status {status}")

    def made(self, what: str) -> Any:
        """A handle or descriptor."""
        place = self.ctypes.c_void_p()
        name = "cudnnCreate" + (f"{what}Descriptor" if what else "")
        self.call(name, self.ctypes.byref(place))
        return place

    def ints(self, numbers: Any) -> Any:
        return (self.ctypes.c_int * len(numbers))(*numbers)


@functools.cache
def library() -> _Library | None:
    """cuDNN 9 from its wheel or the system's libraries; None where it is missing."""
    found = shared_library("libcudnn", ("9",))
    return None if found is None else _Library(found)


class _Held(threading.local):
    """What a thread remembers; a handle is bound to a stream."""

    def __init__(self) -> None:
        self.handles: dict[int, Any] = {}
        self.known: dict[Any, _Convolution | None] = {}


_held = _Held()
_MANY = 1024


class _Convolution:
    """One convolution: descriptors and an algorithm."""

    def __init__(self, lt: _Library, kind: str, math: int, sizes: Geometry):
        self.lt, self.sizes = lt, sizes
        number = _TYPES[kind]
        self.x, self.y = (self._tensor(number, s) for s in (sizes.x, sizes.y))
        self.bias = self._tensor(number, (1, sizes.y[1], *(1,) * (len(sizes.y) - 2)))
        self.weight = lt.made("Filter")
        shape = sizes.weight
        lt.call(
            "cudnnSetFilterNdDescriptor",
            self.weight,
            number,
            _CHANNELS_LAST,
            len(shape),
            lt.ints(shape),
        )
        self.conv = lt.made("Convolution")
        lt.call(
            "cudnnSetConvolutionNdDescriptor",
            self.conv,
            len(sizes.padding),
            lt.ints(sizes.padding),
            lt.ints(sizes.stride),
            lt.ints(sizes.dilation),
            _CORRELATION,
            _TYPES["d"] if kind == "d" else _TYPES["f"],
        )
        lt.call("cudnnSetConvolutionGroupCount", self.conv, sizes.groups)
        lt.call("cudnnSetConvolutionMathType", self.conv, math)
        scalar = lt.ctypes.c_double if kind == "d" else lt.ctypes.c_float
        self.one, self.zero = scalar(1), scalar(0)
        self.acts = {act: self._activation(act) for act in (_RELU, _IDENTITY)}

    def _tensor(self, number: int, shape: tuple[int, ...]) -> Any:
        made, c = self.lt.made("Tensor"), shape[1]
        steps, step = [0] * len(shape), c
        for axis in reversed(range(2, len(shape))):
            steps[axis], step = step, step * shape[axis]
        steps[:2] = step, 1
        ints = self.lt.ints
        self.lt.call(
            "cudnnSetTensorNdDescriptor",
            made,
            number,
            len(shape),
            ints(shape),
            ints(steps),
        )
        return made

    def _activation(self, act: int) -> Any:
        made, c = self.lt.made("Activation"), self.lt.ctypes
        self.lt.call(
            "cudnnSetActivationDescriptor", made, act, _PROPAGATES, c.c_double(0)
        )
        return made

    def choose(self, handle: Any) -> bool:
        """Take the heuristic's first algorithm that has room enough."""
        lt, c = self.lt, self.lt.ctypes
        some, got = (lt.perf * _ASKED)(), c.c_int()
        described = (self.x, self.weight, self.conv, self.y)
        status = lt.found.cudnnGetConvolutionForwardAlgorithm_v7(
            handle, *described, _ASKED, c.byref(got), some
        )
        if status:
            return False
        for perf in some[: got.value]:
            if perf.status == 0 and perf.memory <= cublaslt.WORKSPACE:
                self.algo, self.memory = perf.algo, perf.memory
                lt.call("cudnnSetConvolutionMathType", self.conv, perf.math)
                return True
        return False

    def run(self, handle: Any, x: Any, weight: Any, y: Any) -> None:
        """y = conv(x)"""
        lt, c = self.lt, self.lt.ctypes
        room = cublaslt.workspace(y.data.device_id)
        lt.call(
            "cudnnConvolutionForward",
            handle,
            c.byref(self.one),
            self.x,
            c.c_void_p(x.data.ptr),
            self.weight,
            c.c_void_p(weight.data.ptr),
            self.conv,
            self.algo,
            c.c_void_p(room.data.ptr),
            c.c_size_t(cublaslt.WORKSPACE),
            c.byref(self.zero),
            self.y,
            c.c_void_p(y.data.ptr),
        )

    def fused(
        self,
        handle: Any,
        x: Any,
        weight: Any,
        bias: Any,
        beside: Any,
        relu: bool,
        y: Any,
    ) -> bool:
        """y = relu(conv(x) + bias + beside); whether cuDNN has that."""
        lt, c = self.lt, self.lt.ctypes
        room = cublaslt.workspace(y.data.device_id)
        z = y if beside is None else beside
        status = lt.found.cudnnConvolutionBiasActivationForward(
            handle,
            c.byref(self.one),
            self.x,
            c.c_void_p(x.data.ptr),
            self.weight,
            c.c_void_p(weight.data.ptr),
            self.conv,
            self.algo if relu else _PRECOMPUTED,
            c.c_void_p(room.data.ptr),
            c.c_size_t(cublaslt.WORKSPACE),
            c.byref(self.zero if beside is None else self.one),
            self.y,
            c.c_void_p(z.data.ptr),
            self.bias,
            c.c_void_p(bias.data.ptr),
            self.acts[_RELU if relu else _IDENTITY],
            self.y,
            c.c_void_p(y.data.ptr),
        )
        return not status


def _handle(lt: _Library, device: int) -> Any:
    import cupy

    if device not in _held.handles:
        _held.handles[device] = lt.made("")
    handle = _held.handles[device]
    stream = lt.ctypes.c_void_p(cupy.cuda.get_current_stream().ptr)
    lt.call("cudnnSetStream", handle, stream)
    return handle


def _found(array: Any, sizes: Geometry | None) -> Any:
    """(the convolution, a handle), or None where cuDNN has none for such arrays."""
    lt, kind = library(), array.dtype.char
    if lt is None or kind not in _TYPES or sizes is None:
        return None
    single = _DEFAULT if cublaslt.rounds() else _FMA
    math = {"e": _TENSOR, "f": single, "d": _FMA}[kind]
    device = array.data.device_id
    handle, key = _handle(lt, device), (kind, math, device, sizes)
    known = _held.known
    if key not in known:
        if len(known) > _MANY:
            known.clear()
        try:
            made = _Convolution(lt, kind, math, sizes)
        except RuntimeError:
            known[key] = None
        else:
            known[key] = made if made.choose(handle) else None
    conv = known[key]
    return None if conv is None else (conv, handle)


def pays(array: Any, groups: int) -> bool:
    """Whether cuDNN is there and faster: not for sums that round nothing.

    On an H100 its kernels without TF32 take twice the time of a matrix product.
    """
    kind = array.dtype.char
    rounds = kind == "e" or (kind == "f" and cublaslt.rounds())
    wanted = cublaslt.convolves() and (groups > 1 or rounds)
    return wanted and library() is not None


def last(array: Any) -> Any:
    """The array, copied where its channels do not lie side by side: (N, C, *S)"""
    import cupy

    turned = array.transpose(0, *range(2, array.ndim), 1)
    if turned._c_contiguous and not array.data.ptr & 15:
        return array
    made = cupy.ascontiguousarray(turned)
    return (made.copy() if made.data.ptr & 15 else made).transpose(
        0, array.ndim - 1, *range(1, array.ndim - 1)
    )


def empty(shape: tuple[int, ...], dtype: Any) -> Any:
    """A channels-last array of shape (N, C, *S)."""
    import cupy

    made = cupy.ndarray((shape[0], *shape[2:], shape[1]), dtype)
    return made.transpose(0, len(shape) - 1, *range(1, len(shape) - 1))


def conv(
    x: Any,
    weight: Any,
    w: Any,
    groups: int,
    bias: Any = None,
    beside: Any = None,
    relu: bool = False,
) -> Any:
    """relu(conv(x, weight) + bias + beside), or None; beside has the result's shape."""
    sizes = geometry(x.shape, weight.shape, w, groups)
    found = _found(x, sizes)
    if found is None:
        return None
    made, handle = found
    x, weight = last(x), last(weight)
    y = empty((len(x), len(weight), *w.out), x.dtype)
    if bias is None and beside is None and not relu:
        made.run(handle, x, weight, y)
        return y
    if bias is None:
        import cupy

        bias = cupy.zeros(len(weight), x.dtype)
    beside = None if beside is None else last(beside)
    return y if made.fused(handle, x, weight, bias, beside, relu, y) else None
