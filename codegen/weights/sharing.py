"""Shared weights: one object in all layers that read it, or a copy in each.

A layer that is called again, and a head that shares the embedding's matrix, read one
tensor of the file. Layers own it together where all of them store it in one way.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable

import numpy as np

from burnish.codegen.program import Block, Layer, Source, Weight, every_expression


def unified(body: Block) -> list[Source]:
    """Make what layers share one object, in place.

    The result: tensors of the file that no layer can own, because something else reads
    them too or because layers would store them in several ways.
    """
    users: dict[Source, list[Layer]] = defaultdict(list)
    free: set[Source | None] = set()
    for expression in every_expression(body):
        if isinstance(expression, Weight):
            free.add(expression.source)
        elif isinstance(expression, Layer):
            held = (w.source for w in expression.weights.values() if w.trained)
            for source in dict.fromkeys(held):
                if source is not None:
                    users[source].append(expression)
    return [
        source
        for source, layers in users.items()
        if source in free or not _unified(source, layers)
    ]


def _unified(source: Source, layers: list[Layer]) -> bool:
    """Whether all these layers hold the same parts of the tensor; then one object."""
    first, *others = (
        [name for name, weight in layer.weights.items() if weight.source is source]
        for layer in layers
    )
    held = [layers[0].weights[name] for name in first]
    if sum(int(np.prod(weight.shape)) for weight in held) > source.size:
        return False  # one layer reads it twice
    for layer, names in zip(layers[1:], others, strict=True):
        if len(names) != len(held):
            return False
        for name, weight in zip(names, held, strict=True):
            if not _alike(layer.weights[name], weight):
                return False
            layer.weights[name] = weight
    return True


def _alike(one: Weight, other: Weight) -> bool:
    if one is other:
        return True
    same = one.shape == other.shape and one.trained == other.trained
    return same and np.array_equal(one.array, other.array)


def tied(body: Block) -> set[int]:
    """The ids of the weights that different layers share, not calls of one layer."""
    users: dict[int, set[Hashable]] = defaultdict(set)
    for expression in every_expression(body):
        if isinstance(expression, Layer):
            held = tuple(id(w) for w in expression.weights.values() if w.trained)
            for key in held:
                users[key].add((expression.kind, held))
    return {key for key, found in users.items() if len(found) > 1}
