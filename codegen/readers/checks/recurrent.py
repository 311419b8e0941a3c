"""Check that the weights of a recurrent layer fit each other."""

from __future__ import annotations

import onnx_ir as ir

from burnish.codegen.errors import ReadError

_GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
_PEEPHOLES = 3


def check(model: ir.Model) -> None:
    """Raise a ReadError that names the first layer whose weights are not one layer's.

    W (D, G * H, I), R (D, G * H, H), B (D, 2 * G * H), and an LSTM's P (D, 3 * H).
    """
    for graph in model.graphs():
        for node in graph:
            if node.op_type in _GATES and not node.domain:
                _check(node)


def _check(node: ir.Node) -> None:
    given = [*node.inputs, *[None] * 8]
    W, R, B, P = (_shape(given[place]) for place in (1, 2, 3, 7))
    if R is None:
        return
    ways = node.attributes.get_string("direction", "forward")
    directions = 2 if ways == "bidirectional" else 1
    hidden = R[-1] if R else 0
    rows = _GATES[node.op_type] * hidden
    _compare(node, "R", R, (directions, rows, hidden))
    _compare(node, "W", W, (directions, rows, W[-1] if W else 0))
    _compare(node, "B", B, (directions, 2 * rows))
    if node.op_type == "LSTM":
        _compare(node, "P", P, (directions, _PEEPHOLES * hidden))


def _shape(value: ir.Value | None) -> tuple[int, ...] | None:
    """The shape of a weight of the file; None where it is computed, or not there."""
    held = None if value is None or value.is_graph_input() else value.const_value
    return None if held is None else tuple(held.shape.numpy())


def _compare(
    node: ir.Node, name: str, got: tuple[int, ...] | None, wanted: tuple[int, ...]
) -> None:
    if got is None or (got == wanted and 0 not in got):
        return
    fitting = "no axis of length 0" if got == wanted else f"shape {wanted}"
    raise ReadError(
        f"node {node.name!r} ({node.op_type}): expected {name} to have {fitting}, "
        f"got {got}; export the model again"
    )
