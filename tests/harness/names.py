"""Compare signatures with those that users of NumPy and PyTorch expect."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

WORDS = {
    **dict.fromkeys(("dim", "dims", "axes", "dim0", "axis0", "dimension"), "axis"),
    **dict.fromkeys(("input", "a", "x1", "A", "m", "v", "ary", "arr", "array"), "x"),
    **dict.fromkeys(("tensor", "self", "arrays", "tensors", "operands", "xi"), "x"),
    **dict.fromkeys(("other", "b", "x2", "B", "vec2", "exponent", "y"), "b"),
    **dict.fromkeys(("tensor2", "divisor", "second", "input2"), "b"),
    **dict.fromkeys(("targets",), "target"),
    **dict.fromkeys(("query", "key", "value", "q", "k_", "condition"), "x"),
    **dict.fromkeys(("keepdim",), "keepdims"),
    **dict.fromkeys(("shifts",), "shift"),
    **dict.fromkeys(("reps", "repetitions"), "repeats"),
    **dict.fromkeys(("start_dim", "end_dim"), "axis"),
    **dict.fromkeys(("start_axis", "end_axis", "axis1", "axis2", "dim1"), "axis"),
    **dict.fromkeys(("split_size_or_sections", "split_size"), "sizes"),
}
ABSENT = {"out", "inplace", "dtype", "where", "casting", "order", "subok", "signature"}
ABSENT |= {"size_average", "reduce", "device", "layout", "requires_grad", "pin_memory"}
ABSENT |= {"ddof"}  # NumPy's older word for correction
ABSENT |= {"_stacklevel", "generator", "overwrite_input", "copy", "kind", "initial"}


def signature(function: Any) -> inspect.Signature | None:
    """A function's signature, from its documentation where Python has none."""
    try:
        found = inspect.signature(function)
    except (TypeError, ValueError):
        found = None
    if found and not all(
        p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in found.parameters.values()
    ):
        return found
    match = re.search(r"^\s*(?:[\w.]+)\((.*?)\)\s*->", function.__doc__ or "", re.M)
    if not match:
        return None
    words = re.sub(r"\b(bool|int|float) (\w)", r"\2", match[1])
    words = re.sub(r":[^,=)]*(\[[^\]]*\])?[^,=)]*", "", words)
    words = words.replace("torch.strided", "None").replace("in_place", "_")
    try:
        scope: dict[str, Any] = {}
        exec(f"def made({words}): ...", scope)
    except (SyntaxError, NameError):
        return None
    return inspect.signature(scope["made"])


def differences(ours: inspect.Signature, theirs: inspect.Signature) -> Iterator[str]:
    """The differences that a caller who knows the other signature would trip over."""
    mine = list(ours.parameters.values())
    known = [p for p in theirs.parameters.values() if p.name not in ABSENT]
    both = zip(_in_order(mine), _in_order(known), strict=False)
    for place, (a, b) in enumerate(both):
        if place and WORDS.get(a.name, a.name) != WORDS.get(b.name, b.name):
            yield f"argument {place} is {a.name}, not {b.name}"
        elif _differs(a.default, b.default):
            yield f"{a.name} is {a.default}, not {b.default}"
    named = {p.name: p for p in known}
    for a in mine:
        b = named.get(a.name)
        if b is not None and _differs(a.default, b.default):
            yield f"{a.name}= is {a.default}, not {b.default}"


def _in_order(parameters: list[inspect.Parameter]) -> list[inspect.Parameter]:
    later = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD)
    return [p for p in parameters if p.kind not in later]


def _differs(ours: Any, theirs: Any) -> bool:
    """None, and NumPy's mark of no value, leave the choice to the function."""
    if theirs is inspect.Parameter.empty or theirs is None:
        return False
    if type(theirs).__name__ == "_NoValueType":
        return False
    return bool(ours is inspect.Parameter.empty or ours != theirs)


def peers(name: str, *homes: Any) -> dict[str, Callable[..., Any]]:
    """The functions of NumPy and PyTorch by a name, by their module."""
    found = {home.__name__: getattr(home, name, None) for home in homes}
    return {
        place: f for place, f in found.items() if callable(f) and not inspect.isclass(f)
    }


def functions(package: Any) -> list[str]:
    names = (name for name in package.__all__ if name.islower())
    return [n for n in names if not inspect.isclass(getattr(package, n))]


def agreeing(ours: Any, found: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Those whose signature agrees, and what differs from the others."""
    own = inspect.signature(ours)
    agree, problems = {}, []
    for place, theirs in found.items():
        other = signature(theirs)
        if other is None:
            continue
        if place in ("ndarray", "Tensor"):
            other = unbound(other)
        wrong = list(differences(own, other))
        problems += [f"{place}: {line}" for line in wrong]
        if not wrong:
            agree[place] = theirs
    return agree, problems


def unbound(found: inspect.Signature) -> inspect.Signature:
    """A method's signature with the object first, which PyTorch's pages leave out."""
    words = list(found.parameters.values())
    if words and words[0].name == "self":
        return found
    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    return found.replace(parameters=[own, *words])
