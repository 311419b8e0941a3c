"""Phases of arranging: without any one of them the numbers equal the flat form's."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from burnish.codegen import pipeline as whole
from burnish.codegen.arrange import pipeline
from burnish.codegen.arrange.pipeline import NEEDED, PHASES, Phase
from burnish.codegen.lift import lift
from burnish.codegen.program import Program
from tests.codegen.arrange.test_calls import network
from tests.codegen.arrange.test_structure import encoder, pyramid
from tests.harness.counted import counted
from tests.harness.source import floats, graph, node, source_of
from tests.harness.strip import stripped

RANDOM = np.random.default_rng(0)


def _shared_factor() -> onnx.ModelProto:
    """A factor that an exporter computed in the first of two equal layers."""
    weights = {f"layers.{n}.fc.weight": floats(4, 4, seed=n) for n in (0, 1)}
    made = [node("Sigmoid", "x", "factor", "/layers.0/Sigmoid")]
    before = "x"
    for n in (0, 1):
        after = f"y{n}"
        made += [
            node(
                "MatMul", f"{before} layers.{n}.fc.weight", f"h{n}", f"/layers.{n}/fc/M"
            ),
            node("Mul", f"h{n} factor", after, f"/layers.{n}/Mul"),
        ]
        before = after
    return graph([*made, node("Identity", before, "y")], weights, x=("batch", 4))


def _uncalled() -> onnx.ModelProto:
    """A layer whose weight's name has a module that no node's name has."""
    weights = {
        "model.decoder.fc.weight": floats(4, 4),
        "model.decoder.out.weight": floats(4, 2, seed=1),
    }
    made = [
        node("MatMul", "x model.decoder.fc.weight", "h", "/decoder/fc/MatMul"),
        node("MatMul", "h model.decoder.out.weight", "y", "/decoder/out/MatMul"),
    ]
    return graph(made, weights, x=("batch", 4))


def _joined() -> onnx.ModelProto:
    made = [
        node("Tanh", "x", "t"),
        node("Unsqueeze", "x axes", "a"),
        node("Unsqueeze", "t axes", "b"),
        node("Concat", "a b", "y", axis=0),
    ]
    return graph(made, {"axes": np.array([0])}, x=("batch", 4))


def _branches() -> onnx.ModelProto:
    """Two modules of one form under two names, of different widths."""
    weights, made, before = {}, [], "x"
    for name, width in (("branch_left", 3), ("branch_right", 5)):
        for layer, sizes in (("fc", (4, width)), ("out", (width, 4))):
            weights[f"{name}.{layer}.weight"] = floats(*sizes, seed=width)
            read = f"{before} {name}.{layer}.weight"
            before = f"{name}_{layer}"
            made.append(node("MatMul", read, before, f"/{name}/{layer}/MatMul"))
        made.append(node("Tanh", before, f"{name}_y", f"/{name}/Tanh"))
        before = f"{name}_y"
    return graph([*made, node("Identity", before, "y")], weights, x=("batch", 4))


def _chain() -> onnx.ModelProto:
    """A Sequential of five equal layers."""
    weights = {f"net.{2 * n}.weight": floats(4, 4, seed=n) for n in range(5)}
    made, before = [], "x"
    for n in range(5):
        fc, tanh = f"/net/net.{2 * n}/MatMul", f"/net/net.{2 * n + 1}/Tanh"
        made.append(node("MatMul", f"{before} net.{2 * n}.weight", f"h{n}", fc))
        made.append(node("Tanh", f"h{n}", f"y{n}", tanh))
        before = f"y{n}"
    return graph([*made, node("Identity", before, "y")], weights, x=("batch", 4))


def _early() -> onnx.ModelProto:
    """A result of a branch beside a flag, which is asked behind it: an early return."""
    flag = TensorProto.BOOL
    weights = {"two": np.array(2), "yes": np.array(True), "0": np.array(0)}
    first = {
        "then_branch": [node("Tanh", "x", "a"), node("Identity", "yes", "f")],
        "else_branch": [node("Exp", "x", "b"), node("Less", "size two", "g")],
    }
    second = {
        "then_branch": [node("Identity", "r", "c")],
        "else_branch": [node("Identity", "x", "d")],
    }

    def branch(nodes: list[onnx.NodeProto], *ends: str) -> onnx.GraphProto:
        kinds = [flag if end in ("f", "g") else TensorProto.FLOAT for end in ends]
        outputs = map(helper.make_tensor_value_info, ends, kinds, [None] * len(ends))
        return helper.make_graph(nodes, "branch", [], list(outputs))

    made = [
        node("Shape", "x", "shape"),
        node("Gather", "shape 0", "size"),
        node("Less", "two size", "many"),
        node(
            "If",
            "many",
            "done r",
            then_branch=branch(first["then_branch"], "f", "a"),
            else_branch=branch(first["else_branch"], "g", "b"),
        ),
        node(
            "If",
            "done",
            "y",
            then_branch=branch(second["then_branch"], "c"),
            else_branch=branch(second["else_branch"], "d"),
        ),
    ]
    return graph(made, weights, x=("batch", 4))


IMAGES = RANDOM.normal(size=(2, 3, 16, 16)).astype(np.float32)
IDS = RANDOM.integers(0, 7, (2, 5))
ROWS = RANDOM.normal(size=(3, 4)).astype(np.float32)
MODELS: dict[str, tuple[Callable[[], onnx.ModelProto], np.ndarray]] = {
    "encoder": (lambda: stripped(encoder(3)), IDS),
    "counted": (lambda: counted(pyramid()), IMAGES),
    "pyramid": (lambda: stripped(pyramid()), IMAGES),
    "calls": (lambda: network("/block", "/block", "/block", again="module"), IDS[0]),
    "shared factor": (_shared_factor, ROWS),
    "uncalled": (_uncalled, ROWS),
    "joined": (_joined, ROWS),
    "branches": (_branches, ROWS),
    "chain": (_chain, ROWS),
    "early": (_early, ROWS),
}
COSMETIC = [phase for phase in PHASES if phase not in NEEDED]


@pytest.fixture(scope="module", params=MODELS)
def forms(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, dict[str, str], dict[str, np.ndarray]]:
    """A model, its sources (all phases, without each, flat) and their numbers."""
    build, given = MODELS[request.param]
    folder = tmp_path_factory.mktemp("forms")
    texts, numbers = {}, {}
    forms = {"flat": PHASES, "all": PHASES, **{p.__name__: _but(p) for p in COSMETIC}}
    planned = _Planned()
    for name, phases in forms.items():
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(pipeline, "PHASES", phases)
            patch.setattr(whole, "lift", planned.lift)
            patch.setattr(whole, "_simplify", planned.simplify)
            flat = name == "flat"
            texts[name], model = source_of(build(), folder, name="net", flat=flat)
        numbers[name] = np.asarray(model(given))
    return request.param, texts, numbers


class _Planned:
    """Passes and lifting of one model, done once; each form has a copy."""

    def __init__(self) -> None:
        self.program: Program | None = None
        self.simplify_once = whole._simplify

    def simplify(self, *given: Any) -> None:
        if self.program is None:
            self.simplify_once(*given)

    def lift(self, *given: Any) -> Program:
        if self.program is None:
            self.program = lift(*given)
        return copy.deepcopy(self.program)


def _but(phase: Phase) -> tuple[Phase, ...]:
    return tuple(each for each in PHASES if each is not phase)


def test_numbers_are_those_of_the_flat_form(
    forms: tuple[str, dict[str, str], dict[str, np.ndarray]],
) -> None:
    _, _, numbers = forms
    for name, found in numbers.items():
        np.testing.assert_allclose(found, numbers["flat"], 1e-5, 1e-6, err_msg=name)


CHANGES = {
    "thread_branches": "early",
    "forget_counted_layers": "counted",
    "stack_tensors": "joined",
    "recover_structure": "encoder",
    "number_calls": "calls",
    "add_uncalled_modules": "uncalled",
    "hoist_shared": "shared factor",
    "share_words": "branches",
    "merge_classes": "pyramid",
    "name_sizes": "encoder",
    "write_comprehensions": "chain",
}
"""A model whose source each phase changes."""


def test_each_phase_changes_a_source(
    forms: tuple[str, dict[str, str], dict[str, np.ndarray]],
) -> None:
    name, texts, _ = forms
    for phase, changed in CHANGES.items():
        if changed == name:
            assert texts[phase] != texts["all"], phase


def test_each_cosmetic_phase_is_in_the_table() -> None:
    assert [phase.__name__ for phase in COSMETIC] == list(CHANGES)
    assert all(phase.__doc__ for phase in PHASES)
