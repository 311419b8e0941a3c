"""Build classes and weights from a weights file alone."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from pathlib import Path

from burnish.codegen.arrange import finished
from burnish.codegen.errors import Explain
from burnish.codegen.infer.checkpoint import Checkpoint, checkpoint
from burnish.codegen.infer.classes import Classes, is_container
from burnish.codegen.infer.layers.kinds import layers
from burnish.codegen.infer.layers.leaves import Leaf
from burnish.codegen.infer.names import usable
from burnish.codegen.infer.order import in_use_order
from burnish.codegen.infer.steps import spelled_out
from burnish.codegen.infer.summary import summary
from burnish.codegen.infer.tree import Node, grown, is_number
from burnish.codegen.names.identifier import plain
from burnish.codegen.program import (
    Attribute,
    ClassPlan,
    Expression,
    Literal,
    Plan,
    SelfAttr,
    Subscript,
    Weight,
)
from burnish.codegen.search import identity
from burnish.serialize import open_weights


@dataclass(frozen=True)
class Inferred:
    """A model of a weights file.

    plan: its classes and weights. files: all that it was read from, the one that names
    the tensors first; sha256: the digest of that first file.
    kind: "safetensors" or "pytorch". whole: the file has these tensors and no others,
    under these names. header_notes: further lines of the page's header.
    """

    plan: Plan
    files: tuple[Path, ...]
    sha256: str
    kind: str
    whole: bool
    header_notes: tuple[str, ...]
    notes: tuple[str, ...]


def infer(path: Path, explain: Explain) -> Inferred:
    """Read names and shapes; values are read when they are written.

    Raises RecordError for a damaged file and UnsupportedError for one that holds no
    plain tensors.
    """
    weights = open_weights(path)
    found = checkpoint(weights)
    root = grown(found.tensors, weights.where)
    if found.sorted_ and weights.kind.startswith("safetensors"):
        in_use_order(root)
    doubts: list[tuple[str, str]] = []

    def doubt(where: str, words: str) -> None:
        doubts.append((words, where))

    leaves = layers(root, doubt)
    classes, held = Classes(leaves, doubt).model(root)
    classes = finished(classes, explain)
    held = _tie(classes[-1], root, held, found)
    spelled_out(classes)
    for words, where in doubts:
        explain(f"{plain(where)}: {words}")
    files = tuple(Path(file) for file in weights.files)
    kinds = list(leaves.values())
    names = {name for name, _ in held}
    return Inferred(
        Plan(classes, held),
        files,
        identity(files[0]),
        "safetensors" if weights.kind.startswith("safetensors") else "pytorch",
        weights.kind == "safetensors" and names == set(weights),
        _notes(kinds),
        (*found.notes, *summary(root, leaves, classes, doubts)),
    )


def _tie(
    model: ClassPlan, root: Node, held: list[tuple[str, Weight]], found: Checkpoint
) -> list[tuple[str, Weight]]:
    """Tie weights in the model's constructor that the file stores once.

    The weights that are left: a shared one under its first name.
    """
    names = [name for name, _ in held]
    for name, first in found.tied.items():
        if "." not in name or name not in names or first not in names:
            continue
        one, other = _reached(root, name), _reached(root, first)
        if one is not None and other is not None:
            model.shared.append((one, other))
            names.remove(name)
    kept = set(names)
    return [(name, weight) for name, weight in held if name in kept]


def _reached(root: Node, name: str) -> Expression | None:
    """`self.layers[0].weight`; None where a step of the path cannot be written."""
    first, *rest = name.split(".")
    if is_number(first) or not usable(first) or is_container(root):
        return None
    reached: Expression = SelfAttr((first,))
    node = root.children.get(first)
    for part in rest:
        if node is not None and not node.is_numbered and is_container(node):
            names = [*node.tensors, *node.children]
            is_list = names == [str(i) for i in range(len(names))]
            reached = Subscript(reached, (Literal(int(part) if is_list else part),))
        elif is_number(part):
            reached = Subscript(reached, (Literal(int(part)),))
        elif usable(part):
            reached = Attribute(reached, part)
        else:
            return None
        node = node and node.children.get(part)
    return reached


def _notes(leaves: list[Leaf]) -> tuple[str, ...]:
    """Hyperparameters that weights do not determine, and the defaults used."""
    kinds = {leaf.kind for leaf in leaves}
    defaults = []
    if any(leaf.rank and "Conv" in leaf.kind for leaf in leaves):
        defaults.append("stride 1, padding 0 and dilation 1")
    if "MultiheadAttention" in kinds:
        defaults.append("heads of 64 features")
    if "GroupNorm" in kinds:
        defaults.append("GroupNorm in 32 groups or fewer")
    if kinds & {"LSTM", "GRU", "RNN", "MultiheadAttention"}:
        defaults.append("the batch on the second axis")
    if any("Norm" in kind for kind in kinds):
        defaults.append("eps of each norm")
    if not defaults:
        return ()
    words = f"Weights do not tell everything; by default: {', '.join(defaults)}."
    return tuple(textwrap.wrap(words, 80))
