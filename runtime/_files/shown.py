"""Short representations of untrusted values for messages."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any

_DEEPEST, _MOST, _BITS = 2, 8, 256
_COMPARED, _LONGEST = 10_000, 200  # names, and characters of one


def shown(value: Any, most: int = 80) -> str:
    """A value as one line of at most `most` characters, in ASCII.

    Text, numbers and small containers of them as Python writes them; of anything else
    the type. No value's own `repr` is asked, which may take any time and any depth.
    """
    text = _shown(value, most, 0)
    return text if len(text) <= most else f"{text[: most - 3]}..."


def words(text: object, most: int = 200) -> str:
    """The text of an error or a file, as a part of a line in ASCII."""
    return shown(str(text), most)[1:-1]


def close(name: Any, names: Iterable[Any]) -> str:
    """The one of the names that was probably meant, or "".

    Of very many names the first thousands are looked at, and no very long ones.
    """
    import difflib

    text = name if isinstance(name, str) else shown(name)
    near = (each for each in islice(names, _COMPARED) if len(str(each)) <= _LONGEST)
    return next(iter(difflib.get_close_matches(text[:_LONGEST], map(str, near), 1)), "")


def _shown(value: Any, most: int, depth: int) -> str:
    kind = type(value)
    if kind in (str, bytes, bytearray):
        return ascii(value[:most]) + ("..." if len(value) > most else "")
    if kind is int and value.bit_length() > _BITS:
        return f"an integer of {value.bit_length()} bits"
    if value is None or kind in (bool, int, float, complex):
        return repr(value)
    if kind not in _ENDS:
        return f"a {kind.__name__[:most]}"
    before, after = _ENDS[kind]
    if depth >= _DEEPEST and value:
        return f"{before}...{after}"
    inside: list[str] = []
    for item in value:
        if len(inside) == _MOST:
            inside.append("...")
            break
        text = _shown(item, most, depth + 1)
        more = f": {_shown(value[item], most, depth + 1)}" if kind is dict else ""
        inside.append(text + more)
    comma = "," if kind is tuple and len(value) == 1 else ""
    return f"{before}{', '.join(inside)}{comma}{after}"


_ENDS: dict[type, tuple[str, str]] = {
    list: ("[", "]"),
    tuple: ("(", ")"),
    dict: ("{", "}"),
    set: ("{", "}"),
    frozenset: ("{", "}"),
}
