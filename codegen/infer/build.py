"""From a weights file to classes and weights."""

from __future__ import annotations

import hashlib
import textwrap
from dataclasses import dataclass
from pathlib import Path

from burnish.codegen.arrange import finished
from burnish.codegen.errors import Explain
from burnish.codegen.identifier import plain
from burnish.codegen.infer.checkpoint import Checkpoint, checkpoint
from burnish.codegen.infer.classes import Classes
from burnish.codegen.infer.kinds import layers
from burnish.codegen.infer.leaves import Leaf
from burnish.codegen.infer.names import usable
from burnish.codegen.infer.order import in_use_order
from burnish.codegen.infer.steps import spelled_out
from burnish.codegen.infer.summary import summary
from burnish.codegen.infer.tree import grown, is_number
from burnish.codegen.program import ClassPlan, Own, Plan, Weight
from burnish.serialize import open_weights


@dataclass(frozen=True)
class Inferred:
    """A model of a weights file.

    plan: its classes and weights. file: the file that names the tensors; sha256: its.
    kind: "safetensors" or "pytorch". whole: the file has these tensors and no others,
    under these names. said: what the page's header says beside that.
    """

    plan: Plan
    file: Path
    sha256: str
    kind: str
    whole: bool
    said: tuple[str, ...]
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
    classes = finished(classes, [], explain, by_number=True)
    held = _tie(classes[-1], held, found)
    spelled_out(classes)
    for words, where in doubts:
        explain(f"{plain(where)}: {words}")
    file = Path(weights.where)
    with file.open("rb") as opened:
        digest = hashlib.file_digest(opened, "sha256").hexdigest()
    kinds = list(leaves.values())
    names = {name for name, _ in held}
    return Inferred(
        Plan(classes, held),
        file,
        digest,
        "safetensors" if weights.kind.startswith("safetensors") else "pytorch",
        weights.kind == "safetensors" and names == set(weights),
        _said(kinds),
        (*found.notes, *summary(root, leaves, classes, doubts)),
    )


def _tie(
    model: ClassPlan, held: list[tuple[str, Weight]], found: Checkpoint
) -> list[tuple[str, Weight]]:
    """Let what the file keeps once be one, in the model's constructor.

    The weights that are left: a shared one under its first name.
    """
    names = [name for name, _ in held]
    for name, first in found.tied.items():
        if "." in name and name in names and first in names and _reached(name, first):
            model.shared.append((Own(_path(name)), Own(_path(first))))
            names.remove(name)
    kept = set(names)
    return [(name, weight) for name, weight in held if name in kept]


def _reached(*names: str) -> bool:
    """Whether all steps of these paths can be written: attributes and places."""
    parts = [part for name in names for part in name.split(".")]
    tops = [name.partition(".")[0] for name in names]
    return all(usable(part) or is_number(part) for part in parts) and not any(
        map(is_number, tops)
    )


def _path(name: str) -> tuple[str | int, ...]:
    return tuple(int(part) if is_number(part) else part for part in name.split("."))


def _said(leaves: list[Leaf]) -> tuple[str, ...]:
    """What weights do not tell of these layers, and what they have instead."""
    kinds = {leaf.kind for leaf in leaves}
    told = []
    if any(leaf.rank and "Conv" in leaf.kind for leaf in leaves):
        told.append("stride 1, padding 0 and dilation 1")
    if "MultiheadAttention" in kinds:
        told.append("heads of 64 features")
    if "GroupNorm" in kinds:
        told.append("GroupNorm in 32 groups or fewer")
    if kinds & {"LSTM", "GRU", "RNN", "MultiheadAttention"}:
        told.append("the batch on the second axis")
    if any("Norm" in kind for kind in kinds):
        told.append("eps of each norm")
    if not told:
        return ()
    words = f"Weights do not tell everything; by default: {', '.join(told)}."
    return tuple(textwrap.wrap(words, 80))
