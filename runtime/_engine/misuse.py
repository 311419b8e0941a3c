"""Explain calls that do not fit: PyTorch's words for arguments, and arrays' errors."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Number
from typing import TYPE_CHECKING, Any

from burnish.errors import ArgumentError, InputError, PlaceError

if TYPE_CHECKING:
    import inspect

MISUSES = (ValueError, TypeError, IndexError, AttributeError, ArithmeticError)
"""Errors that arrays raise for arguments they cannot take."""

_MEANT = {
    "dim": ("axis", "axes", "index"),
    "dims": ("axis", "axes"),
    "keepdim": ("keepdims",),
    "unbiased": ("correction",),
    "axes": ("axis",),
    "input": ("x", "a", "logits", "predictions", "scores", "first"),
    "other": ("b",),
    "target": ("targets",),
    "sizes": ("size",),
    "scales": ("scale_factor",),
}
"""PyTorch's words for arguments, and what they may be called here."""


def misnamed(
    where: str, error: TypeError, options: dict[str, Any], known: Iterable[str]
) -> ArgumentError:
    """Python's word for a call that a signature does not fit, with the name meant.

    known: the names that the signature has; no other is recommended.
    """
    names = set(known)
    meant = [
        f"{word}= for {name}="
        for name in options
        for word in [w for w in _MEANT.get(name, ()) if w in names][:1]
    ]
    hint = f"; write {', '.join(meant)}" if meant else ""
    if not meant and "training" in options:
        hint = "; what acts in training alone acts on an autodiff device"
    if not meant and "out" in options:  # np.sum(x) asks x.sum for it
        hint = f"; write x.{where}(), or give NumPy x.numpy()"
    return ArgumentError(f"{where}: {error}{hint}")


def lenient(signature: inspect.Signature) -> inspect.Signature:
    """With arguments by name and in order alike, as far as Python can say so."""
    words = signature.parameters.values()
    named = [
        word.replace(kind=word.POSITIONAL_OR_KEYWORD)
        if word.kind in (word.KEYWORD_ONLY, word.POSITIONAL_ONLY)
        else word
        for word in words
    ]
    try:
        return signature.replace(parameters=named)
    except ValueError:  # behind *arrays, or one without a default behind others
        return signature


def misuse(where: str, args: tuple[Any, ...], error: Exception) -> InputError:
    """The InputError for an array's error, with the operator's name and arguments."""
    kind = PlaceError if isinstance(error, IndexError) else InputError
    kinds = isinstance(error, TypeError)
    return kind(
        f"{where}: got {', '.join(_described(a, kinds) for a in args)}: {error}"
    )


def _described(arg: Any, kinds: bool) -> str:
    """An argument in an error: an array's shape, a number, anything else's type."""
    if hasattr(arg, "shape"):
        shape = str(tuple(arg.shape))
        return f"{shape} {arg.dtype}" if kinds and hasattr(arg, "dtype") else shape
    return repr(arg) if isinstance(arg, Number) else type(arg).__name__
