"""The operator registry: a value, its gradient rules, and better kernels beside it.

    @operator
    def leaky_relu(x, *, slope: float = 0.01):
        return namespace(x).where(x > 0, x, slope * x)

    @leaky_relu.vjp
    def _(g, y, x, *, slope):
        return where(x > 0, g, slope * g)

    @leaky_relu.on("cupy")  # or prepared
    def _(x, *, slope): ...

    @leaky_relu.vjp("x", on="cupy")  # or prepared_vjp
    def _(g, y, x, *, slope): ...

Arrays come first; what follows `*` or `/` is an option. `/` says that options may
come in order (`softmax(x, -1)`), as NumPy's and PyTorch's do. Called on plain arrays an
operator returns plain arrays; called on variables (tensors) it returns variables and
records itself when one of them is recorded. A value may be a tuple of arrays; `g` and
`y` are tuples then, and `g` holds None for a result that nothing depends on.

`vjp` bare gives the gradient of the only differentiable argument, `vjp("a")` that of
the argument `a`, `vjp("x", "weight")` a tuple for both. A rule for `*arrays` returns
one gradient for each. Rules are written with operators, so that they can be
differentiated again, and are called only for arguments that need a gradient. A rule may
return None: no gradient flows that way. A rule for one backend (`on=`) is a kernel: it
is given plain arrays, and returns NotImplemented where the plain rule has to do it.
What is `prepared` decides once for CuPy's arrays alike, in dtype, shape and strides: it
returns a function of the arrays, or None where the plain value has to do it.
`prepared_vjp` does so for the gradients of all arguments together. An operator with a
kernel for "cupy" does not ask the former, one with a rule for it does not ask the
latter.
`bound` registers what is given a call's constants and returns a function of its arrays:
plans ask it once, so that work which depends on constants alone is not repeated.

`@memory_bound` above `@operator` lets balanced checkpointing compute the value again
instead of keeping it.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Generic,
    ParamSpec,
    TypeVar,
    cast,
    overload,
)

import numpy as np

from burnish._engine.arguments import unfit
from burnish._engine.misuse import MISUSES, lenient, misnamed, misuse
from burnish.autodiff import Node, Variable, recording, wrapped
from burnish.backend import Array, Device, bfloat16, namespace
from burnish.backend.cuda.calls import called, elsewhere
from burnish.checkpointing import Thin
from burnish.errors import BurnishError, DeviceError
from burnish.habits import Size
from burnish.vjp import Rules, is_late

if TYPE_CHECKING:
    import inspect

    from burnish.tensor import Tensor

P = ParamSpec("P")
Rest = ParamSpec("Rest")
A = TypeVar("A")
T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

registry: dict[str, Operator[..., Any, Any]] = {}
"""Operators by name; `@operator` adds to it, when an operator's module is imported."""

at_first_call: list[Callable[[], object]] = []
"""What is done once, when an operator first computes: kernels are registered."""

_MEMORY_BOUND: list[str] = []
"""Modules all of whose operators are memory-bound."""


_VARIADIC = 0x04  # the flag of code that takes *arrays


class Function(Generic[P, A, T]):
    """How type checkers see a call: arrays give arrays, tensors give tensors.

    P: the parameters. A, T: what arrays give, and what tensors give.
    """

    if TYPE_CHECKING:

        @overload
        def __call__(
            self: Function[Concatenate[Any, Any, Rest], A, T],
            x: Any,
            y: Tensor,
            /,
            *args: Rest.args,
            **options: Rest.kwargs,
        ) -> T: ...
        @overload
        def __call__(
            self: Function[Concatenate[Any, Rest], A, T],
            x: Array,
            /,
            *args: Rest.args,
            **options: Rest.kwargs,
        ) -> A: ...
        @overload
        def __call__(self, *args: P.args, **options: P.kwargs) -> T: ...
        def __call__(  # type: ignore[misc]  # mypy matches no Rest with *args
            self: Any, *args: Any, **options: Any
        ) -> Any: ...


class Operator(Rules, Function[P, A, T]):
    """A function of arrays with gradient rules and per-backend kernels."""

    def __init__(self, value: Callable[P, A]):
        super().__init__()
        self.value = value
        self.name = value.__name__
        self.__name__ = value.__name__.rstrip("_")
        self.__qualname__ = value.__qualname__
        self.__module__ = value.__module__
        self.__doc__ = value.__doc__
        self.kernels: dict[str, Callable[..., Any]] = {}
        self.prepare: Callable[..., Callable[..., Any] | None] | None = None
        self.bind: Callable[..., Callable[..., Any] | None] | None = None
        self.takes_bfloat16: set[str] = set()
        function: Any = value
        code = function.__code__  # inspect.signature is slow, and there are hundreds
        count = code.co_posonlyargcount or code.co_argcount
        self.arguments = list(code.co_varnames[:count])
        named = code.co_argcount + code.co_kwonlyargcount
        given = function.__kwdefaults__ or {}
        in_order = function.__defaults__ or ()
        words = code.co_varnames[: code.co_argcount]
        given |= dict(zip(reversed(words), reversed(in_order), strict=False))
        self.defaults = {
            name: given.get(name) for name in code.co_varnames[count:named]
        }
        self.options = frozenset(self.defaults)
        self.variadic = bool(code.co_flags & _VARIADIC)
        self.most = sys.maxsize if self.variadic else len(self.arguments)
        self.memory_bound = self.__module__.startswith(tuple(_MEMORY_BOUND))

    def __reduce__(self) -> str:
        """Where pickle finds it again: a global, as a function is."""
        return self.__qualname__

    @property
    def __signature__(self) -> inspect.Signature:
        import inspect

        return inspect.signature(self.value)

    def on(
        self, backend: str, *, takes_bfloat16: bool = False
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Register a kernel that replaces the plain value on "numpy" or "cupy".

        takes_bfloat16: whether it computes bfloat16 in float32 and rounds once.
        """

        def register(kernel: Callable[..., Any]) -> Callable[..., Any]:
            if backend in self.kernels and is_late(kernel):
                return kernel
            self.kernels[backend] = kernel
            if takes_bfloat16:
                self.takes_bfloat16.add(backend)
            return kernel

        return register

    def prepared(self, prepare: F) -> F:
        """Register what decides once how CuPy's arrays alike are computed.

        prepare(*args, **options) returns a function of the arrays, bfloat16 among
        them, or None.
        """
        self.prepare = prepare
        return prepare

    def bound(self, bind: F) -> F:
        """Register what computes once, for a plan, what depends on constants alone.

        bind(*args, **options), with None for each array that changes from call to
        call, returns a function of these arrays (NumPy's, not bfloat16), or None.
        """
        self.bind = bind
        return bind

    if not TYPE_CHECKING:  # checkers see Function's

        def __call__(self, *args: Any, **options: Any) -> Any:
            if len(args) > self.most or (
                options and not self.options.issuperset(options)
            ):
                args, options = self._bind(args, options)
            for arg in args:
                if isinstance(arg, Variable):
                    return self._on_variables(args, options)
            return self._compute(args, options)

    @functools.cached_property
    def _words(self) -> inspect.Signature:
        return lenient(self.__signature__)

    @functools.cached_property
    def _in_order(self) -> list[str]:
        """Options that may come in order, behind the arrays."""
        words = self._words.parameters
        return [k for k in self.defaults if words[k].kind != words[k].KEYWORD_ONLY]

    def _bind(self, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Arrays that were passed by name, and options in order, where they belong."""
        behind = args[self.most :]
        if 0 < len(behind) <= len(self._in_order):
            given = dict(zip(self._in_order, behind, strict=False))
            if self.defaults.keys() - given.keys() >= options.keys():
                return args[: self.most], given | options
        try:
            bound = self._words.bind(*args, **options)
        except TypeError as error:
            known = (*self.arguments, *self.defaults)
            raise misnamed(self.name, error, options, known) from None
        given = {k: v for k, v in bound.arguments.items() if k in self.defaults}
        bound.apply_defaults()
        if self.variadic:
            return bound.args, given
        return tuple(bound.arguments[name] for name in self.arguments), given

    def _compute(self, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        if at_first_call:
            _begin()
        try:
            if (
                self.prepare is not None
                and type(args[0]) is not np.ndarray
                and "cupy" not in self.kernels
            ):
                value = called(self.prepare, args, options)
                if value is not None:
                    return value
            kernel, takes = self.value, self.takes_bfloat16
            library = ""
            if self.kernels or takes:
                is_numpy = type(args[0]) is np.ndarray
                library = "numpy" if is_numpy else namespace(*args).__name__
                kernel = self.kernels.get(library, kernel)
                if library == "cupy" and (place := elsewhere(args)) is not None:
                    with place:
                        return self._compute(args, options)
            if (
                library not in takes
                and bfloat16.possible()
                and bfloat16.is_among(args)
                and options.get("dtype") is None
            ):
                given = bfloat16.widened(args)
                return bfloat16.narrowed(kernel(*given, **options))
            return kernel(*args, **options)
        except BurnishError:
            raise
        except MISUSES as error:
            if message := unfit(self.value, args, options):
                known = (*self.arguments, *self.defaults)
                raise misnamed(self.name, message, options, known) from None
            raise misuse(self.name, args, error) from error

    def _on_variables(self, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        if recording.tape is not None:
            return recording.tape.call(self, args, options)
        device: Device | None = None
        kind: type[Variable] = Variable
        parents: list[Any] | None = None
        raw: list[Any] = []
        for arg in args:
            if isinstance(arg, Variable):
                if arg.derived:
                    arg = arg.resolve()
                place = arg.device
                if device is None:
                    device, kind = place, arg.result_type()
                elif place is not device:
                    device = self._common(device, place)
                if (node := arg.node) is not None:
                    parents = parents or [None] * len(args)
                    parents[len(raw)] = node, arg.index
                raw.append(arg.data)
            else:
                raw.append(int(arg) if type(arg) is Size else arg)
        assert device is not None
        given = tuple(raw)
        if Device.is_several:
            with device.computing():
                values = self._compute(given, options)
        else:
            values = self._compute(given, options)
        if type(values) is not np.ndarray:
            values = _arrays(values)
        node = None
        if parents is not None:
            node = self._recorded(device, given, options, parents, values)
        if not isinstance(values, tuple):
            return wrapped(kind, values, device, node)
        made = []
        for i, value in enumerate(values):
            own = node if node and _differentiable(value) else None
            made.append(wrapped(kind, value, device, own, i))
        return tuple(made)

    def _recorded(
        self,
        device: Device,
        args: tuple[Any, ...],
        options: dict[str, Any],
        parents: list[Any],
        values: Any,
    ) -> Node | None:
        """What `backward()` walks; None where gradients stop or nothing is recorded."""
        if recording.paused:
            recording.missed = True
            return None
        if isinstance(values, tuple):
            if not any(map(_differentiable, values)):
                return None
        elif not _differentiable(values):
            return None
        make = Thin if device.is_balanced else Node
        return make(self, args, options, tuple(parents), values)

    def compute(self, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """The value of plain arguments, as arrays also where it has no axes."""
        return _arrays(self._compute(args, options))

    def _common(self, one: Device, other: Device) -> Device:
        if one.inner() is not other.inner():
            raise DeviceError(
                f"{self.name}: expected tensors on one device, got '{one}' and "
                f"'{other}'; move one with .to(device)"
            )
        balanced = one.is_balanced or other.is_balanced
        return one.autodiff("balanced" if balanced else "none")

    def __repr__(self) -> str:
        return f"<operator {self.name}>"


@overload
def operator(
    value: Callable[P, tuple[Array, ...]],
) -> Operator[P, tuple[Array, ...], tuple[Tensor, ...]]: ...
@overload
def operator(value: Callable[P, Array]) -> Operator[P, Array, Tensor]: ...
def operator(value: Callable[..., Any]) -> Operator[..., Any, Any]:
    """Declare an operator by its value; see the module's docstring."""
    made = registry[value.__name__] = Operator(value)
    return made


@overload
def composed(
    function: Callable[P, tuple[Array, ...]],
) -> Function[P, tuple[Array, ...], tuple[Tensor, ...]]: ...
@overload
def composed(function: Callable[P, Array]) -> Function[P, Array, Tensor]: ...
def composed(function: Any) -> Any:
    """Declare a function that is made of operators."""
    return explained(function)


def explained(function: F) -> F:
    """A function that says which argument was meant where PyTorch has another word."""

    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        if recording.tape is not None and recording.tape.keeps(call):
            return recording.tape.call(call, args, options)
        try:
            if Device.is_several and (place := _place(args)) is not None:
                with place.computing():
                    return function(*args, **options)
            return function(*args, **options)
        except TypeError as error:
            message = unfit(function, args, options)
            if message is None:
                raise
            import inspect

            known = inspect.signature(function).parameters
            raise misnamed(call.__name__, message, options, known) from error

    call.__name__ = function.__name__.rstrip("_")
    return cast(F, call)


def _begin() -> None:
    for each in at_first_call:  # an import: other threads wait for its end as well
        each()
    at_first_call.clear()


def memory_bound_in(*modules: str) -> None:
    """`memory_bound` for every operator of these modules, and of packages of them."""
    _MEMORY_BOUND.extend(modules)


def memory_bound(made: Operator[P, A, T]) -> Operator[P, A, T]:
    """Say that an operator moves more than it computes: `@memory_bound` above it.

    On a balanced device its result is not kept for `backward()` but computed again, so
    the same arguments have to give the same result.
    """
    made.memory_bound = True
    return made


def _place(args: tuple[Any, ...]) -> Device | None:
    """Where the first tensor of a call is."""
    return next((arg.device for arg in args if isinstance(arg, Variable)), None)


def _arrays(values: Any) -> Any:
    """NumPy returns scalars where an array has no axes; variables hold arrays."""
    if isinstance(values, tuple):
        return tuple(map(_arrays, values))
    return np.asarray(values) if isinstance(values, np.generic) else values


def _differentiable(value: Any) -> bool:
    return value is not None and value.dtype.kind in "fcV"
