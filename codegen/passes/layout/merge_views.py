"""Merge chains of Reshape, Transpose and Squeeze into the shortest equal chain.

An exporter puts attention's keys through three reshapes to swap two axes. What a chain
does is followed axis by axis: each axis of the result is a run of (parts of) axes of
what came in. Written again from that, it is one reshape to the parts, one transpose of
the runs and one reshape to the result; mostly two of the three are identities.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import onnx_ir as ir

from burnish.codegen.account import Account
from burnish.codegen.ops import Trait, having
from burnish.codegen.ops.shapes.dims import declared, known
from burnish.codegen.passes import graph as g
from burnish.codegen.scopes import scope_of
from burnish.codegen.symbolic.sizes import ONE, Size, product

_VIEWS = having(Trait.VIEW)


@dataclass(eq=False)
class Atom:
    """A part of an axis that came in, as small as the chain takes it apart."""

    size: Size


Axes = list[list[Atom]]


def merge_views(model: ir.Model, account: Account) -> bool:
    """Write every chain of views of one tensor in the fewest steps."""
    changed = False
    chains = [_chain(node) for node in g.all_nodes(model) if _is_view(node)]
    forms = {_form(chain) for chain in chains if _moves(chain)}
    for node in reversed(g.all_nodes(model)):
        if node.graph is None or not _is_view(node):
            continue
        chain = _chain(node)
        if _form(chain) in forms and not _moves(chain):
            continue  # the same module elsewhere has more than one of what this has
        for part in _parts(chain):
            if _shortened(model, part):
                account.did(f"{len(part)} views in a row, now fewer", g.label(node))
                changed = True
                break
    return changed


def _parts(chain: list[ir.Node]) -> Iterator[list[ir.Node]]:
    """The chain and its subchains of two views and more, longest first."""
    for length in range(len(chain), 1, -1):
        for start in range(len(chain) - length + 1):
            yield chain[start : start + length]


def _is_view(node: ir.Node) -> bool:
    return node.domain == "" and node.op_type in _VIEWS and len(node.outputs) == 1


def _chain(last: ir.Node) -> list[ir.Node]:
    """The views that end in this one, as far as nothing else reads between them."""
    users = [user for user, _ in last.outputs[0].uses()]
    if len(users) == 1 and _follows(last, users[0]):
        return []  # it is inside of a longer one
    chain = [last]
    while True:
        before = g.maker_of(chain[0].inputs[0])
        if before is None or not _follows(before, chain[0]):
            return chain
        chain.insert(0, before)


def _form(chain: list[ir.Node]) -> tuple[object, ...]:
    """A fingerprint of a chain without its sizes."""
    return tuple(
        (node.op_type, len(_sizes(node.outputs[0]) or ()), tuple(_order(node)))
        for node in chain
    )


def _moves(chain: list[ir.Node]) -> bool:
    """Whether elements change their places: axes are swapped that are longer than 1."""
    for node in chain:
        before = _sizes(node.inputs[0]) if node.op_type == "Transpose" else None
        order = g.order_of(node, len(before)) if before else None
        moved = [i for i in order or () if before and before[i] != ONE]
        if moved != sorted(moved):
            return True
    return False


def _order(node: ir.Node) -> list[int]:
    """The input's axes in the order of a Transpose."""
    if node.op_type != "Transpose":
        return []
    reverse = range(len(_sizes(node.inputs[0]) or ()))[::-1]
    return list(node.attributes.get_ints("perm", reverse))


def _follows(first: ir.Node, second: ir.Node) -> bool:
    """Whether the two are views in a row, of one module."""
    between = first.outputs[0]
    return (
        _is_view(first)
        and _is_view(second)
        and second.inputs[0] is between
        and len(between.uses()) == 1
        and not between.is_graph_output()
        and first.graph is second.graph
        and scope_of(first) == scope_of(second)
    )


def _shortened(model: ir.Model, chain: list[ir.Node]) -> bool:
    source, result = chain[0].inputs[0], chain[-1].outputs[0]
    before = _sizes(source)
    if source is None or before is None:
        return False
    steps = _rewritten(model, chain, before)
    if steps is None or len(steps) >= len(chain):
        _give_up(model, steps or ())
        return False
    _replace(chain, steps, source, result)
    return True


def _rewritten(
    model: ir.Model, chain: list[ir.Node], before: list[Size]
) -> list[ir.Node] | None:
    """The chain in its fewest steps; None where sizes are unknown."""
    start: Axes = [[] if size == ONE else [Atom(size)] for size in before]
    cuts: dict[Atom, list[Atom]] = {}
    axes: Axes | None = start
    for node in chain:
        axes = None if axes is None else _step(node, axes, cuts)
    if axes is not None:
        parts = ([_leaves(axis, cuts) for axis in shape] for shape in (start, axes))
        return _steps(model, chain, *parts)
    after = _sizes(chain[-1].outputs[0])
    if after is None or any(node.op_type == "Transpose" for node in chain):
        return None
    one = _reshape_to(model, chain, before, after)
    return None if one is None else [one]


def _sizes(value: ir.Value | None) -> list[Size] | None:
    return known(declared(value))


# --- the effect of a chain ---


def _step(node: ir.Node, axes: Axes, cuts: dict[Atom, list[Atom]]) -> Axes | None:
    if node.op_type == "Transpose":
        order = g.order_of(node, len(axes))
        return None if order is None else [axes[axis] for axis in order]
    sizes = _sizes(node.outputs[0])
    if sizes is None:
        return None
    return _regrouped([atom for axis in axes for atom in axis], sizes, cuts)


def _regrouped(
    atoms: list[Atom], sizes: list[Size], cuts: dict[Atom, list[Atom]]
) -> Axes | None:
    """The atoms in a row, dealt out to axes of these sizes; cut where they must be."""
    left = [leaf for atom in atoms for leaf in _leaves([atom], cuts)][::-1]
    axes: Axes = []
    for size in sizes:
        axis: list[Atom] = []
        missing = size
        while missing != ONE:
            if not left:
                return None
            atom = left.pop()
            rest = missing.divided(atom.size)
            if rest is not None:
                axis.append(atom)
                missing = rest
                continue
            over = atom.size.divided(missing)
            if over is None:
                return None
            cuts[atom] = [Atom(missing), Atom(over)]
            axis.append(cuts[atom][0])
            left.append(cuts[atom][1])
            missing = ONE
        axes.append(axis)
    return None if left else axes


def _leaves(atoms: list[Atom], cuts: dict[Atom, list[Atom]]) -> list[Atom]:
    found: list[Atom] = []
    for atom in atoms:
        found += _leaves(cuts[atom], cuts) if atom in cuts else [atom]
    return found


# --- how to write it ---


def _steps(
    model: ir.Model, chain: list[ir.Node], start: Axes, end: Axes
) -> list[ir.Node] | None:
    """The fewest views that lead from `start` to `end`; None if they have no words."""
    order = _permuted(start, end)
    if order is not None:
        return [] if order == sorted(order) else [_transpose(order)]
    runs = _runs([a for axis in start for a in axis], end)
    at = {id(run[0]): i for i, run in enumerate(runs)}
    order = [at[id(atom)] for axis in end for atom in axis if id(atom) in at]
    moved = order != sorted(order)
    if not moved:
        last = _reshape(model, chain, start, end)
        return None if last is None else [last]
    steps: list[ir.Node | None] = []
    if [axis for axis in start if axis] != runs or len(start) != len(runs):
        steps.append(_reshape(model, chain, start, runs))
    steps.append(_transpose(order))
    between = [runs[i] for i in order]
    if between != end:
        steps.append(_reshape(model, chain, between, end))
    if None in steps:
        _give_up(model, steps)
        return None
    return [step for step in steps if step is not None]


def _permuted(start: Axes, end: Axes) -> list[int] | None:
    """The order of whole axes that `end` is, axes of one element included."""
    if len(start) != len(end):
        return None
    ones = [i for i, axis in enumerate(start) if not axis]
    order = []
    for axis in end:
        found = [i for i, other in enumerate(start) if axis and other == axis]
        if axis and not found:
            return None
        order.append(found[0] if axis else ones.pop(0) if ones else -1)
    return None if ones or -1 in order else order


def _runs(before: list[Atom], end: Axes) -> Axes:
    """Atoms that stay neighbours in one axis are moved together."""
    follows = {id(a): b for axis in end for a, b in pairwise(axis)}
    runs: Axes = []
    for atom in before:
        if runs and follows.get(id(runs[-1][-1])) is atom:
            runs[-1].append(atom)
        else:
            runs.append([atom])
    return runs


def _transpose(order: list[int]) -> ir.Node:
    return ir.Node("", "Transpose", [None], [ir.AttrInt64s("perm", order)])


def _reshape(
    model: ir.Model, chain: list[ir.Node], before: Axes, after: Axes
) -> ir.Node | None:
    """A Reshape between these axes; a Squeeze or Unsqueeze where that says it all."""
    for op_type, longer, shorter in (
        ("Squeeze", before, after),
        ("Unsqueeze", after, before),
    ):
        ones = [i for i, axis in enumerate(longer) if not axis]
        if [axis for axis in longer if axis] == shorter and ones:
            inputs = [None, _constant(model, chain, ones)]
            return ir.Node("", op_type, inputs, version=13)
    given, sizes = (
        [product([atom.size for atom in axis]) for axis in axes]
        for axes in (before, after)
    )
    return _reshape_to(model, chain, given, sizes)


def _reshape_to(
    model: ir.Model, chain: list[ir.Node], given: list[Size], sizes: list[Size]
) -> ir.Node | None:
    """A Reshape by numbers: those that the chain has for this shape, or new ones."""
    for node in chain:
        if node.op_type == "Reshape" and _sizes(node.outputs[0]) == sizes:
            wanted = g.integers(node.inputs[1])
            if wanted is None or 0 not in wanted:
                return ir.Node("", "Reshape", [None, node.inputs[1]])
    numbers: list[int] = []
    for i, size in enumerate(sizes):
        kept = i < len(given) and given[i] == size
        number = size.value
        numbers.append(number if number is not None else 0 if kept else -1)
    if numbers.count(-1) > 1 or 0 in [size.value for size in sizes]:
        return None
    return ir.Node("", "Reshape", [None, _constant(model, chain, numbers)])


def _constant(model: ir.Model, chain: list[ir.Node], numbers: list[int]) -> ir.Value:
    return g.new_constant(model, f"{chain[-1].outputs[0].name}_view", numbers)


def _give_up(model: ir.Model, steps: Iterable[ir.Node | None]) -> None:
    """Steps that will not be taken; the numbers that were made for them go too."""
    read = [value for step in steps if step is not None for value in step.inputs]
    g.detach_inputs(steps)
    for value in read:
        if value is not None and value.is_initializer() and not value.uses():
            model.graph.initializers.pop(value.name or "", None)


def _replace(
    chain: list[ir.Node], steps: list[ir.Node], source: ir.Value, result: ir.Value
) -> None:
    """Put the steps where the chain began; where it ended if they need more by then."""
    last = chain[-1]
    if not steps:
        steps = [ir.Node("", "Identity", [None])]
    value = source
    for step in steps:
        step.replace_input_with(0, value)
        value = g.named_like(step, last).outputs[0]
        value.type = result.type
    value.shape = result.shape
    others = [each for step in steps for each in step.inputs[1:]]
    early = all(each is None or each.producer() is None for each in others)
    place = chain[0] if early else last
    ir.convenience.replace_nodes_and_values(
        g.owner(last), place, chain[::-1], steps, [result], [value]
    )
