"""Names of hyperparameters, their order, and the identity `dim = heads * head_dim`."""

from __future__ import annotations

from dataclasses import replace

from burnish.codegen.symbolic.terms import Term

HEAD_DIM = "head_dim"
"""`dim // heads`, where no argument says it."""

HALF = "half"
"""Half of that: where rotary positions cut a head."""

ORDER = (
    *("dim", "depth", "heads", "kv_heads", HEAD_DIM, HALF, "hidden", "width", "vocab"),
    *("positions", "classes", "outputs"),
)
"""Names of hyperparameters, in the order of a constructor's arguments."""

_CUT = ("heads", HEAD_DIM)


def kind(name: str) -> str:
    """An argument's role without its tower: "dim" of "vision_dim"."""
    return name if name in ORDER else name.rpartition("_")[2]


def cut(term: Term) -> Term:
    """The term with `heads * head_dim` for `dim`."""
    names = [n for name in term.names for n in (_CUT if name == "dim" else (name,))]
    return replace(term, names=tuple(names))


def whole(term: Term) -> Term:
    """The term with `dim` for `heads * head_dim`."""
    names = list(term.names)
    while set(_CUT) <= set(names):
        for name in _CUT:
            names.remove(name)
        names.insert(0, "dim")
    return replace(term, names=tuple(names))
