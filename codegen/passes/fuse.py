"""Fuse the forms that exporters decompose back to one operator."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import onnx_ir as ir

from burnish.codegen.account import Account
from burnish.codegen.ops import Trait, having
from burnish.codegen.ops.quantized.quantize import ON_INPUT
from burnish.codegen.passes import graph as g
from burnish.codegen.passes.pattern import Either, Match, NodePattern, Rule, match
from burnish.codegen.passes.rules import RULES
from burnish.codegen.weights import constants

_VIEWS = having(Trait.VIEW)
"""Beside a layer that rounds its input they round nothing."""
SINCE = {
    kind: version
    for version, kinds in (
        (6, "HardSigmoid"),
        (9, "Shrink Where"),
        (11, "AveragePool BatchNormalization Conv ConvTranspose MaxPool"),
        (13, "Add Concat DepthToSpace Equal Gather Gemm LogSoftmax MatMul Max Min Mul"),
        (13, "Pad Sigmoid Slice Softmax Unsqueeze"),
        (14, "HardSwish Reshape"),
        (16, "PRelu"),
        (17, "LayerNormalization"),
        (18, "Mish"),
        (20, "Gelu"),
        (21, "GroupNormalization"),
        (23, "Attention RMSNormalization RotaryEmbedding"),
        (24, "Swish"),
    )
    for kind in kinds.split()
}
"""The opset that has an operator as rules write it, whatever the file's is."""
_TELLING = 3
"""`--explain` reports a near miss from this many nodes on; fewer match by chance."""


def fuse_known_forms(model: ir.Model, account: Account) -> bool:
    """Try every rule at every node; reasons for declining go to `account`."""
    by_root: dict[str, list[Rule]] = {}
    for rule in RULES:
        for root in _roots(rule):
            by_root.setdefault(root, []).append(rule)
    changed = False
    for node in reversed(g.all_nodes(model)):
        for rule in by_root.get(node.op_type, ()):
            if node.graph is None:
                break
            changed |= _apply(model, rule, node, account)
    return changed


def _roots(rule: Rule) -> set[str]:
    pattern = rule.pattern
    ways = pattern.ways if isinstance(pattern, Either) else (pattern,)
    return {kind for way in ways if isinstance(way, NodePattern) for kind in way.kinds}


def _apply(model: ir.Model, rule: Rule, root: ir.Node, account: Account) -> bool:
    """Rewrite the first way in which the rule matches at `root`, if any."""
    where = g.label(root)
    reasons: dict[str, None] = {}
    for found in match(rule.pattern, root.outputs[0], Match()):
        made = _shared(found, root) or rule.rewrite(found)
        if not isinstance(made, str):
            _replace(model, made, root, found)
            account.did(rule.name, where)
            return True
        reasons[made] = None
    if not reasons and account.near:
        reasons = dict.fromkeys(_nearly(rule, root))
    for reason in reasons:
        account.left(rule.name, where, reason)
    return False


def _nearly(rule: Rule, root: ir.Node) -> Iterator[str]:
    """The one condition but for which the rule matches at `root`, if it is one."""
    for found in match(rule.pattern, root.outputs[0], Match(slack=1)):
        if len(found.nodes) >= _TELLING:
            yield found.missed
            return


def _shared(found: Match, root: ir.Node) -> str | None:
    """The reason why inner values of a form are read outside of it, if any."""
    inside = set(found.nodes)
    for node in found.nodes:
        if node is root:
            continue
        if node.graph is not root.graph:
            return f"{node.name!r} is in another graph"
        for output in node.outputs:
            if output.is_graph_output():
                return f"{output.name!r} is an output of the model"
            if any(user not in inside for user, _ in output.uses()):
                return f"{output.name!r} is used elsewhere too"
    return None


def _replace(
    model: ir.Model, made: ir.Node | list[ir.Node], root: ir.Node, found: Match
) -> None:
    """Put the operator in the form's place; it inherits the form's name and scope."""
    listed = [made] if isinstance(made, ir.Node) else made
    nodes = _without_constants(model, listed, found.nodes)
    node = nodes[-1]
    main = found.named.get("main", root)
    for each in nodes:
        each.name = each.name or main.name
        for key, text in main.metadata_props.items():
            if key != ON_INPUT or each.op_type not in _VIEWS:
                each.metadata_props.setdefault(key, text)
        since = SINCE.get(each.op_type, 1)
        if each.domain:
            model.opset_imports.setdefault(each.domain, 1)
        elif each.version is None and model.opset_imports.get("", since) < since:
            each.version = since
    ir.convenience.replace_nodes_and_values(
        g.owner(root), root, found.nodes, nodes, [root.outputs[0]], [node.outputs[0]]
    )


def _without_constants(
    model: ir.Model, nodes: list[ir.Node], replaced: Iterable[ir.Node]
) -> list[ir.Node]:
    """The nodes, reading initializers where some of them are Constants.

    replaced: the nodes in whose place they come.
    """
    kept = []
    for node in nodes:
        if node.op_type != "Constant":
            kept.append(node)
            continue
        tensor = node.attributes["value"].as_tensor()
        output = node.outputs[0]
        trains = constants.makes_weight(node)
        value = g.initializer(model, output, tensor, trains, replaced)
        ir.convenience.replace_all_uses_with(output, value)
    return kept
