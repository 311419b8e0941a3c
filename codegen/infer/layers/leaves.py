"""Infer one layer from its tensors, and from neighbours where these are ambiguous."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from burnish.codegen.infer.tree import Node

Doubt = Callable[[str, str], None]
"""Called with a module's path and what was a guess there."""


@dataclass(frozen=True)
class Leaf:
    """A layer: its class in burnish.nn (or one of ours), its arguments, its widths.

    takes, gives: features of what goes in and comes out, None where any do.
    rank: the axes of a convolution, 0 for layers over the last axis.
    missing: tensors that the layer has and the file lacks, with their dtypes.
    """

    kind: str
    args: tuple[Any, ...]
    options: dict[str, Any] = field(default_factory=dict)
    takes: int | None = None
    gives: int | None = None
    rank: int | None = None
    missing: tuple[str, ...] = ()


@dataclass
class Around:
    """The context of a layer.

    before: the layer before it, in the file's order; after: the tensors' shapes of the
    module behind it. chained: whether the layer before is known to feed it.
    beside: whether it belongs to the same module. fed: what the last layer that was no
    norm takes. widths: every number of features that some layer before gives or takes.
    turned: whether the sizes around it chain if it is a transposed convolution.
    """

    before: Leaf | None
    after: Node | None
    chained: bool
    beside: bool
    fed: int | None
    widths: frozenset[int]
    turned: bool
    facts: Facts
    doubt: Doubt


@dataclass(frozen=True)
class Facts:
    """Facts of the whole model: its convolutions' rank, whether it is like GPT-2.

    rank: the commonest rank of convolutions, 0 without any.
    transposed: whether some Linear is stored as (in, out).
    """

    rank: int
    transposed: bool


def shape(node: Node, name: str) -> tuple[int, ...]:
    """A tensor's shape; () where there is none of that name."""
    return node.tensors[name].shape if name in node.tensors else ()


def is_float(node: Node, name: str) -> bool:
    return "float" in node.tensors[name].dtype


_UP = re.compile(r"up|deconv|transpose|convt|tconv|^ct|unpool", re.IGNORECASE)
_NEAR = 2


def is_named_transposed(node: Node) -> bool:
    """Whether the module or the one around it has a name of transposed convolutions."""
    return any(_UP.search(part) for part in node.path.split(".")[-_NEAR:])


EMBEDS = re.compile(
    r"emb|^wte$|^wpe$|vocab|lookup|codebook|^shared$|relative_attention_bias|^tok"
    r"|^pos(ition)?s?(_enc\w*)?$",
    re.IGNORECASE,
)


def dense(node: Node, around: Around) -> Leaf | None:
    """Linear, Embedding, or GPT-2's Conv1D: weights of two axes."""
    rows, columns = shape(node, "weight")
    bias = shape(node, "bias")
    if bias and (len(bias) != 1 or bias[0] not in (rows, columns)):
        return None
    if bias:
        turned = rows != columns and bias[0] == columns
        if turned or (rows == columns and around.facts.transposed):
            return Leaf("Conv1D", (rows, columns), {}, rows, columns, 0)
        return Leaf("Linear", (columns, rows), {}, columns, rows, 0)
    if EMBEDS.search(node.name) or _feeds_as_table(node, around):
        return Leaf("Embedding", (rows, columns), {}, None, columns, 0)
    options = {"bias": False}
    return Leaf("Linear", (columns, rows), options, columns, rows, 0)


def _feeds_as_table(node: Node, around: Around) -> bool:
    """Whether the first module's columns, not its rows, are the next one's input size.

    Two matrices that take the same are no evidence, unless they are numbered.
    """
    if around.before is not None or around.after is None:
        return False
    rows, columns = shape(node, "weight")
    numbered = node.name.isdigit() and around.after.name.isdigit()
    names = ("weight_ih_l0", "in_proj_weight", *(("weight",) if numbered else ()))
    takes = [shape(around.after, name)[1:] for name in names]
    return (columns,) in takes and (rows,) not in takes
