"""What operators declare of their results is so in ONNX's node cases."""

from __future__ import annotations

import functools

import numpy as np
import onnx_ir as ir
import pytest

from burnish.codegen.ops import Trait, having, shapes_of, traits_of
from burnish.codegen.ops.rule.traits import SHAPES
from burnish.codegen.ops.shapes.dims import Context, Sizes
from burnish.codegen.symbolic.sizes import parse
from tests.harness.onnx_cases import cases


@pytest.mark.filterwarnings("ignore")
def test_shape_transfer_gives_the_shapes_of_onnx_cases() -> None:
    seen = set()
    for name, case in cases().items():
        nodes = case.model.graph.node
        if len(nodes) != 1 or not case.data_sets:
            continue
        rule = shapes_of(nodes[0].domain, nodes[0].op_type)
        inputs, outputs = case.data_sets[0]
        arrays = [*inputs, *outputs]
        if rule is None or not all(isinstance(a, np.ndarray) for a in arrays):
            continue
        model = ir.serde.deserialize_model(case.model)
        given = dict(zip((v.name for v in model.graph.inputs), inputs, strict=True))

        def ask(value: ir.Value | None, given: dict = given) -> Sizes | None:
            held = None if value is None else given[value.name]
            if held is None or held.dtype.kind != "i":
                return None
            return [parse(number) for number in held.ravel().tolist()]

        node = model.graph.node(0)
        dims = [v and [parse(n) for n in given[v.name].shape] for v in node.inputs]
        named = [i for i, v in enumerate(node.outputs) if v.name]
        found = rule(node, dims, Context(ask))
        for i, y in zip(named, outputs, strict=True):
            if i < len(found) and found[i] is not None:
                sizes = [size and size.value for size in found[i]]
                pairs = zip(sizes, np.shape(y), strict=True)
                assert all(a in (None, b) for a, b in pairs), name
                seen.add(nodes[0].op_type)
    assert {"Attention", "Conv", "MaxPool", "Reshape", "Slice", "Split"} <= seen


@functools.cache
def _shapes() -> list[tuple[str, Trait, list[tuple[int, ...]], tuple[int, ...]]]:
    """Name, traits, shapes of inputs and of the first output: ONNX's cases of one node.

    Cases of sequences are left out.
    """
    found = []
    for name, case in cases().items():
        graph = case.model.graph
        if len(graph.node) != 1 or not case.data_sets:
            continue
        node = graph.node[0]
        inputs, outputs = case.data_sets[0]
        traits = traits_of(node.domain, node.op_type)
        arrays = [*inputs, *outputs]
        if traits and inputs and all(isinstance(a, np.ndarray) for a in arrays):
            before = [np.shape(a) for a in inputs]
            found.append((name, traits, before, np.shape(outputs[0])))
    return found


@pytest.mark.filterwarnings("ignore")
def test_shapes_of_onnx_cases_are_as_declared() -> None:
    seen = Trait(0)
    for name, traits, before, after in _shapes():
        seen |= traits
        if traits & (Trait.ELEMENTWISE | Trait.SAME_SHAPE):
            assert after == before[0], name
        elif traits & Trait.BROADCAST:
            assert after == np.broadcast_shapes(*before), name
        elif traits & Trait.VIEW:
            assert np.prod(after) == np.prod(before[0]), name
        elif traits & (Trait.REDUCTION | Trait.REDUCTION_TO_INDEX):
            assert set(after) <= {1, *before[0]}, name
    assert all(seen & shape for shape in SHAPES)


def test_operators_that_keep_the_shape_in_each_case_declare_it() -> None:
    kept: dict[str, set[bool]] = {}
    for name, traits, before, after in _shapes():
        if traits & Trait.OWN_SHAPE:
            operator = cases()[name].model.graph.node[0].op_type
            kept.setdefault(operator, set()).add(after == before[0])
    always = {name for name, same in kept.items() if same == {True}}
    assert always <= KEEPS_IN_CASES, always - KEEPS_IN_CASES


KEEPS_IN_CASES = {"OptionalGetElement", "Scan"}
"""Operators whose cases happen to give the shape of the first input."""


def _elements() -> list[tuple[str, Trait, bool]]:
    """Operator, traits, and whether each element of its output is one of its input."""
    found = []
    for case in cases().values():
        graph = case.model.graph
        if len(graph.node) != 1 or not case.data_sets:
            continue
        operator = graph.node[0]
        inputs, outputs = case.data_sets[0]
        arrays = [*inputs[:1], *outputs[:1]]
        if len(arrays) == 2 and all(isinstance(a, np.ndarray) for a in arrays):
            moved = bool(np.isin(arrays[1], arrays[0]).all())
            found.append(
                (operator.op_type, traits_of(operator.domain, operator.op_type), moved)
            )
    return found


def test_operators_that_select_make_no_new_elements() -> None:
    selecting = Trait.SELECTION | Trait.VIEW
    found = [(name, moved) for name, traits, moved in _elements() if traits & selecting]
    assert {name for name, _ in found} == having(selecting)
    assert all(moved for _, moved in found), [
        name for name, moved in found if not moved
    ]
