"""Shared weights unify the sizes of the layers that share them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from burnish.codegen.arrange.analysis.ties import path_of
from burnish.codegen.program import Call, Expression, held

Constructors = Mapping[str, Mapping[str, Expression]]
"""The attributes of each class of the source."""

#: Which of a constructor's arguments are the axes of its weight.
_AXES = {"nn.Linear": (1, 0), "nn.Embedding": (0, 1)}


def axes(
    shared: Expression,
    kind: str,
    classes: Constructors,
    size: Callable[[str, Expression], object],
) -> list[object] | None:
    """The sizes of a weight that is reached from a class, where they are written.

    size: the node of an argument of a class's constructor.
    """
    *path, leaf = path_of(shared)
    made: Expression | None = None
    owner = kind
    for part in path:
        if isinstance(made, Call) and made.function in classes:
            owner, made = made.function, None
        made = held(made, [part]) if made else classes[owner].get(str(part))
    if not isinstance(made, Call) or made.function not in _AXES or leaf != "weight":
        return None
    places = _AXES[made.function]
    transposed = "transposed" in dict(made.options)
    return [size(owner, made.args[p]) for p in (places[::-1] if transposed else places)]
