"""Building classes: each group once, and nothing of a trial that was given up."""

from __future__ import annotations

from collections import Counter
from string import ascii_lowercase

import pytest

from burnish.codegen.arrange import arrange
from burnish.codegen.arrange.classes.class_table import ClassTable
from burnish.codegen.arrange.pipeline import PHASES, Facts, run
from tests.harness.program_text import parsed


def nested(depth: int) -> str:
    """Lists in lists, whose modules all read the input: no chain at any depth."""
    outer = ["net"]
    for word in ascii_lowercase[:depth]:
        outer.append(f"{outer[-1]}.{word}s.0")
    scopes = [f"{outer[i][:-1]}1" for i in range(1, depth + 1)] + outer[-1:]
    lines = ["input x: float32[2, 4]"]
    for n, scope in enumerate(scopes):
        for k in (0, 1):
            lines.insert(0, f"weight w{n}_{k} '{scope}.fc{k}.weight': float32[4, 4]")
        made = "nn.Linear(4, 4, bias=False, weight=w{})({})  # {}.fc{}"
        lines += [
            f"h{n}: float32[2, 4] = " + made.format(f"{n}_0", "x", scope, 0),
            f"y{n}: float32[2, 4] = "
            + made.format(f"{n}_1", f"ops.tanh(h{n})", scope, 1),
        ]
    total = "y0"
    for n in range(1, depth + 1):
        total = f"({total} + y{n})"
    return "\n".join([*lines, f"return {total}", "output 'y': float32[2, 4]"])


@pytest.mark.parametrize("depth", [1, 4, 16])
def test_each_group_is_built_once(depth, monkeypatch):
    """A list is tried as a chain first; its modules are not built again then."""
    built: Counter[str] = Counter()
    known = ClassTable.known

    def counted(self, plan):
        built["classes"] += 1
        return known(self, plan)

    monkeypatch.setattr(ClassTable, "known", counted)
    arrange(parsed(nested(depth)))
    assert built["classes"] == 2 * depth + 1


def test_reasons_have_each_class_once():
    """A trial that was given up leaves no scope in what `--explain` says."""
    facts = Facts()
    run(PHASES, parsed(nested(4)), facts)
    scopes = [scope for formed in facts.reasons.formed.values() for scope in formed]
    assert len(scopes) == 2 * 4 + 1


def test_arranging_again_gives_the_same():
    """Builders share nothing."""
    text = nested(3)
    one, other = (arrange(parsed(text)) for _ in range(2))
    assert [plan.name for plan in one.classes] == [plan.name for plan in other.classes]
