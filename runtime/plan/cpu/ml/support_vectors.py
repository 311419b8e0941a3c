"""Lower support vector machines: kernels, votes of pairs, and their coupling."""

from __future__ import annotations

import numpy as np

from burnish.kernels.records import SVM_KERNELS
from burnish.plan.cpu.builder import Builder
from burnish.plan.cpu.layout import LANES, blocks
from burnish.plan.cpu.table import check, lower, need
from burnish.plan.graph import Array, Constant, Node, Value

_TURN = 1000
"""The cost of an iteration for a row's shares, in operations."""


@lower("svm_kernel")
def svm_kernel(b: Builder, node: Node) -> None:
    x, vectors = node.args
    need(isinstance(x, Value) and len(x.shape) == 2, "its rows")
    need(isinstance(vectors, Constant), "its vectors are not known before")
    check(node, x, vectors)
    options = {k: node.options[k] for k in ("gamma", "coef0", "degree")}
    (rows, width), count = x.shape, vectors.shape[0]
    b.add(
        "svm_kernel", b.shares(2 * rows * count * (width + 8), rows), x=b.spot(x),
        vectors=b.constant(b.derived(_in_blocks, vectors)), out=b.result(node.result),
        rows=rows, width=width, count=count, flops=3 * rows * count * width,
        kernel=SVM_KERNELS[node.options["kernel"].lower()], **options,
    )  # fmt: skip


def _in_blocks(vectors: Array) -> Array:
    """(S, F) -> (blocks, F, 16), zeros behind the last."""
    count, width = vectors.shape
    held = np.zeros((blocks(count) * LANES, width), np.float32)
    held[:count] = vectors
    return np.ascontiguousarray(held.reshape(-1, LANES, width).swapaxes(1, 2))


@lower("pairwise_votes")
def pairwise_votes(b: Builder, node: Node) -> None:
    scores = node.args[0]
    need(isinstance(scores, Value), "its scores are a parameter")
    check(node, scores)
    b.add(
        "pairwise_votes", b.shares(4 * scores.size, scores.shape[0]),
        scores=b.spot(scores), out=b.result(node.result), rows=scores.shape[0],
        classes=node.options["classes"],
    )  # fmt: skip


@lower("pairwise_coupling")
def pairwise_coupling(b: Builder, node: Node) -> None:
    wins, classes = node.args[0], node.options["classes"]
    need(isinstance(wins, Value), "its shares are a parameter")
    check(node, wins)
    shares = b.shares(_TURN * wins.size, wins.shape[0])
    room = classes * (classes + 2)
    b.add(
        "pairwise_coupling", shares, wins=b.spot(wins), out=b.result(node.result),
        space=b.new(8 * room * shares), rows=wins.shape[0], classes=classes, room=room,
    )  # fmt: skip
