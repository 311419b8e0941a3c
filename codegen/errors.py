"""What the generator raises: every message says where, what was expected, what came.

ConversionError               base; the command prints the message and exits with 1
├── ReadError                 the file is missing, damaged, or no model at all
├── UnsupportedError          operators or opsets that have no import rule, all of them
│   └── AttributeNotHonouredError   an attribute whose value the rule does not implement
├── VerifyError               the generated module cannot be compared, or disagrees
└── UsageError                the command was called wrongly; exits with 2
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

#: Receives one line each time a step decides something the user may ask about.
Explain = Callable[[str], None]

WHY_NOT = "burnish.why_not"
"""A node's metadata: why the reader left it as it is."""


def silent(_line: str) -> None:
    """An Explain that listens to nothing."""


class ConversionError(Exception):
    """Base of everything that the generator raises on purpose."""

    exit_code = 1


class ReadError(ConversionError):
    """A file that is missing, damaged, refused, or no model."""


class UnsupportedError(ConversionError):
    """What no import rule answers for: the whole list, never the first only.

    `missing` is a message, or maps each kind ("ai.onnx.Foo (opset 18)") to its nodes.
    """

    def __init__(self, missing: str | Mapping[str, Sequence[str]]) -> None:
        self.missing = {} if isinstance(missing, str) else dict(missing)
        super().__init__(missing if isinstance(missing, str) else _report(missing))


def _report(missing: Mapping[str, Sequence[str]]) -> str:
    lines = [
        f"  {kind}: {'node' if len(nodes) == 1 else 'nodes'} "
        + ", ".join(map(repr, nodes))
        for kind, nodes in sorted(missing.items())
    ]
    head = "expected operators and attributes with an import rule, these have none:"
    return "\n".join([head, *lines])


class AttributeNotHonouredError(UnsupportedError):
    """An attribute whose value would change the result and is not implemented."""

    def __init__(
        self, node: str, operator: str, name: str, expected: object, got: object
    ) -> None:
        super().__init__(
            f"node {node!r} ({operator}): expected {name}={expected}, got {got}"
        )


class VerifyError(ConversionError):
    """A comparison that cannot be made, or numbers that disagree."""


class UsageError(ConversionError):
    """A command or call with arguments that make no sense together."""

    exit_code = 2
