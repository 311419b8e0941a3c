"""The options that decide the output, and the output before it is written."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from itertools import pairwise
from pathlib import Path
from typing import Literal, Self, TypeAlias

from burnish.codegen.names.identifier import Identifier
from burnish.codegen.weights.entries import Entry
from burnish.serialize import is_weights

Existing: TypeAlias = Literal["keep", "force", "merge"]
"""How to treat a file that was edited, or that Burnish did not write: keep it and write
nothing; keep it as .bak; merge the edits into the new source."""


@dataclass(frozen=True)
class Options:
    """Options that decide the output.

    name: the module's name, by default the model file's. half: floating-point weights
    are stored in half precision. embed: the weights travel with the package, in the
    source when they are small. simplify: bring the graph closer to what its author
    wrote. flat: one class, whatever structure the file has. typed: with annotations.
    weights: they are written at all. quantize: "q8" or "q4", the bits of matrices.
    standalone: with the parts of the runtime that it uses, for NumPy alone. selftest:
    with golden inputs and outputs, for `python -m MODULE --selftest`.
    allow_unknown: an unsupported operator becomes a method to fill in.
    dequantize: the float model that a quantized file was made from.
    """

    name: str | None = None
    half: bool = False
    embed: bool = False
    simplify: bool = True
    flat: bool = False
    typed: bool = False
    weights: bool = True
    quantize: str | None = None
    standalone: bool = False
    selftest: bool = False
    allow_unknown: bool = False
    dequantize: bool = False

    def spelled(self) -> str:
        """The options as the command line has them, "" for the defaults."""
        given = ("name", self.name), ("quantize", self.quantize)
        words = [f"--{word} {value}" for word, value in given if value]
        other = (_switch(w) for w in SWITCHES if getattr(self, w) != SWITCHES[w])
        return " ".join((*words, *sorted(other, key=lambda word: word[:5] == "--no-")))

    @classmethod
    def of(cls, spelled: str) -> Self:
        """The options that `spelled` returns, without those that it never writes."""
        words = shlex.split(spelled)
        pairs = dict(pairwise(words))
        on = {word: (_switch(word) in words) != SWITCHES[word] for word in SWITCHES}
        return cls(pairs.get("--name"), quantize=pairs.get("--quantize"), **on)


SWITCHES = {f.name: f.default for f in fields(Options) if isinstance(f.default, bool)}
"""Options that are on or off, and whether they usually are."""


def _switch(word: str) -> str:
    """`--allow-unknown`, `--no-weights`"""
    return f"--{'no-' if SWITCHES[word] else ''}{word.replace('_', '-')}"


def usual_name(path: Path) -> str:
    """The default name of a model's module."""
    if path.is_dir():
        return Identifier.module(path.resolve().name)
    if not (path.exists() and is_weights(path)):
        return Identifier.module(path.stem)
    stem = path.name.removesuffix(".index.json").partition(".")[0]
    return Identifier.module(stem or path.stem)


@dataclass(frozen=True)
class Generated:
    """Source, and weights that are read from the model file when they are written.

    inputs: the files that it was made of, the model file first. again: the source of
    another model in the same way. metadata: what the weights file says beside them,
    tables above all. origin: the weights file that they come from, where it is one;
    as_stored: the origin has the same tensors under the same names. unknown: operators
    that methods to fill in stand for, and the names of their nodes.
    """

    name: str
    text: str
    weights: tuple[Entry, ...]
    in_source: bool
    parameters: int
    notes: tuple[str, ...]
    inputs: tuple[Path, ...]
    again: Callable[[Path, Options], str]
    metadata: Mapping[str, str] = field(default_factory=dict)
    origin: Path | None = None
    as_stored: bool = False
    unknown: Mapping[str, list[str]] = field(default_factory=dict)
