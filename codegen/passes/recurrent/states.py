"""Simplify what TensorFlow's while loops carry: invariants, and a counter as condition.

Their bodies capture nothing, so that weights and lengths are carried from step to step
and come out as they went in. The condition compares a carried counter with a length.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx_ir as ir

from burnish.codegen.account import Account
from burnish.codegen.passes import graph as g

_WHOLE = frozenset((ir.DataType.INT32, ir.DataType.INT64))
_WIDE = _WHOLE | {ir.DataType.FLOAT, ir.DataType.DOUBLE}


def loop_states(model: ir.Model, account: Account) -> bool:
    """Read invariants of loops from outside; count loops that end by a counter."""
    rewrites = {
        "loop-invariant value captured": _capture,
        "while loop that counts": _count,
    }
    return g.rewrite_nodes(model, account, rewrites, "Loop")


def _states(
    node: ir.Node,
) -> Iterator[tuple[ir.Value, ir.Value, ir.Value, ir.Value]]:
    """Of each carried value: its start, the body's name, the next one, what is left."""
    body = node.attributes["body"].as_graph()
    for place, start in enumerate(node.inputs[2:]):
        if start is not None:
            inside, after = body.inputs[2 + place], body.outputs[1 + place]
            yield start, inside, after, node.outputs[place]


def _capture(_model: ir.Model, node: ir.Node) -> bool:
    """Replace invariants by their initial values; they are dead states then."""
    changed = False
    for start, inside, after, left in _states(node):
        if g.behind_identities(after) is not inside:
            continue
        for old in (inside, left):
            for reader, place in tuple(old.uses()):
                if reader.outputs[0] is not after:
                    reader.replace_input_with(place, start)
                    changed = True
    return changed


def _count(model: ir.Model, node: ir.Node) -> bool:
    """Write `while i < n` with i from 0 on as a loop of n steps."""
    body = node.attributes["body"].as_graph()
    turn, most = body.inputs[0], node.inputs[0]
    ends = {(one, _limit(other)) for one, other in _compared(body.outputs[0])}
    found = {limit for _, limit in ends}
    limit = found.pop() if len(found) == 1 else None
    if limit is None or (most is not None and _limit(most) != limit):
        return False
    if not _begins(node.inputs[1], limit):
        return False
    ends.discard((turn, limit))  # true at each turn before the last
    counters = [s for s in _states(node) if _counts(*s[1:3]) and _is_zero(s[0])]
    if len(ends) != 1:
        return False
    ((counter, _),) = ends
    inside = next((s[1] for s in counters if _plain(s[2]) is counter), None)
    if inside is None or inside.dtype is None:
        return False
    number = _cast(turn, inside.dtype, f"{node.name}/number")
    for reader, place in tuple(inside.uses()):
        fits = reader.op_type == "Gather" or inside.dtype == turn.dtype
        reader.replace_input_with(place, turn if fits else number.outputs[0])
    if number.outputs[0].uses():
        body.insert_before(body[0], number)
    node.replace_input_with(0, _times(model, node, limit))
    node.replace_input_with(1, None)
    body.outputs[0] = body.inputs[1]
    return True


def _limit(value: ir.Value) -> ir.Value | int | None:
    """The number of steps that a counter is compared with; None for no whole number.

    `i < 2.5` holds three times.
    """
    number = g.scalar(value)
    if number is not None:
        return int(number) if float(number).is_integer() else None
    whole = _plain(value)
    fits = whole.dtype in _WHOLE and whole.shape is not None and not whole.shape.rank()
    return whole if fits else None


def _begins(going: ir.Value | None, limit: ir.Value | int) -> bool:
    """Whether the loop starts where 0 is below the limit, and only there."""
    if going is None or g.scalar(going) is not None:
        starts = going is None or bool(g.scalar(going))
        return isinstance(limit, int) and starts and limit > 0
    begins = _compared(going)
    return bool(begins) and all(
        _is_zero(one) and _limit(other) == limit for one, other in begins
    )


def _times(model: ir.Model, node: ir.Node, limit: ir.Value | int) -> ir.Value:
    """The limit as a Loop takes it."""
    if isinstance(limit, int):
        return g.new_constant(model, f"{node.name}/count", np.array(limit, np.int64))
    made = _cast(limit, ir.DataType.INT64, f"{node.name}/count")
    made.metadata_props.update(node.metadata_props)
    g.owner(node).insert_before(node, made)
    return made.outputs[0]


def _cast(value: ir.Value, dtype: ir.DataType, name: str) -> ir.Node:
    made = ir.Node("", "Cast", [value], [ir.AttrInt64("to", dtype)], name=name)
    made.outputs[0].dtype, made.outputs[0].shape = dtype, ir.Shape(())
    return made


def _compared(value: ir.Value | None) -> list[tuple[ir.Value, ir.Value]]:
    """The two sides of each `<` that must hold, behind casts; [] for another condition.

    TensorFlow compares whole numbers as floats.
    """
    found: dict[tuple[ir.Value, ir.Value], None] = {}
    seen, waiting = set[ir.Node](), [value]
    while waiting:
        part = waiting.pop()
        maker = None if part is None else g.maker_of(_plain(part), "And", "Less")
        if maker is None:
            return []
        one, other = maker.inputs
        if maker.op_type == "And" and maker not in seen:
            waiting += [one, other]
        elif maker.op_type == "Less" and one is not None and other is not None:
            found[_plain(one), _plain(other)] = None
        seen.add(maker)
    return [*found]


def _plain(value: ir.Value) -> ir.Value:
    """The value behind identities, and casts to types that hold every count."""
    while (maker := g.maker_of(value, "Cast", "Identity")) and maker.inputs[0]:
        if maker.attributes.get_int("to", ir.DataType.INT64) not in _WIDE:
            break
        value = maker.inputs[0]
    return value


def _counts(inside: ir.Value, after: ir.Value) -> bool:
    """Whether the next value is that of a whole number and 1."""
    maker = g.maker_of(g.behind_identities(after), "Add")
    if maker is None or inside.dtype not in _WHOLE:
        return False
    numbers = [g.scalar(v) for v in maker.inputs if v is not inside]
    return numbers == [1]


def _is_zero(value: ir.Value) -> bool:
    return g.scalar(value) == 0
