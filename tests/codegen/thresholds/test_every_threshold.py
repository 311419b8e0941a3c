"""Every number on which the generator decides has a case that it prevents.

With the declared value the false positive is absent; with a looser one it appears.
"""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

import burnish.codegen
from tests.codegen.thresholds.arranging import ARRANGING
from tests.codegen.thresholds.merging import MERGING
from tests.codegen.thresholds.passes import PASSES
from tests.codegen.thresholds.programs import Threshold

CODEGEN = Path(burnish.codegen.__file__).parent
THRESHOLDS = (*MERGING, *ARRANGING, *PASSES)
PACKAGES = ("arrange", "ops/shapes", "passes")

#: Bounds on work: beyond them the source is longer and the numbers are the same.
WORK = {
    "arrange.analysis.tandem_repeats._PERIODS",
    "arrange.analysis.tandem_repeats._RUNS",
    "arrange.classes.attention_trial._LARGEST",
    "arrange.classes.explain._COMPARED",
    "arrange.merge.alignment._STEPS",
    "arrange.merge.anti_unify._LONGEST",
    "arrange.merge.merge._KINDS",
    "arrange.recover.regions._NESTED",
    "arrange.recover.units._APART",
    "arrange.recover.units._REACHES",
    "passes._ROUNDS",
    "passes.constants.decide_if._LONGEST",
    "passes.graph._MOST_INTEGERS",
    "passes.recurrent.layer._LARGEST",
    "passes.rules.attention.masks.LARGEST",
    "passes.rules.attention.masks._LONGEST_ROW",
    "passes.shapes.fitting._MOST",
    "passes.shapes.propagate._LARGEST",
    "passes.shapes.propagate._SHORT",
    "passes.weights.fresh._FARTHEST",
}
#: Numbers of a format, a formula or a cost: no other value would be looser.
CONSTANTS = {
    "arrange.classes.attention_trial._BATCH",
    "arrange.classes.attention_trial._MASKED",
    "arrange.classes.attention_trial._TIME",
    "arrange.classes.sequence_axes._ROWS",
    "arrange.hyperparams.head_counts._TOGETHER",
    "arrange.hyperparams.head_reshapes._OPEN",
    "arrange.hyperparams.propagate._ANY",
    "arrange.merge.anti_unify._LEFT_OUT",
    "arrange.merge.anti_unify._OFF",
    "arrange.merge.merge._STATEMENT",
    "arrange.recover.units.BRANCHES",
    "arrange.recover.units._BESIDE",
    "passes.constants.decide_if._STATES",
    "passes.layout.spatial_sizes._NAMED_AXES",
    "passes.quantized.integer._BIAS",
    "passes.recurrent.each_direction._BOTH",
    "passes.recurrent.each_direction._JOINED",
    "passes.recurrent.layer.SWAP",
    "passes.rules.activation._C",
    "passes.rules.advanced_index._LARGEST_INT32",
    "passes.rules.reverse._TO_THE_START",
    "passes.shapes.softmax_rows.ALONG_AN_AXIS",
    "passes.weights.untie._BEHIND",
}
_PLAIN = (
    *(ast.Constant, ast.BinOp, ast.UnaryOp, ast.Tuple, ast.operator, ast.unaryop),
    ast.expr_context,
)


def _names(target: ast.expr) -> Iterator[str]:
    for part in ast.walk(target):
        if isinstance(part, ast.Name):
            yield part.id


def _is_number(value: ast.expr) -> bool:
    """Whether an expression is a number, or a tuple of numbers."""
    parts = list(ast.walk(value))
    held = [part.value for part in parts if isinstance(part, ast.Constant)]
    return all(isinstance(part, _PLAIN) for part in parts) and all(
        isinstance(number, int | float) and not isinstance(number, bool)
        for number in held
    )


def _numbers() -> Iterator[str]:
    """The names of numbers at the top of the modules of these packages."""
    for package in PACKAGES:
        for path in (CODEGEN / package).rglob("*.py"):
            module = ".".join(path.relative_to(CODEGEN).with_suffix("").parts)
            for statement in ast.parse(path.read_text()).body:
                match statement:
                    case ast.Assign(targets=targets, value=value):
                        pass
                    case ast.AnnAssign(target=target, value=ast.expr() as value):
                        targets = [target]
                    case _:
                        continue
                if _is_number(value):
                    for name in (name for target in targets for name in _names(target)):
                        yield f"{module.removesuffix('.__init__')}.{name}"


#: Ranks, places of inputs and counts of parts that a form has.
_COUNTS = range(-1, 5)


def _compared() -> Iterator[str]:
    """Numbers that a comparison inside of a function does not take from a name."""
    for package in PACKAGES:
        for path in (CODEGEN / package).rglob("*.py"):
            for function in ast.walk(ast.parse(path.read_text())):
                if not isinstance(function, ast.FunctionDef | ast.Lambda):
                    continue
                for node in ast.walk(function):
                    if isinstance(node, ast.Compare) and any(
                        isinstance(op, ast.Lt | ast.LtE | ast.Gt | ast.GtE)
                        for op in node.ops
                    ):
                        for part in ast.walk(node):
                            value = getattr(part, "value", None)
                            is_count = not isinstance(value, float) and value in _COUNTS
                            if isinstance(value, int | float) and not is_count:
                                yield f"{path.name}:{node.lineno}: {value}"


def test_functions_take_the_numbers_on_which_they_decide_from_names() -> None:
    assert list(_compared()) == []


@pytest.mark.parametrize("threshold", THRESHOLDS, ids=lambda row: row.place)
def test_a_threshold_prevents_a_false_positive(
    threshold: Threshold, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, _, name = threshold.place.rpartition(".")
    assert not threshold.happens(), threshold.prevents
    at = importlib.import_module(f"burnish.codegen.{module}")
    monkeypatch.setattr(at, name, threshold.looser)
    assert threshold.happens(), f"it protects nothing of: {threshold.prevents}"


def test_every_number_has_a_case_or_a_reason() -> None:
    known = [*(row.place for row in THRESHOLDS), *WORK, *CONSTANTS]
    assert sorted(_numbers()) == sorted(known)
