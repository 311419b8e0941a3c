"""Tensor: the engine's variable with operators as methods; one line a method."""

from __future__ import annotations

import sys
from collections.abc import Callable
from numbers import Number
from typing import TYPE_CHECKING, Any

import numpy as np

from burnish import ops
from burnish._engine.arguments import replaced_by
from burnish._engine.display import describe
from burnish.autodiff import Gradients, Node, Variable, backward, recording
from burnish.backend import Device, dtype_from, is_kind, on_host
from burnish.errors import InputError
from burnish.habits import Fixed, TensorModule, missing
from burnish.methods import Methods, shape_from
from burnish.steps import call, draw

if TYPE_CHECKING:
    from burnish.distributions import Distribution


class Tensor(Methods):
    """An array on a device.

    Tensor(data): anything that `numpy.asarray` takes, a CuPy array, another tensor.
    dtype: None keeps an array's; Python's floats become float32 and its integers int64,
    or what `device.configure` says. device: where to put it. Broadcasting, indexing and
    dtype promotion are NumPy's.
    """

    __slots__ = ()
    __array_ufunc__ = None  # array + tensor asks the tensor
    __array_priority__ = 1000  # CuPy's word for the same

    @replaced_by(
        "Tensor(data, dtype=None, device=None); x.require_grad() is for gradients"
    )
    def __init__(
        self, data: Any, dtype: Any = None, device: Device | str | None = None
    ):
        if isinstance(data, Variable):
            device = device or data.device
            data = data.data
        self.device = Device(device) if device else Device.of(data)
        listed = not hasattr(data, "dtype")
        if dtype is None and is_literal(data):
            data, dtype = literal(data, self.device)
        if isinstance(dtype, int):
            raise InputError(
                f"Tensor: expected a dtype such as 'float32', got {dtype}; "
                f"Tensor.zeros(2, 3) has a shape"
            )
        if dtype is not None:
            dtype = dtype_from("Tensor", dtype)
        self.data = self.device.put(data, dtype)
        if listed and self.data.dtype.kind == "O":
            _check_texts(self.data)
        self.node = None
        self.index = 0

    @classmethod
    def result_type(cls) -> type[Tensor]:
        return Tensor

    # --- where it is, and gradients ---

    @call
    @replaced_by('x.to("cuda"), x.to("float16"), one after the other')
    def to(self, target: Any) -> Tensor:
        """On another device (`"cuda"`, `Device`) or with another dtype."""
        if isinstance(target, Device | str) and _is_device(target):
            device = Device(target)
            if self.node is not None:  # stays recorded: inner() and detach() stop that
                device = device.autodiff()
            if device.inner() is self.device.inner():
                return self.wrap(self.data, device, self.node, self.index)
            return ops.to_device(self, device=device)
        return self.astype(target)

    def astype(self, dtype: Any) -> Tensor:
        """With another dtype; itself where it has it."""
        try:
            dtype = np.dtype(dtype)
        except TypeError:
            raise InputError(
                f"to: expected a device such as 'cuda:0' or a dtype such as 'float32', "
                f"got {dtype!r}"
            ) from None
        return ops.cast(self, dtype=dtype)

    def quantize(self, scheme: Any, params: Any = None) -> Tensor:
        """Quantized, a QuantizedTensor: see `burnish.quantization`.

        scheme: a QuantScheme. params: (scales, zero_points or None); None takes them
        from this tensor's own range. Raises InputError unless these are finite floats.
        """
        if not hasattr(scheme, "quantize") or isinstance(scheme, Variable):
            raise InputError(
                f"quantize: expected a burnish.quantization.QuantScheme, got {scheme!r}"
            )
        return scheme.quantize(self, params)

    def quantize_dynamic(self, scheme: Any) -> Tensor:
        """`quantize` with scales from this tensor's own range."""
        return self.quantize(scheme)

    def dequantize(self) -> Tensor:
        """The values of a quantized tensor; any other one as it is."""
        return self

    @call
    def clone(self) -> Tensor:
        """The same values in memory of their own, recorded as this tensor is."""
        return self.wrap(self.data.copy(), self.device, self.node, self.index)

    @call
    def require_grad(self) -> Tensor:
        """The same values as a leaf that `backward()` finds gradients for."""
        return self.wrap(self.data, self.device.autodiff(), Node())

    @property
    def requires_grad(self) -> bool:
        return self.node is not None

    if not TYPE_CHECKING:
        requires_grad = Fixed(
            requires_grad,
            "x = x.require_grad(); model.freeze() or model.unfreeze() for parameters",
        )

    @call
    def detach(self) -> Tensor:
        """The same values, no longer recorded."""
        return self.wrap(self.data, self.device)

    @call
    def inner(self) -> Tensor:
        """The same values on the device without autodiff."""
        return self.wrap(self.data, self.device.inner())

    def backward(
        self, gradient: Any = None, *, create_graph: bool = False
    ) -> Gradients:
        """Gradients of this tensor; see `burnish.autodiff.backward`."""
        return backward(self, gradient, create_graph=create_graph)

    def grad(self, gradients: Gradients) -> Tensor | None:
        """This tensor's gradient in what `backward()` returned."""
        if not isinstance(gradients, Gradients):
            raise InputError(
                f"grad: expected what backward() returned, "
                f"got a {type(gradients).__name__}"
            )
        return gradients.get(self)

    if not TYPE_CHECKING:
        grad = Fixed(
            grad, "gradients = loss.backward(), x.grad(gradients): none are kept"
        )

    def inplace(self, function: Callable[[Tensor], Tensor]) -> Tensor:
        """Become what `function` makes of this tensor; returns this tensor.

        Only this object changes: neither tensors that share its memory nor what was
        recorded before. Raises InputError for a parameter, which is assigned instead,
        and for a function that gives no tensor.
        """
        if type(self) is not Tensor:
            raise InputError(
                f"inplace: expected a tensor of your own, got a {type(self).__name__}; "
                f"give it values with assign()"
            )
        if recording.tape is not None:
            recording.tape.refuse("a tensor from outside is changed by inplace()")
        made = function(self.wrap(self.data, self.device, self.node, self.index))
        if not isinstance(made, Variable):
            raise InputError(
                f"inplace: expected a function that gives a tensor, "
                f"got a {type(made).__name__}"
            )
        self.data, self.device = made.data, made.device
        self.node, self.index = made.node, made.index
        return self

    # --- out of Burnish ---

    def numpy(self) -> np.ndarray:
        """The values as a NumPy array; shares memory on the CPU."""
        return on_host(self.data)

    def tolist(self) -> Any:
        return self.data.tolist()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.numpy(), dtype, copy=copy)

    def __dlpack__(self, **options: Any) -> Any:
        return self.data.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.data.__dlpack_device__()

    @classmethod
    def from_dlpack(cls, source: Any) -> Tensor:
        """A tensor that shares memory with any DLPack array, such as torch's."""
        kind, _ = source.__dlpack_device__()
        xp = Device("cpu").xp if kind == 1 else Device("cuda").xp
        array = xp.from_dlpack(source)
        return cls.wrap(array, Device.of(array))

    # --- out of Tensor's class: new ones ---

    @classmethod
    def empty(cls, *shape: Any, dtype: Any = None, device: Any = "cpu") -> Tensor:
        """Whatever is in memory; the shape as integers or as one tuple."""
        device = Device(device)
        dtype = dtype or device.float_dtype
        return _made("empty", device, device.xp.empty, shape_from(shape), dtype)

    @classmethod
    def zeros(cls, *shape: Any, dtype: Any = None, device: Any = "cpu") -> Tensor:
        """Zeros; the shape as integers or as one tuple."""
        return cls.full(shape_from(shape), 0, dtype=dtype, device=device)

    @classmethod
    def ones(cls, *shape: Any, dtype: Any = None, device: Any = "cpu") -> Tensor:
        """Ones; the shape as integers or as one tuple."""
        return cls.full(shape_from(shape), 1, dtype=dtype, device=device)

    @classmethod
    def full(
        cls, shape: Any, fill_value: Any, *, dtype: Any = None, device: Any = "cpu"
    ) -> Tensor:
        """Every element `fill_value`."""
        device = Device(device)
        dtype = dtype or device.float_dtype
        return _made("full", device, device.xp.full, shape, fill_value, dtype)

    def empty_like(self) -> Tensor:
        """Whatever is in memory, with this tensor's shape, dtype and device."""
        return self.empty(self.shape, dtype=self.dtype, device=self.device)

    def zeros_like(self) -> Tensor:
        """Zeros of this tensor's shape, dtype and device."""
        return self.full_like(0)

    def ones_like(self) -> Tensor:
        """Ones of this tensor's shape, dtype and device."""
        return self.full_like(1)

    def full_like(self, fill_value: Any) -> Tensor:
        """Every element `fill_value`, with this tensor's shape, dtype and device."""
        return self.full(self.shape, fill_value, dtype=self.dtype, device=self.device)

    @classmethod
    def arange(cls, *limits: Any, dtype: Any = None, device: Any = "cpu") -> Tensor:
        """stop, or start, stop, or start, stop, step; of the device's default dtype."""
        device = Device(device)
        whole = all(isinstance(limit, int) for limit in limits)
        dtype = dtype or (device.int_dtype if whole else device.float_dtype)
        return _made("arange", device, device.xp.arange, *limits, dtype=dtype)

    @classmethod
    def linspace(
        cls,
        start: float,
        stop: float,
        num: int = 50,
        *,
        dtype: Any = None,
        device: Any = "cpu",
    ) -> Tensor:
        """`num` numbers at equal distances, both ends among them."""
        device = Device(device)
        dtype = dtype or device.float_dtype
        make = device.xp.linspace
        return _made("linspace", device, make, start, stop, num, dtype=dtype)

    @classmethod
    def eye(
        cls, n: int, m: int | None = None, *, dtype: Any = None, device: Any = "cpu"
    ) -> Tensor:
        """An n by m matrix with ones on the diagonal."""
        device = Device(device)
        dtype = dtype or device.float_dtype
        return _made("eye", device, device.xp.eye, n, m, dtype=dtype)

    @classmethod
    def random(
        cls,
        shape: Any,
        distribution: Distribution | None = None,
        *,
        dtype: Any = None,
        device: Any = "cpu",
    ) -> Tensor:
        """Draws of a distribution, from `burnish.seed`'s source.

        shape: an integer or a tuple; distribution: one of `burnish.distributions`.
        """
        from burnish.distributions import Default

        device = Device(device)
        dtype = dtype or device.float_dtype
        source = Default() if distribution is None else distribution
        if not hasattr(source, "draw"):
            raise InputError(
                f"random: expected one of burnish.distributions, got {source!r}"
            )
        sizes = shape_from((shape,))
        return _random(source, sizes, dtype_from("random", dtype), device)

    def random_like(self, distribution: Distribution | None = None) -> Tensor:
        """Draws with this tensor's shape, dtype and device."""
        return self.random(
            self.shape, distribution, dtype=self.dtype, device=self.device
        )

    @classmethod
    def rand(cls, *shape: Any, dtype: Any = None, device: Any = "cpu") -> Tensor:
        """Uniform in [0, 1), from `burnish.seed`'s source."""
        from burnish.distributions import Uniform

        return cls.random(shape_from(shape), Uniform(), dtype=dtype, device=device)

    @classmethod
    def randn(cls, *shape: Any, dtype: Any = None, device: Any = "cpu") -> Tensor:
        """Normal with mean 0 and deviation 1, from `burnish.seed`'s source."""
        from burnish.distributions import Normal

        return cls.random(shape_from(shape), Normal(), dtype=dtype, device=device)

    if not TYPE_CHECKING:  # checkers know what there is

        def __getattr__(self, name):
            if name in dir(type(self)):  # it is there and raised AttributeError
                return object.__getattribute__(self, name)
            raise missing("Tensor", name, dir(type(self)))

    # --- display ---

    def __repr__(self) -> str:
        return describe(type(self).__name__, self.data, self.device)

    def __format__(self, spec: str) -> str:
        """`f"{x:.2f}"`: every element so; a tensor without axes is the number alone."""
        if spec and not self.ndim:
            return format(self.item(), spec)
        return describe(type(self).__name__, self.data, self.device, spec)


def _check_texts(values: Any) -> None:
    """Raise InputError for objects that are no texts: no dtype of numbers fits them."""
    odd = [value for value in values.flat if not isinstance(value, str | bytes)]
    odd.sort(key=lambda value: isinstance(value, Number))
    if odd:
        raise InputError(
            f"Tensor: expected NumPy's numbers or texts, got {odd[0]!r:.60}"
        )


def is_literal(data: Any) -> bool:
    """Whether these are Python's numbers, by themselves or in lists and tuples."""
    while isinstance(data, list | tuple) and data:
        data = data[0]
    return isinstance(data, int | float | complex) and not hasattr(data, "dtype")


def literal(data: Any, device: Device) -> tuple[Any, Any]:
    """Python's numbers as an array, and the dtype that they have on a device."""
    try:
        array = np.asarray(data)
    except OverflowError:  # the device says where it does not fit
        return data, None
    except ValueError as error:
        raise InputError(f"Tensor: expected lists of equal lengths: {error}") from None
    single = device.float_dtype.itemsize <= np.float32().itemsize
    dtypes = {
        "f": device.float_dtype,
        "i": device.int_dtype,
        "c": np.complex64 if single else array.dtype,
    }
    return array, dtypes.get(array.dtype.kind)


def _made(where: str, device: Device, make: Any, *args: Any, **options: Any) -> Tensor:
    """The result of `make` on a device; raises InputError where it fails."""
    try:
        with device.computing():
            return Tensor.wrap(make(*args, **options), device)
    except (TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        given = ", ".join(repr(arg) for arg in args)
        raise InputError(f"{where}: {error}, got {given}") from None


@draw
def _random(source: Distribution, shape: Any, dtype: Any, device: Device) -> Tensor:
    return _made("random", device, source.draw, shape, dtype, device)


def _is_device(target: Any) -> bool:
    if isinstance(target, Device):
        return True
    try:
        np.dtype(target)
    except TypeError:
        return is_kind(target.split(":")[0])
    return False


sys.modules[__name__].__class__ = TensorModule
