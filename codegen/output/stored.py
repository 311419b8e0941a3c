"""Decide how weights are stored: in a file beside the source or embedded in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from burnish.codegen.errors import UsageError, spelled
from burnish.codegen.names.identifier import Identifier
from burnish.codegen.output.generated import Generated, Options, usual_name
from burnish.codegen.output.ownership import SEAL
from burnish.codegen.program import Weight
from burnish.codegen.signature import signed
from burnish.codegen.weights.dequantized import small
from burnish.codegen.weights.entries import Entry, as_text, entries
from burnish.codegen.weights.quantized import quantized

EMBED_AS_TEXT = 8 * 1024 * 1024
"""Weights up to this many bytes are embedded in the source, others beside it."""


@dataclass(frozen=True)
class Stored:
    """The entries of a module's weights file, or of its source.

    every: all of the model's weights; weights: those that are written. metadata: tables
    that are no weights. in_source: at the end of the source, and in no file.
    """

    name: str
    options: Options
    every: tuple[Entry, ...]
    weights: tuple[Entry, ...]
    metadata: Mapping[str, str] = field(default_factory=dict)

    @property
    def in_source(self) -> bool:
        size = sum(entry.size for entry in self.weights)
        return self.options.embed and size <= EMBED_AS_TEXT

    @property
    def count(self) -> int:
        """How many parameters the model has."""
        return sum(weight.count for weight in self.every if weight.trained)

    @property
    def where(self) -> str:
        """The header's lines on weights and options."""
        where = "no weights"
        if self.in_source:
            where = "weights at the end"
        elif self.weights or self.metadata:
            where = f"weights in {self.name}.safetensors"
        options = self.options.spelled()
        return f"{where}; options: {options}" if options else where

    def embedded(self) -> str | None:
        """The weights as text for the source, if they belong there."""
        if not self.in_source:
            return None
        return as_text(self.weights, self.metadata, SEAL)

    def generated(
        self,
        text: str,
        notes: Iterable[str],
        files: tuple[Path, ...],
        again: Callable[[Path, Options], str],
        **others: Any,
    ) -> Generated:
        """The output with this source, read from `files`; others: see `Generated`."""
        return Generated(
            self.name,
            self._settled(text),
            self.weights,
            self.in_source,
            self.count,
            tuple(notes),
            files,
            again,
            self.metadata,
            **others,
        )

    def _settled(self, text: str) -> str:
        """The final source: with its digest, and the runtime for `--standalone`."""
        if self.options.standalone:
            from burnish.codegen.standalone import refuse_dtypes, standalone

            refuse_dtypes((entry.path, entry.dtype) for entry in self.weights)
            text = standalone(
                text,
                quantized=bool(self.options.quantize),
                tables=bool(self.metadata),
            )
        return signed(text)


def stored(
    path: Path,
    options: Options,
    weights: Sequence[tuple[str, Weight]],
    metadata: Mapping[str, str] | None = None,
    *,
    of_graph: bool = False,
) -> Stored:
    """Decide how the weights of the model at `path` are written.

    of_graph: weights may be small numbers that its nodes dequantize; these stay small.
    """
    every = entries(weights, options.half)
    written = quantized(every, options.quantize) if options.weights else ()
    if of_graph and not options.dequantize:
        written = small(written)
    return Stored(module_name(options, path), options, every, written, metadata or {})


def module_name(options: Options, path: Path) -> str:
    """The requested name, or one derived from the file's name.

    Raises UsageError for a name that no module can have.
    """
    if (wanted := options.name) is None:
        return usual_name(path)
    name = Identifier.module(wanted)
    if name != wanted:
        raise UsageError(
            f"{spelled('name')}: expected a module name such as {name} (no "
            f"word or module of Python's, none that the source imports), got {wanted!r}"
        )
    return name
