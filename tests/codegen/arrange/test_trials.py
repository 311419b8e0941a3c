"""Trials leave no trace: what is built or merged again is equal, and nothing changes.

A list of modules is tried as a chain before its modules are called one by one, and
classes are merged twice to compare. Both rely on it that a trial that is given up has
changed nothing that the next one reads.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import onnx
import pytest

from burnish.codegen.arrange import pipeline
from burnish.codegen.arrange.classes.builder import Builder
from burnish.codegen.arrange.classes.explain import Reasons
from burnish.codegen.arrange.merge.merge import sized
from burnish.codegen.pipeline import generate
from burnish.codegen.program import ClassPlan, Program, Statement, Value, Weight
from tests.codegen.arrange.test_branches import branch, choice
from tests.codegen.arrange.test_builder import nested
from tests.codegen.arrange.test_phases import MODELS
from tests.codegen.arrange.test_structure import encoder, pyramid
from tests.codegen.test_large import GRAPHS
from tests.harness.program_text import parsed

GRAPH: dict[str, Callable[[], onnx.ModelProto]] = {
    **{name: build for name, (build, _) in MODELS.items()},
    **{name: partial(build, 80) for name, build in GRAPHS.items()},
    "encoder with scopes": lambda: encoder(2),
    "pyramid with scopes": pyramid,
    "branches of one class": lambda: choice(8, 6, branch("small")),
}
"""The small graphs of the corpus, and those of the tests of phases."""


class Found(NamedTuple):
    """A program as the builder finds it, and the classes as merging finds them."""

    program: Program
    names: dict[int, str]
    scopes: list[Any]
    classes: list[ClassPlan]


@pytest.fixture(scope="module", params=[*GRAPH, "lists in lists"])
def found(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Found:
    programs: list[tuple[Program, dict[int, str], list[Any]]] = []
    classes: list[ClassPlan] = []

    class Recorded(Builder):
        def __init__(
            self, program: Program, names: dict[int, str], reasons: Reasons, flat: bool
        ):
            programs.append((program, names, _scopes(program)))
            super().__init__(program, names, reasons, flat)

    def recorded(given: list[ClassPlan], explain: Any) -> list[ClassPlan]:
        classes.extend(given)
        return sized(given, explain)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pipeline, "Builder", Recorded)
        patch.setattr(pipeline, "sized", recorded)
        if request.param in GRAPH:
            path = tmp_path_factory.mktemp("trials") / "model.onnx"
            onnx.save(GRAPH[request.param](), path)
            generate(path)
        else:
            pipeline.arrange(parsed(nested(3)))
    return Found(*programs[0], classes)


class _Text:
    """Data structures as text: equal for equal structures over equal values."""

    def __init__(self) -> None:
        self.numbers: dict[int, int] = {}

    def of(self, item: Any) -> str:
        if isinstance(item, Weight):
            return f"weight {self.number(item)} {item.path} {item.dtype} {item.shape}"
        if isinstance(item, np.ndarray):
            return f"array {item.tolist()}"
        if isinstance(item, dict):
            return f"{{{self.all(pair for pair in item.items())}}}"
        if isinstance(item, set | frozenset):
            return f"set of {len(item)}"
        if isinstance(item, list | tuple):
            return f"[{self.all(item)}]"
        if not dataclasses.is_dataclass(item):
            return repr(item)
        fields = [getattr(item, each.name) for each in dataclasses.fields(item)]
        number = self.number(item) if isinstance(item, Value) else ""
        return f"{type(item).__name__}{number}({self.all(fields)})"

    def number(self, item: Value | Weight) -> str:
        """Its place in the order of first appearance: identity, across builds."""
        return str(self.numbers.setdefault(id(item), len(self.numbers)))

    def all(self, items: Iterable[Any]) -> str:
        return ", ".join(map(self.of, items))


def text(item: Any) -> str:
    return _Text().of(item)


def builder(found: Found) -> Builder:
    return Builder(found.program, found.names, Reasons(), flat=False)


def test_a_group_that_is_built_again_is_the_same_part(found: Found) -> None:
    """Without what was built before, except for the classes that are known."""
    before = str(found.program)
    made = builder(found)
    made.build()
    parts = dict(made.built)
    written = {key: text(part) for key, part in parts.items()}
    for (method, *given), part in parts.items():
        made.built.clear()
        again = method(made, *given)  # type: ignore[operator]
        assert type(again) is type(part)
        assert text(again) == written[method, *given]
        assert text(part) == written[method, *given]
    assert str(found.program) == before


class _Forgets(dict[Any, Any]):
    """A table that holds nothing longer than it takes to read it once."""

    def __getitem__(self, key: Any) -> Any:
        return self.pop(key)


def test_classes_do_not_depend_on_trials(found: Found) -> None:
    """The same classes where each trial builds all that it needs anew."""
    before = str(found.program)
    once, often = builder(found), builder(found)
    often.built = _Forgets()
    assert text(often.build()) == text(once.build())
    assert str(found.program) == before
    assert _scopes(found.program) == found.scopes


def _scopes(program: Program) -> list[Any]:
    found: list[Any] = []

    def visit(statements: list[Statement]) -> None:
        for statement in statements:
            found.append(statement.scope)
            for block in statement.blocks():
                visit(block.statements)

    visit(program.body.statements)
    return found


def test_merging_again_gives_equal_classes_and_changes_none(found: Found) -> None:
    before, lines = text(found.classes), (list[str](), list[str]())
    one, other = (text(sized(found.classes, each.append)) for each in lines)
    assert one == other
    assert lines[0] == lines[1]
    assert text(found.classes) == before
