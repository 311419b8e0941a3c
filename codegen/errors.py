"""What the generator raises: every message says where, what was expected, what came.

ConversionError               base; the command prints the message and exits with 1
├── ReadError                 the file is missing, damaged, or no model at all
├── UnsupportedError          operators or opsets that have no import rule, all of them
│   └── AttributeNotHonouredError   an attribute whose value the rule does not implement
├── VerifyError               the generated module cannot be compared, or disagrees
└── UsageError                the command was called wrongly; exits with 2
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

#: Receives one line each time a step decides something the user may ask about.
Explain = Callable[[str], None]


def silent(_line: str) -> None:
    """An Explain that listens to nothing."""


class ConversionError(Exception):
    """Base of everything that the generator raises on purpose."""

    exit_code = 1


class ReadError(ConversionError):
    """A file that is missing, damaged, refused, or no model."""


@dataclass(frozen=True)
class MissingOperator:
    """One node that no import rule answers for."""

    node: str
    op_type: str
    domain: str
    version: int | None

    def __str__(self) -> str:
        domain = self.domain or "ai.onnx"
        version = "no opset imported" if self.version is None else self.version
        return f"node {self.node!r}: {domain}::{self.op_type} (opset {version})"


class UnsupportedError(ConversionError):
    """Operators without an import rule: the whole list, never the first only."""

    @classmethod
    def operators(
        cls, missing: Iterable[MissingOperator], where: str = "the model"
    ) -> UnsupportedError:
        """One report for all nodes in `missing`."""
        nodes = list(missing)
        kinds = sorted({f"{m.domain or 'ai.onnx'}::{m.op_type}" for m in nodes})
        lines = [
            f"{where}: {len(kinds)} operator{'s' * (len(kinds) != 1)} without an "
            f"import rule, expected none ({', '.join(kinds)}); register a rule for each"
        ]
        return cls("\n".join([*lines, *(f"  {node}" for node in nodes)]))


class AttributeNotHonouredError(UnsupportedError):
    """An attribute whose value would change the result and is not implemented."""

    @classmethod
    def of(
        cls, node: str, operator: str, name: str, expected: object, got: object
    ) -> AttributeNotHonouredError:
        """The message for one attribute of one node."""
        return cls(f"node {node!r} ({operator}): expected {name}={expected}, got {got}")


class VerifyError(ConversionError):
    """A comparison that cannot be made, or numbers that disagree."""


class UsageError(ConversionError):
    """A command or call with arguments that make no sense together."""

    exit_code = 2
