"""Fuse rotary positions: x * cos + rotate_half(x) * sin."""

from __future__ import annotations

import onnx_ir as ir

from burnish.codegen.ops.shapes.dims import declared
from burnish.codegen.passes import graph as g
from burnish.codegen.passes.pattern import Any, Match, Rewritten, Rule, either, op

_HALVES = op("Concat", op("Neg", Any("b")), Any("a"), name="joined")
_PAIRS = op(
    "Concat",
    op("Unsqueeze", op("Neg", Any("b")), Any("axis_b")),
    op("Unsqueeze", Any("a"), Any("axis_a")),
    name="joined",
)
_CUT = op("Slice", op("Shape", _PAIRS), Any("start"), Any("end"), Any("along"))
_SHAPE = either(op("Concat", _CUT, Any("columns")), Any("shape"))  # or of its own
_QUARTER = either(_HALVES, op("Reshape", _PAIRS, _SHAPE, name="pairs"))
_TURNED = Any("x") * Any("cos") + _QUARTER * Any("sin")

#: start, end and step of the columns taken
Columns = tuple[int, int, int]


def _rotary(found: Match) -> Rewritten:
    x, shape = declared(found["x"]), found["x"].shape
    last = None if not x or x[-1] is None else x[-1].value
    if x is None or shape is None or last is None or last % 2:
        return "how many columns there are is not known"
    result = found.named["joined"]
    pairs = "pairs" in found.named
    if g.attribute(result, "axis", 0) not in (-1, len(x) - 1 + pairs):
        return "the parts are joined along another axis"
    if pairs and any(g.scalar(found[f"axis_{n}"]) not in (-1, len(x)) for n in "ab"):
        return "the parts are joined along another axis"
    half = last // 2
    wanted = ((0, last, 2), (1, last, 2)) if pairs else ((0, half, 1), (half, last, 1))
    if tuple(_columns(found[n], found["x"], last) for n in "ab") != wanted:
        return "the parts are other columns"
    for name in ("cos", "sin"):
        dims = declared(found[name])
        if dims is None or len(dims) > len(x) or not dims or dims[-1] != x[-1]:
            return f"{name} has another number of columns"
    inputs = [found[name] for name in ("x", "cos", "sin")]
    interleaved = {"interleaved": int(pairs)}
    return ir.node("RotaryEmbedding", inputs, interleaved, domain="burnish")


def _columns(value: ir.Value, x: ir.Value, last: int) -> Columns | None:
    """Which columns of x a value is."""
    node = value.producer()
    if node is None or node.domain or node.inputs[0] is not x:
        return None
    rank = len(declared(x) or [])
    if node.op_type == "Split" and len(node.outputs) == 2:
        dims = [declared(output) for output in node.outputs]
        even = all(d and d[-1] is not None and d[-1].value == last // 2 for d in dims)
        first = node.outputs[0] is value
        along = g.attribute(node, "axis", 0) in (-1, rank - 1)
        ends = (0, last // 2, 1) if first else (last // 2, last, 1)
        return ends if even and along else None
    cut = g.cut_of(node)
    if cut is None or cut[3] not in (-1, rank - 1):
        return None
    _, start, end, _, step = cut
    return start % last, min(end, last) if end > 0 else end + last, step


# --- only the first columns of a head ---

_TABLES = (Any("cos"), Any("sin"))
_ROTATED = op("RotaryEmbedding", Any("x"), *_TABLES, name="main", domain=None)
_PART = op("Concat", _ROTATED, Any("rest"), name="joined")


def _part(found: Match) -> Rewritten:
    part, rest = found["x"].producer(), found["rest"].producer()
    node, whole = found.named["main"], None if part is None else part.inputs[0]
    dims, rotated = declared(whole), declared(found["x"])
    if whole is None or not dims or not rotated or dims[-1] is None:
        return "the columns are not known"
    last, count = dims[-1].value, None if rotated[-1] is None else rotated[-1].value
    if last is None or count is None or rest is None or rest.inputs[0] is not whole:
        return "the columns are not known"
    if g.attribute(found.named["joined"], "axis", 0) not in (-1, len(dims) - 1):
        return "the parts are joined along another axis"
    if len(found.named["joined"].inputs) != 2:
        return "there are more parts"
    if not node.domain and len(dims) != 4:
        return "the columns are those of all heads"
    columns = [_columns(found[name], whole, last) for name in ("x", "rest")]
    if columns != [(0, count, 1), (count, last, 1)]:
        return "the parts are other columns"
    added = {} if node.domain else {"rotary_embedding_dim": count}
    attributes: dict[str, int | ir.Attr] = {**node.attributes, **added}
    inputs = [whole, *node.inputs[1:]]
    return ir.node("RotaryEmbedding", inputs, attributes, domain=node.domain)


RULES = (
    Rule("RotaryEmbedding", _TURNED, _rotary),
    Rule("RotaryEmbedding of the first columns", _PART, _part),
)
