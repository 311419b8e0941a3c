"""Fuse softmax(q @ k.T) @ v to one attention.

Where ONNX's Attention is for four axes, `burnish.Attention(q, k, v, mask)` is for any
number of them. A mask of booleans says which keys take part, one of numbers is added.
"""

from __future__ import annotations

import math

import onnx_ir as ir

from burnish.codegen.ops.shapes.dims import Dims, declared
from burnish.codegen.passes import graph as g
from burnish.codegen.passes.pattern import (
    Any,
    Match,
    Pattern,
    Rewritten,
    Rule,
    Scalar,
    either,
    op,
)
from burnish.codegen.passes.rules.attention.masks import added, combined, is_low
from burnish.codegen.symbolic.sizes import ONE

_EXACT = 1e-6  # of float32, as a scale is stored

v = Any("v")
mask = Any("mask")


def _scaled(of: Pattern, name: str) -> Pattern:
    return either(of * Scalar(f"{name}_times"), of / Scalar(f"{name}_over"), of)


_K = either(
    op("Transpose", Any("k") * Scalar("k_times"), name="transpose"),
    op("Transpose", Any("k") / Scalar("k_over"), name="transpose"),
    _scaled(Any("kt"), "k"),
)
_PRODUCT = _scaled(op("MatMul", _scaled(Any("q"), "q"), _K), "scores")
_CAPPED = op("Tanh", _scaled(_PRODUCT, "cap")) * Scalar("cap")
_SCORES = either(_CAPPED, _PRODUCT)
_ADDED = either((_SCORES + Any("bias")) + mask, _SCORES + mask, _SCORES)
_MASKED = either(
    op("Where", Any("keep"), _ADDED, Scalar("low")),
    op("Where", Any("block"), Scalar("low"), _ADDED),
    op("Where", Any("keep"), _SCORES, Scalar("low")) + Any("behind"),
    op("Where", Any("block"), Scalar("low"), _SCORES) + Any("behind"),
    _ADDED,
)
_SOFTMAX = op(
    "Softmax", either(op("Cast", _MASKED, name="up"), _MASKED), name="softmax"
)
_GUARDED = either(
    op("Where", op("IsNaN", _SOFTMAX), Scalar("zero"), _SOFTMAX),
    _SOFTMAX,
)
_WEIGHTS = either(op("Cast", _GUARDED, name="down"), _GUARDED)


# --- what must hold ---


def _unfit(found: Match) -> str | None:
    kt = found.values.get("kt") or found.named["transpose"].outputs[0]
    q, keys, values = (declared(x) for x in (found["q"], kt, found["v"]))
    if q is None or keys is None or values is None:
        return "the ranks of q, k and v are not known"
    if len({len(q), len(keys), len(values)}) > 1 or len(q) < 2:
        return f"q, k and v have {len(q)}, {len(keys)} and {len(values)} axes"
    weights = [found.values[n] for n in ("kt", "k", "v") if n in found.values]
    if len(q) == 2 and any(g.constant(x) is not None for x in weights):
        return "the product is with a weight, not with keys"
    half = found["q"].dtype in (ir.DataType.FLOAT16, ir.DataType.BFLOAT16)
    if half and "up" not in found.named:
        return "scores are rounded to half precision before softmax"
    return _heads(q, keys) or _axis(found, len(q)) or _numbers(found)


def _heads(q: Dims, keys: Dims) -> str | None:
    if len(q) > 2 and keys[-3] != q[-3] and keys[-3] != ONE:
        return f"q has {q[-3]} heads, k {keys[-3]}"
    return None


def _axis(found: Match, rank: int) -> str | None:
    axis = g.attribute(found.named["softmax"], "axis", -1)
    if axis not in (-1, rank - 1):
        return f"softmax is along axis {axis}, not along the keys"
    transpose = found.named.get("transpose")
    if transpose is not None and "perm" not in transpose.attributes and rank > 2:
        return "the Transpose reverses all axes of the keys"
    return None


def _numbers(found: Match) -> str | None:
    low, zero = (g.scalar(found.values.get(name)) for name in ("low", "zero"))
    if low is not None and not is_low(low):
        return f"{low:g} is too large to mask a key"
    if zero not in (None, 0):
        return f"queries without keys are given {zero:g}, not 0"
    if _scale(found) is None:
        return "a factor of the scores is 0"
    if "cap" in found.values:
        inside = _factor(found, "cap")
        cap = g.scalar(found["cap"])
        if not cap or not inside or not math.isclose(inside * cap, 1, rel_tol=_EXACT):
            return "the scores are divided by another number than tanh is multiplied by"
    return None


def _factor(found: Match, name: str) -> float | None:
    times = g.scalar(found.values.get(f"{name}_times"))
    over = g.scalar(found.values.get(f"{name}_over"))
    return 1 / over if over else times


def _scale(found: Match) -> float | None:
    """The factor of the scores; None where a divisor is 0 or not a scalar."""
    result = 1.0
    for name in ("q", "k", "scores"):
        if f"{name}_over" in found.values and not g.scalar(found[f"{name}_over"]):
            return None
        factor = _factor(found, name)
        result *= 1.0 if factor is None else factor
    return result or None


# --- rewriting ---


def _attention(found: Match) -> Rewritten:
    if (reason := _unfit(found)) is not None:
        return reason
    q = g.unwrap(declared(found["q"]))
    scale = g.unwrap(_scale(found))
    size = None if q[-1] is None else q[-1].value
    attributes = _scale_attribute(scale, size)
    cap = g.scalar(found.values.get("cap"))
    if cap is not None:
        attributes.append(ir.AttrFloat32("softcap", cap))
    transpose = _keys(found, len(q))
    mask, causal, nodes = _mask(found)
    if causal:
        attributes.append(ir.AttrInt64("is_causal", 1))
    inputs = [found["q"], transpose.outputs[0], found["v"]]
    attention = ir.Node(
        "burnish", "Attention", inputs + ([] if mask is None else [mask]), attributes
    )
    return [transpose, *nodes, attention]


def _keys(found: Match, rank: int) -> ir.Node:
    """k as (..., keys, size)."""
    swap = [*range(rank - 2), rank - 1, rank - 2]
    if "kt" in found.values:
        return ir.node("Transpose", [found["kt"]], {"perm": swap})
    order = found.named["transpose"].attributes.get_ints("perm", (1, 0))
    return ir.node("Transpose", [found["k"]], {"perm": [order[axis] for axis in swap]})


def _mask(found: Match) -> tuple[ir.Value | None, bool, list[ir.Node]]:
    """The mask, whether keys after the query are hidden, and what makes the mask."""
    nodes: list[ir.Node] = []
    result = found.values.get("mask")
    if "bias" in found.values:
        nodes.append(ir.Node("", "Add", [found["bias"], result]))
        result = nodes[-1].outputs[0]
    if "low" in found.values:
        keep, block = found.values.get("keep"), found.values.get("block")
        behind = found.values.get("behind")
        made = combined(keep, block, found["low"], result, behind)
    elif result is None:
        return None, False, nodes
    else:
        made = added(result)
    return made.mask, made.causal, nodes + made.nodes


# --- a factor of q or k that was not known at first ---


def _attended(q: Pattern, k: Pattern) -> Pattern:
    return op("Attention", q, k, Any("v"), name="main", domain="burnish")


_Q, _T = Any("q"), Any("k")
_FACTORED = either(
    _attended(_Q * Scalar("q_times"), _T),
    _attended(_Q / Scalar("q_over"), _T),
    _attended(_Q, _T * Scalar("k_times")),
    _attended(_Q, _T / Scalar("k_over")),
    _attended(_Q, op("Transpose", _T * Scalar("k_times"), name="turn")),
    _attended(_Q, op("Transpose", _T / Scalar("k_over"), name="turn")),
)


def _with_factor(found: Match) -> Rewritten:
    node, factor = found.named["main"], _scale(found)
    if factor is None:
        return "a factor of the scores is 0"
    q = declared(found["q"])
    size = None if not q or q[-1] is None else q[-1].value
    held = node.attributes.get("scale")
    usual = None if size is None else size**-0.5
    scale = held.as_float() if held is not None else usual
    keys, nodes = found["k"], []
    if "turn" in found.named:
        turn = found.named["turn"]
        nodes = [ir.node("Transpose", [keys], turn.attributes)]
        keys = nodes[0].outputs[0]
    kept = [a for name, a in node.attributes.items() if name != "scale"]
    kept += _scale_attribute(scale * factor if scale else factor, size)
    inputs = [found["q"], keys, *node.inputs[2:]]
    return [*nodes, ir.Node("burnish", "Attention", inputs, kept)]


def _scale_attribute(scale: float, size: int | None) -> list[ir.Attr]:
    """The scale, unless it is the usual one for vectors of this size."""
    usual = size and math.isclose(scale, size**-0.5, rel_tol=_EXACT)
    return [] if usual else [ir.AttrFloat32("scale", scale)]


# --- keys and values that several heads share ---


def _repeated(name: str) -> Pattern:
    """(batch, heads, 1, time, size), spread and merged to more heads."""
    many = op("Expand", Any(name), Any(f"{name}_shape"), name=f"{name}_many")
    return either(
        op("Reshape", many, Any(f"{name}_flat"), name=f"{name}_heads"),
        op("Squeeze", many, Any(f"{name}_axes"), name=f"{name}_heads"),
    )


def _groups(found: Match, name: str) -> int | None:
    """How often each head of (batch, heads, 1, time, size) follows itself."""
    one = declared(found[name])
    many, heads = (
        declared(found.named[f"{name}_{step}"].outputs[0]) for step in ("many", "heads")
    )
    if one is None or len(one) != 5 or one[2] != ONE or None in one:
        return None
    if many is None or len(many) != 5 or heads is None or many[2] is None:
        return None
    count, groups = g.unwrap(one[1]), many[2]
    fits = many == [*one[:2], groups, *one[3:]]
    spread = heads == [one[0], count * groups, *one[3:]]
    return groups.value if fits and spread else None


def _shared(found: Match) -> Rewritten:
    node, groups = found.named["main"], [_groups(found, name) for name in ("k", "v")]
    if None in groups or groups[0] != groups[1]:
        return "the heads of k and v are not repeated alike"
    nodes, parts = list[ir.Node](), []
    for name in ("k", "v"):
        nodes += g.view_nodes("Squeeze", found[name], [2])
        parts.append(nodes[-1].outputs[0])
    inputs = [found["q"], *parts, *node.inputs[3:]]
    kept = node.attributes
    return [*nodes, ir.node("Attention", inputs, kept, domain=node.domain)]


_REPEATED = (_repeated("k"), _repeated("v"))
_SHARED = op("Attention", Any("q"), *_REPEATED, name="main", domain=None)
RULES = (
    Rule("Attention", op("MatMul", _WEIGHTS, v), _attention),
    Rule("Attention of scaled queries or keys", _FACTORED, _with_factor),
    Rule("Attention with shared keys and values", _SHARED, _shared),
)
