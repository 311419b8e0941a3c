"""Make identifiers; text of a model file reaches source unquoted only through them."""

from __future__ import annotations

import builtins
import re
import sys
from collections.abc import Container, Iterable
from keyword import iskeyword, issoftkeyword

_TAKEN = frozenset(
    {"self", "generation", "nn", "ops", "math", "Tensor", "Model", "WEIGHTS"}
)
_BUILTINS = frozenset(dir(builtins)) - {"input"}  # what many a model calls its own
_IMPORTED = sys.stdlib_module_names | {"burnish", "cupy", "cupyx", "ml_dtypes", "numpy"}
_LONGEST = 40
_NEAR = 32  # so many numbers are tried one by one, before they are bisected


class Identifier(str):
    """A legal Python name made from any text."""

    __slots__ = ()

    def __new__(cls, text: str) -> Identifier:
        name = re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_")[:_LONGEST]
        name = name.rstrip("_") or "value"
        if name[0].isdigit():
            name = f"n{name}"
        if iskeyword(name) or issoftkeyword(name) or name in _TAKEN:
            name = f"{name}_"
        return super().__new__(cls, name)

    @classmethod
    def variable(cls, text: str) -> Identifier:
        """A lower-case name that hides no builtin and does not look like a 1."""
        name = cls(_snake(text))
        hides = name in _BUILTINS or name == "l"
        return super().__new__(cls, f"{name}_") if hides else name

    @classmethod
    def module(cls, text: str) -> Identifier:
        """A variable's name that hides no module that generated source needs.

        A script beside json.py would import that in the place of Python's own.
        """
        name = cls.variable(text)
        return super().__new__(cls, f"{name}_model") if name in _IMPORTED else name

    @classmethod
    def attribute(cls, text: str) -> Identifier:
        """The text itself where Python has nothing against it: keys stay the same."""
        legal = text.isidentifier() and text.isascii() and not text.startswith("__")
        if legal and not iskeyword(text) and len(text) <= _LONGEST:
            return super().__new__(cls, text)
        return cls(text)

    @classmethod
    def class_name(cls, text: str) -> Identifier:
        """A CamelCase name."""
        words = re.split(r"\W+|_", text, flags=re.ASCII)
        return cls("".join(w[:1].upper() + w[1:] for w in words if w) or "Block")


def _snake(text: str) -> str:
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", text)
    return spaced.lower()


def free(wanted: Identifier, taken: Container[str]) -> Identifier:
    """`wanted`, or with the first number behind it that is not taken."""
    if wanted not in taken:
        return wanted
    return Identifier(_numbered(wanted, _first_free(wanted, 2, taken)))


class Names:
    """Names that are taken, each once."""

    def __init__(self, taken: Iterable[str] = ()):
        self.taken = set(taken)
        self.numbers: dict[str, int] = {}

    def new(self, wanted: Identifier) -> Identifier:
        """`wanted`, or with the first number behind it that is not taken; it is now."""
        name = wanted
        if name in self.taken:
            number = _first_free(wanted, self.numbers.get(wanted, 2), self.taken)
            self.numbers[wanted] = number + 1
            name = Identifier(_numbered(wanted, number))
        self.taken.add(name)
        return name


def _first_free(wanted: str, number: int, taken: Container[str]) -> int:
    """A number from here on that is free where the one before it is taken."""
    above = number
    while _numbered(wanted, above) in taken:
        near = above < number + _NEAR
        number, above = (number, above + 1) if near else (above, 2 * above)
    if above <= number + _NEAR:
        return above
    while above - number > 1:
        middle = (number + above) // 2
        if _numbered(wanted, middle) in taken:
            number = middle
        else:
            above = middle
    return above


def _numbered(wanted: str, number: int) -> str:
    return f"{wanted[: _LONGEST - len(str(number))]}{number}"


def plain(text: str) -> str:
    """Text of a file, escaped for use inside a docstring."""
    kept = "".join(c if c.isalnum() or c in " ._-/:" else "_" for c in text)
    return kept.encode("ascii", "replace").decode()[:50]
