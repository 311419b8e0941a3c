"""Which initializers are numbers of the graph, and not weights that training changes.

Exporters write both into the same list once Constant nodes are lifted, so the reader
marks what was a Constant, and what is computed from constants alone is one too.
"""

from __future__ import annotations

import onnx_ir as ir

_MARK = "burnish.constant"


def mark(value: ir.Value) -> None:
    """Say that the value is a constant of the graph."""
    value.metadata_props[_MARK] = "yes"


def is_marked(value: ir.Value) -> bool:
    """Whether the value came from a Constant node, or from such values alone."""
    return _MARK in value.metadata_props


def trains(value: ir.Value | None) -> bool:
    """Whether the value is a floating-point weight of the file."""
    return (
        value is not None
        and value.const_value is not None
        and value.const_value.dtype.is_floating_point()
        and not is_marked(value)
    )
