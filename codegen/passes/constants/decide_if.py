"""Decide an If by the rank that the reader of its result requires.

Scripted modules ask for ranks: an LSTM cell takes one sample or a batch, and squeezes
again what it had unsqueezed. What the file says behind such an If (an LSTM wants three
axes) leaves one branch; with the other one the model would stop with an error.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from burnish.codegen.account import Account
from burnish.codegen.ops import Trait, having
from burnish.codegen.ops.shapes.dims import axes_of
from burnish.codegen.passes import graph as g

_HANDED_ON = having(Trait.ELEMENTWISE)
_RECURRENT = having(Trait.RECURRENT)
_STATES = (0, 5, 6)
_LONGEST = 64
"""Readers in a row that are followed from the result of an If: bounds recursion."""


def decide_branches(model: ir.Model, account: Account) -> bool:
    """Give Ifs that have one branch which can run a constant condition."""
    rewrites = {"If with one branch that fits the ranks behind it": _decided}
    return g.rewrite_nodes(model, account, rewrites, "If")


_BRANCHES = ("then_branch", "else_branch")


def _decided(model: ir.Model, node: ir.Node) -> bool:
    if g.constant(node.inputs[0]):
        return False
    wrong = [name for name in _BRANCHES if _contradicts(node, name)]
    if len(wrong) == 1:
        _decide(model, node, wrong == ["else_branch"])
    return len(wrong) == 1


def _contradicts(node: ir.Node, branch: str) -> bool:
    """Whether a result of the branch has another rank than a reader takes."""
    results = node.attributes[branch].as_graph().outputs
    return any(
        (wanted := _wanted(output)) is not None
        and result.shape is not None
        and len(result.shape) != wanted
        for output, result in zip(node.outputs, results, strict=True)
    )


def _wanted(value: ir.Value, steps: int = _LONGEST) -> int | None:
    """The rank that what always runs behind a value takes it with; None if any."""
    maker = value.producer()
    for user, place in value.uses() if steps else ():
        if maker is None or user.graph is not maker.graph:
            continue
        if (rank := _taken(user, place, steps - 1)) is not None:
            return rank
    return None


def _taken(user: ir.Node, place: int, steps: int) -> int | None:
    """The rank that an operator requires of an input, or that its readers require."""
    if user.domain:
        stacked = (user.domain, user.op_type, place) == ("burnish", "Recurrent", 0)
        return 3 if stacked else None
    if user.op_type in _RECURRENT and place in _STATES:
        return 3
    if user.op_type == "Conv" and place == 0:
        weight = user.inputs[1]
        return None if weight is None or weight.shape is None else len(weight.shape)
    if user.op_type == "Transpose":
        permuted = user.attributes.get_ints("perm")
        return None if permuted is None else len(permuted)
    if place or not user.outputs:
        return None
    if user.op_type in _HANDED_ON:
        return _wanted(user.outputs[0], steps)
    if user.op_type in ("Squeeze", "Unsqueeze"):
        axes, behind = axes_of(user, g.integers), _wanted(user.outputs[0], steps)
        if axes is None or behind is None:
            return None
        return behind + (len(axes) if user.op_type == "Squeeze" else -len(axes))
    return None


def _decide(model: ir.Model, node: ir.Node, truth: bool) -> None:
    """Make the condition constant, and equal conditions that this one dominates."""
    root, negated = _root(node.inputs[0])
    inside = {id(each) for each in g.owner(node).all_nodes()}
    for other in g.nodes_of(model, "If"):
        asked, turned = _root(other.inputs[0])
        if asked is root and id(other) in inside:
            held = np.array(truth ^ negated ^ turned)
            name = f"{other.name or other.outputs[0].name}_decided"
            other.replace_input_with(0, g.new_constant(model, name, held))


def _root(value: ir.Value | None) -> tuple[ir.Value | None, bool]:
    """The value that a condition tests, and whether it is negated."""
    negated = False
    while value is not None and (maker := value.producer()) is not None:
        asked = maker.inputs[0] if maker.inputs else None
        if asked is None or asked.dtype != ir.DataType.BOOL or maker.domain:
            break
        if maker.op_type not in ("Cast", "Identity", "Not"):
            break
        negated ^= maker.op_type == "Not"
        value = asked
    return value, negated
