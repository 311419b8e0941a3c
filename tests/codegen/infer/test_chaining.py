"""An order of convolutions and norms chains at least as well as the one given."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from burnish.codegen.infer.layers.chaining import chained, in_chain
from burnish.codegen.infer.tree import Node


def node(name: str, **shapes: tuple[int, ...]) -> Node:
    tensors: Any = {
        key: SimpleNamespace(shape=shape, dtype="float32")
        for key, shape in shapes.items()
    }
    return Node(name, name, tensors)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(5, 40), min_size=2, max_size=4, unique=True), st.data())
def test_an_order_never_gets_worse(sizes: list[int], data: st.DataObject) -> None:
    row = []
    for ins, outs in itertools.pairwise(sorted(sizes)):
        row.append(node(f"c{outs}", weight=(outs, ins, 3, 3)))
        row.append(node(f"n{outs}", weight=(outs,), bias=(outs,)))
    cost, _ = chained(row)
    assert cost == 0
    shuffled = data.draw(st.permutations(row))
    order = in_chain(shuffled)
    assert sorted(n.name for n in order) == sorted(n.name for n in row)
    assert chained(order)[0] <= chained(shuffled)[0]
    assert in_chain(row) == row
