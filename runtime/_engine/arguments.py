"""Validate constructor arguments: types from annotations, bounds from names.

Layers, losses, optimizers and schedules are checked before they are built. A name means
the same in every signature: a `kernel_size` is 1 or more in every layer.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from math import inf
from numbers import Integral, Real
from typing import Any, TypeVar, cast

from burnish.errors import ArgumentError, InputError

F = TypeVar("F", bound=Callable[..., Any])

_LEAST = {
    **dict.fromkeys(
        (
            *("in_features", "out_features", "in2_features", "num_features"),
            *("num_embeddings", "embedding_dim", "input_size", "proj_size"),
            *("d_ff", "d_input", "d_output", "dim_feedforward", "kdim", "vdim"),
            *("num_layers", "num_encoder_layers", "num_decoder_layers", "steps"),
            *("output_padding", "output_size", "normalized_shape"),
        ),
        0,
    ),
    **dict.fromkeys(
        (
            *("groups", "num_groups", "num_heads", "nhead", "n_heads", "n_heads_kv"),
            *("d_model", "d_head", "d_context", "embed_dim", "hidden_size"),
            *("num_parameters", "upscale_factor", "downscale_factor"),
            *("in1_features", "in_channels", "out_channels", "num_channels"),
            *("kernel_size", "stride", "dilation", "size", "divisor_override"),
        ),
        1,
    ),
}
"""The minimum of a name's integer; a name that is missing takes any."""

_RANGES: dict[str, tuple[Callable[[float], bool], str]] = {
    "dropout": (lambda value: 0 <= value <= 1, "a number from 0 to 1"),
    "label_smoothing": (lambda value: 0 <= value <= 1, "a number from 0 to 1"),
    "std": (lambda value: 0 <= value < inf, "a number of 0 or more"),
    "norm_type": (lambda value: value > 0, "a number above 0"),
    "scale_factor": (lambda value: 0 < value < inf, "a number above 0"),
    "limit": (lambda value: value > 0, "a number above 0"),
    "norm": (lambda value: value > 0, "a number above 0"),
}
"""Which numbers a name takes, and how to say so; a name that is missing takes any."""

_OBJECTS = {
    "Module": ("forward", "a module"),
    "Schedule": ("at", "a schedule"),
    "Optimizer": ("step", "an optimizer"),
}
"""A method that tells objects of a class from others, and what those are called."""

_PLURALS = {"int": "integers", "float": "numbers", "Schedule": "schedules"}

_ONE_OR_SEVERAL = (
    *("kernel_size", "stride", "padding", "dilation", "output_padding"),
    *("output_size", "normalized_shape", "size", "scale_factor"),
)
"""Names of a number or several, which are annotated as anything."""


def checked(build: Callable[..., None]) -> Callable[..., None]:
    """A constructor that looks at its arguments first: InputError where one misfits.

    A call that its signature does not fit is an ArgumentError that shows how it is
    called.
    """

    @functools.wraps(build)
    def construct(self: Any, *args: Any, **options: Any) -> None:
        wanted = _wanted(build)
        given = [*zip(wanted, args, strict=False), *options.items()]
        check(type(self).__name__, wanted, given)
        try:
            build(self, *args, **options)
        except TypeError:
            kinds: tuple[Any, ...] = type(self).__mro__
            kind = next(kind for kind in kinds if construct in _layers(kind.__init__))
            if error := uncalled(kind, args, options):
                raise error from None
            raise

    return construct


def _layers(function: Any) -> Iterator[Any]:
    """A function, and those that it wraps, one within the other."""
    while function is not None:
        yield function
        function = getattr(function, "__wrapped__", None)


def unfit(function: Any, args: Any, options: Mapping[str, Any]) -> TypeError | None:
    """Python's error for arguments that a signature does not take, if any."""
    import inspect

    try:
        inspect.signature(function).bind(*args, **options)
    except TypeError as error:
        return error
    return None


def uncalled(kind: type, args: Any, options: Mapping[str, Any]) -> ArgumentError | None:
    """The error for arguments that a class does not take, with how it is called."""
    import inspect

    if not (expected := unfit(kind, args, options)):
        return None
    parameters = inspect.signature(kind).parameters.values()
    bare = [word.replace(annotation=word.empty) for word in parameters]
    name = kind.__name__
    return ArgumentError(f"{name}: {expected}; write {name}{inspect.Signature(bare)}")


def replaced_by(instead: str) -> Callable[[F], F]:
    """Decorate a method: PyTorch's arguments raise an error with the form to use."""

    def explain(method: F) -> F:
        @functools.wraps(method)
        def explained(self: Any, *args: Any, **options: Any) -> Any:
            try:
                return method(self, *args, **options)
            except TypeError:
                if error := unfit(method, (self, *args), options):
                    where = f"{type(self).__name__}.{method.__name__}"
                    where = where.removesuffix(".__init__")
                    raise ArgumentError(f"{where}: {error}; write {instead}") from None
                raise

        return cast(F, explained)

    return explain


@functools.cache
def _wanted(build: Callable[..., Any]) -> dict[str, tuple[str, Any]]:
    import inspect

    parameters = list(inspect.signature(build).parameters.values())[1:]
    fixed = (p for p in parameters if p.kind is not p.VAR_POSITIONAL)
    return {p.name: (str(p.annotation), p.default) for p in fixed}


def check_fields(made: Any) -> None:
    """The same for a dataclass, from its `__post_init__`."""
    fields = [field for field in dataclasses.fields(made) if field.init]
    wanted = {field.name: (str(field.type), field.default) for field in fields}
    given = [(field.name, getattr(made, field.name)) for field in fields]
    check(type(made).__name__, wanted, given)


def check(
    where: str, wanted: dict[str, tuple[str, Any]], given: Iterable[tuple[str, Any]]
) -> None:
    """Raise InputError for the first of `given`, names and values, that does not fit.

    wanted: the annotation and the default of each name.
    """
    for name, value in given:
        annotation, default = wanted.get(name, ("", None))
        if value is default or (value is None and "None" in annotation):
            continue
        if expected := _misfit(name, annotation, value):
            raise InputError(
                f"{where} {name}: expected {expected}, got {_shown(value)}"
            )


def _misfit(name: str, annotation: str, value: Any) -> str:
    """The expectation that `value` does not meet; "" where it fits."""
    kind = annotation.removesuffix(" | None")
    if kind == "Any" and name in _ONE_OR_SEVERAL:
        return _misfit_of_several(name, value)
    if kind == "int":
        return _misfit_of_whole(name, value)
    if kind == "float":
        return _misfit_of_number(name, value)
    if kind == "str":
        return "" if isinstance(value, str) else "a text"
    if kind in _OBJECTS:
        method, expected = _OBJECTS[kind]
        return (
            "" if hasattr(value, method) and not isinstance(value, type) else expected
        )
    if kind.startswith("Callable"):
        fits = callable(value) and not isinstance(value, type)
        return "" if fits else "a function or an object to call"
    if kind.startswith(("tuple[", "Sequence[")):
        return _misfit_of_sequence(name, kind, value)
    return ""


def _misfit_of_number(name: str, value: Any) -> str:
    fits, expected = _RANGES.get(name, (lambda value: True, "a number"))
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    return "" if is_number and fits(value) else expected


def _misfit_of_several(name: str, value: Any) -> str:
    """Of a number for all axes or one each; paddings may be pairs, or have a name."""
    if name == "padding" and isinstance(value, str):
        return ""
    parts = value if isinstance(value, tuple | list) else (value,)
    if name == "padding":
        pairs = (p if isinstance(p, tuple | list) else (p,) for p in parts)
        parts = [number for pair in pairs for number in pair]
    if name == "output_size":
        parts = [number for number in parts if number is not None]
    of = _misfit_of_number if name == "scale_factor" else _misfit_of_whole
    expected = next(filter(None, (of(name, number) for number in parts)), "")
    return expected and f"{expected}, or one for each axis"


def _misfit_of_sequence(name: str, kind: str, value: Any) -> str:
    """Of `tuple[float, float]`, `tuple[int, ...]` or `Sequence[int]`."""
    inner = kind[kind.index("[") + 1 : -1].split(", ")
    if inner[0] not in _PLURALS:
        return ""
    exact = kind.startswith("tuple") and inner[-1] != "..."
    expected = f"{len(inner)} {_PLURALS[inner[0]]}"
    expected = expected if exact else f"a sequence of {_PLURALS[inner[0]]}"
    if not isinstance(value, Iterable) or isinstance(value, str | Mapping):
        return expected
    if any(_misfit(name, inner[0], part) for part in value):
        return expected
    return expected if exact and len(tuple(value)) != len(inner) else ""


def _misfit_of_whole(name: str, value: Any) -> str:
    least = _LEAST.get(name)
    is_whole = isinstance(value, Integral) and not isinstance(value, bool)
    if is_whole and (least is None or int(value) >= least):
        return ""
    return "an integer" if least is None else f"an integer of {least} or more"


def _shown(value: Any) -> str:
    if isinstance(value, Real | str | tuple | list | None) and len(repr(value)) < 60:
        return repr(value)
    if isinstance(value, type):
        return f"the class {value.__name__}"
    return f"a {type(value).__name__}"
