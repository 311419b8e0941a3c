"""Convolutions by cuDNN, and their gradients.

Values are channels-last in memory, whatever their axes' order. Where cuDNN is missing
or declines, every function gives None.
"""

from __future__ import annotations

import threading
from math import prod
from typing import Any, NamedTuple

from burnish.backend.cuda.convolution import folded, patches
from burnish.backend.cuda.layout import contiguous, empty, last
from burnish.backend.cuda.libraries import cudnn, workspace

_TYPES = {"f": 0, "d": 1, "e": 2, "E": 9}  # "E" is bfloat16
_FMA, _DEFAULT, _TENSOR = 3, 0, 1  # kinds of arithmetic: exact, TF32, half precision
_CORRELATION, _CHANNELS_LAST = 1, 1
_RELU, _IDENTITY, _PROPAGATES = 1, 5, 1
_ELEMENTS = 1 << 31  # cuDNN counts them in 32 bits
_ASKED = 8  # algorithms that the heuristic names
_PRECOMPUTED = 1  # the one algorithm that adds a bias and no activation
FORWARD, INPUT, WEIGHT = "Forward", "BackwardData", "BackwardFilter"


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


class _Convolution:
    """One convolution, or one of its gradients: descriptors and an algorithm."""

    def __init__(
        self, lt: cudnn.Library, way: str, kind: str, math: int, sizes: Geometry
    ):
        self.lt, self.way = lt, way
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
        self.ends = {  # the two inputs and the output
            FORWARD: (self.x, self.weight, self.y),
            INPUT: (self.weight, self.y, self.x),
            WEIGHT: (self.x, self.y, self.weight),
        }[way]
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
        first, second, out = self.ends
        ask = getattr(lt.found, f"cudnnGetConvolution{self.way}Algorithm_v7")
        described = (handle, first, second, self.conv, out)
        status = ask(*described, _ASKED, c.byref(got), some)
        if status:
            return False
        for perf in some[: got.value]:
            if perf.status == 0 and perf.memory <= workspace.WORKSPACE:
                self.algo, self.memory = perf.algo, perf.memory
                lt.call("cudnnSetConvolutionMathType", self.conv, perf.math)
                return True
        return False

    def _inputs(self, handle: Any, first: Any, second: Any, algo: int) -> Any:
        """The arguments of a cuDNN call that precede the result's."""
        from cupy.cuda import get_current_stream

        c, stream = self.lt.ctypes, get_current_stream().ptr
        room = workspace.workspace(first.data.device_id, stream)
        return (
            handle,
            c.byref(self.one),
            self.ends[0],
            c.c_void_p(first.data.ptr),
            self.ends[1],
            c.c_void_p(second.data.ptr),
            self.conv,
            algo,
            c.c_void_p(room.data.ptr),
            c.c_size_t(workspace.WORKSPACE),
        )

    def run(self, handle: Any, first: Any, second: Any, out: Any) -> Any:
        """conv(x, weight), or a gradient of it, written into `out`"""
        c = self.lt.ctypes
        given = self._inputs(handle, first, second, self.algo)
        to = c.byref(self.zero), self.ends[2], c.c_void_p(out.data.ptr)
        self.lt.call(f"cudnnConvolution{self.way}", *given, *to)
        return out

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
        c, z = self.lt.ctypes, y if beside is None else beside
        algo = self.algo if relu else _PRECOMPUTED
        status = self.lt.found.cudnnConvolutionBiasActivationForward(
            *self._inputs(handle, x, weight, algo),
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


class _Held(threading.local):
    """The convolutions that a thread remembers."""

    def __init__(self) -> None:
        self.known: dict[Any, _Convolution | None] = {}


_held = _Held()
_MANY = 1024


def _found(way: str, array: Any, sizes: Geometry | None) -> Any:
    """(the convolution, a handle), or None where cuDNN has none for such arrays."""
    lt, kind = cudnn.library(), array.dtype.char
    if lt is None or kind not in _TYPES or sizes is None:
        return None
    single = _DEFAULT if workspace.rounds() else _FMA
    math = {"e": _TENSOR, "E": _TENSOR, "f": single, "d": _FMA}[kind]
    device = array.data.device_id
    handle, key = cudnn.handle(lt, device), (way, kind, math, device, sizes)
    known = _held.known
    if key not in known:
        if len(known) > _MANY:
            known.clear()
        try:
            made = _Convolution(lt, way, kind, math, sizes)
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
    rounds = kind in "eE" or (kind == "f" and workspace.rounds())
    wanted = workspace.in_plan() and (groups > 1 or rounds)
    return wanted and cudnn.library() is not None


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
    if groups == 1 and beside is None and not relu and patches.fits(w):
        return patches.conv(x, weight, w, bias)
    if folded.fits(x, w, groups) and folded.is_wide(w):
        x, weight, w = folded.inputs(x, w), folded.weights(weight, w), folded.window(w)
    sizes = geometry(x.shape, weight.shape, w, groups)
    found = _found(FORWARD, x, sizes)
    if found is None:
        return None
    made, handle = found
    x, weight = last(x), last(weight)
    y = empty((len(x), len(weight), *w.out), x.dtype)
    if bias is None and beside is None and not relu:
        return made.run(handle, x, weight, y)
    if bias is None:
        import cupy

        bias = cupy.zeros(len(weight), x.dtype)
    bias = contiguous(bias)
    beside = None if beside is None else last(beside)
    return y if made.fused(handle, x, weight, bias, beside, relu, y) else None


def input_gradient(g: Any, weight: Any, w: Any, sizes: Any, groups: int) -> Any:
    """The gradient of x (N, C, *sizes) from that of conv(x, weight), or None."""
    shape = (len(g), weight.shape[1] * groups, *sizes)
    found = _found(INPUT, g, geometry(shape, weight.shape, w, groups))
    if found is None:
        return None
    made, handle = found
    return made.run(handle, last(weight), last(g), empty(shape, g.dtype))


def weight_gradient(x: Any, g: Any, w: Any, groups: int) -> Any:
    """The gradient of weight (O, C/groups, *K) from that of the result, or None."""
    if folded.fits(x, w, groups):
        y = weight_gradient(folded.inputs(x, w), g, folded.window(w), groups)
        return None if y is None else folded.unfolded(y, x.shape[1], w)
    shape = (g.shape[1], x.shape[1] // groups, *w.kernel)
    found = _found(WEIGHT, x, geometry(x.shape, shape, w, groups))
    if found is None:
        return None
    made, handle = found
    y = made.run(handle, last(x), last(g), empty(shape, x.dtype))
    return contiguous(y)  # as optimizers read it
