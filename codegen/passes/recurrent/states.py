"""Simplify what TensorFlow's while loops carry: invariants, and a counter as condition.

Their bodies capture nothing, so that weights and lengths are carried from step to step
and come out as they went in. The condition compares a carried counter with a length.
"""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir

from burnish.codegen.account import Account
from burnish.codegen.passes import graph as g

_WHOLE = frozenset((ir.DataType.INT32, ir.DataType.INT64))
_WIDE = _WHOLE | {ir.DataType.FLOAT, ir.DataType.DOUBLE}


def loop_states(model: ir.Model, account: Account) -> bool:
    """Read invariants of loops from outside; count loops that end by a counter."""
    changed = False
    for node in g.all_nodes(model):
        if node.op_type != "Loop" or node.domain or node.graph is None:
            continue
        if _capture(node):
            account.did("loop-invariant value captured", g.label(node))
            changed = True
        if _count(node):
            account.did("while loop that counts", g.label(node))
            changed = True
    return changed


def _states(
    node: ir.Node,
) -> Iterator[tuple[ir.Value, ir.Value, ir.Value, ir.Value]]:
    """Of each carried value: its start, the body's name, the next one, what is left."""
    body = node.attributes["body"].as_graph()
    for place, start in enumerate(node.inputs[2:]):
        if start is not None:
            inside, after = body.inputs[2 + place], body.outputs[1 + place]
            yield start, inside, after, node.outputs[place]


def _capture(node: ir.Node) -> bool:
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


def _count(node: ir.Node) -> bool:
    """Write `while i < n` with i from 0 on as a loop of n steps."""
    body = node.attributes["body"].as_graph()
    turn, most = body.inputs[0], node.inputs[0]
    ends = dict.fromkeys(_compared(body.outputs[0]))
    begins = _compared(node.inputs[1])
    limit = begins[0][1] if begins else None
    if limit is None or limit.shape is None or limit.shape.rank():
        return False
    if most is not None and _plain(most) is not limit:
        return False
    if limit.dtype not in _WHOLE:  # `i < 2.5` holds three times
        return False
    ends.pop((turn, limit), None)  # true at each turn before the last
    if len(ends) != 1 or any(not _is_zero(b[0]) or b[1] is not limit for b in begins):
        return False
    (counter, same), *_ = ends
    counted = [s for s in _states(node) if _plain(s[2]) is counter and _counts(*s[1:3])]
    if not counted or limit is not same:
        return False
    start, inside = counted[0][:2]
    if not _is_zero(start) or inside.dtype is None:
        return False
    number = _cast(turn, inside.dtype, f"{node.name}/number")
    for reader, place in tuple(inside.uses()):
        fits = reader.op_type == "Gather" or inside.dtype == turn.dtype
        reader.replace_input_with(place, turn if fits else number.outputs[0])
    if number.outputs[0].uses():
        body.insert_before(body[0], number)
    count = _cast(limit, ir.DataType.INT64, f"{node.name}/count")
    count.metadata_props.update(node.metadata_props)
    g.owner(node).insert_before(node, count)
    node.replace_input_with(0, count.outputs[0])
    node.replace_input_with(1, None)
    body.outputs[0] = body.inputs[1]
    return True


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
