"""Attention, recognised from the products and the softmax that it is made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from burnish.plan.graph import Constant, Node, Value

if TYPE_CHECKING:
    from burnish.plan.rewrites.fuse import Around


def attend(node: Node, around: Around) -> Node | None:
    """softmax(q @ k.T * scale, masked) @ v -> one step."""
    if node.name != "matmul":
        return None
    soft = around.only(node.args[0], "softmax", "softmax_or_zero")
    v = node.args[1]
    if soft is None or not isinstance(v, Value):
        return None
    if soft.options.get("axis", -1) not in (-1, len(soft.result.shape) - 1):
        return None
    scores, lines = soft.args[0], [*soft.lines, *node.lines]
    mask, blocked, scores, lines = _mask(scores, around, lines)
    scale, scores, lines = _scale(scores, around, lines)
    made = around.only(scores, "matmul")
    if made is None or not all(isinstance(arg, Value) for arg in made.args):
        return None
    q, turned = made.args
    lines = [*made.lines, *lines]
    keys = around.only(turned, "transpose")
    if keys is None or not _swaps(keys):
        return None
    factor, q, lines = _scale(q, around, [*keys.lines, *lines])
    by, k, lines = _scale(keys.args[0], around, lines)
    options = {
        "scale": scale * factor * by,
        "blocked": blocked,
        "zero_if_empty": soft.name == "softmax_or_zero",
        "turned": False,
    }
    return Node("attention", [q, k, v, mask], options, node.results, lines)


def turn_back(node: Node, around: Around) -> Node | None:
    """Heads brought behind the queries again -> written there."""
    if node.name != "transpose" or node.options["axes"] != (0, 2, 1, 3):
        return None
    made = around.only(node.args[0], "attention")
    if made is None:
        return None
    options = {**made.options, "turned": True}
    return Node(made.name, made.args, options, node.results, made.lines + node.lines)


def _mask(scores: Any, around: Around, lines: Any) -> tuple[Any, float, Any, Any]:
    """(mask, what scores become where it is False, scores before it, lines)"""
    made = around.only(scores, "where", "add")
    if made is None:
        return None, 0.0, scores, lines
    if made.name == "where":
        mask, inner, value = made.args
        same = getattr(inner, "shape", None) == made.result.shape
        if not (isinstance(value, float | int | np.floating) and _reads(mask) and same):
            return None, 0.0, scores, lines
        return mask, float(value), inner, made.lines + lines
    for inner, mask in (made.args, made.args[::-1]):
        if around.only(inner, "matmul", "mul", "div") is None or not _reads(mask):
            continue
        if inner.shape == made.result.shape:
            return mask, 0.0, inner, made.lines + lines
    return None, 0.0, scores, lines


def _reads(mask: Any) -> bool:
    return isinstance(mask, Value | Constant) and mask.dtype in (np.float32, np.bool_)


def _scale(value: Any, around: Around, lines: Any) -> tuple[float, Any, Any]:
    """(factor, the value it multiplies, lines); 1 where there is none."""
    made = around.only(value, "mul", "div")
    if made is None or isinstance(made.args[1], Value | Constant):
        return 1.0, value, lines
    x, number = made.args
    if not isinstance(x, Value) or not isinstance(number, int | float) or not number:
        return 1.0, value, lines
    factor = number if made.name == "mul" else 1 / number
    return float(factor), x, made.lines + lines


def _swaps(node: Node) -> bool:
    """Whether a transpose changes the last two axes alone."""
    rank = len(node.result.shape)
    axes = node.options["axes"]
    wanted = (*range(rank - 2), rank - 1, rank - 2)
    return axes is not None and tuple(a % rank for a in axes) == wanted
