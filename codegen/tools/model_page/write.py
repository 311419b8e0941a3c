"""Write the inspection of a model as one HTML file."""

from __future__ import annotations

import io
import keyword
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from burnish._files.atomic import atomic_write
from burnish.codegen.extensions.environment import filled
from burnish.codegen.tools.model_page.against import Differences
from burnish.codegen.tools.model_page.boxes import Box, Histogram, Look, Step
from burnish.codegen.tools.model_page.values import SAMPLE
from burnish.profiling.shown import size

BOXES = 4000
"""So many boxes the page has at most."""
LINES = 20_000
"""So many lines of source the page has at most."""
_OPEN = 24  #: boxes below the model's that are open at first, if they are so few
_INLINE = 5  #: operators that stand in one line


@dataclass
class Shown:
    """A box as the template has it. parts: operators and boxes in order of calls."""

    box: Box
    number: int
    label: str
    bars: list[tuple[str, str, str, str]]
    lines: str
    opened: bool
    parts: list[Run | Shown] = field(default_factory=list)
    more: int = 0  #: boxes in it that are left out


@dataclass
class Run:
    """Consecutive operators, and the result of the last one."""

    steps: list[Step]
    output: str

    @property
    def inline(self) -> str:
        """Their names, if they are few."""
        few = len(self.steps) <= _INLINE
        return " · ".join(step.operator for step in self.steps) if few else ""


def write(found: Look, target: Path, apart: Differences | None = None) -> Path:
    """Write the page; its path. apart: what another model is different in."""
    source = found.source.split("\n")
    text = filled(
        "model.html.jinja",
        None,
        look=found,
        apart=apart,
        marks=_marks(found, apart) if apart else {},
        root=_Pages(found).root,
        facts=facts(found),
        source=list(coloured(found.source))[:LINES],
        more_lines=max(len(source) - LINES, 0),
        number=number,
        size=size,
        drawn=drawn,
        spread=spread,
        sample=SAMPLE,
    )
    with atomic_write(target) as file:
        file.write(text.encode())
    return target


def _marks(found: Look, apart: Differences) -> dict[str, str]:
    """The differences of each module, by its path, as its box shows them."""
    boxes, marks = found.boxes, dict[str, str]()
    paths = [each.path for each in apart.tensors] + [each.path for each in apart.values]
    for path in paths:
        owner = path.rpartition(".")[0]
        while owner and owner not in boxes:
            owner = owner.rpartition(".")[0]
        marks[owner] = "other weights"
    marks |= {each.path: "changed" for each in apart.changed}
    return marks | {each.path: "removed" for each in apart.removed}


def facts(found: Look) -> list[tuple[str, str]]:
    """Facts of the whole model: a word and a number."""
    root = found.root
    facts = [("parameters", f"{root.parameters:,}"), ("weights", size(root.bytes))]
    if found.ran:
        facts.append(("FLOPs a pass", number(2 * root.macs)))
        facts.append(("results a pass", size(root.result_bytes)))
    facts.append(("modules", f"{sum(bool(b.calls) for b in root.walk()) or 1:,}"))
    return facts


class _Pages:
    """Makes boxes ready for the template, as many as fit."""

    def __init__(self, found: Look):
        self.whole = found.root
        self.room = BOXES
        self.few = sum(1 for _ in found.root.walk()) <= _OPEN
        self.root = self.shown(found.root, 0)

    def shown(self, box: Box, depth: int) -> Shown:
        self.room -= 1
        made = Shown(
            box,
            BOXES - self.room,
            box.name,
            self._bars(box),
            ",".join(f"{span.first}-{span.last}" for span in box.lines),
            depth == 0 or self.few,
        )
        placed: set[int] = set()
        run: list[Step] = []
        for step in box.steps:
            child = _child(box, step.module) if step.module else None
            if child is None or id(child) in placed:
                run.append(_again(box, step))
                continue
            _end(made, run)
            run = []
            placed.add(id(child))
            self._place(made, child, depth)
        _end(made, run)
        for child in box.children:
            if id(child) not in placed:
                self._place(made, child, depth)
        return made

    def _place(self, made: Shown, child: Box, depth: int) -> None:
        if self.room > 0:
            made.parts.append(self.shown(child, depth + 1))
        else:
            made.more += 1

    def _bars(self, box: Box) -> list[tuple[str, str, str, str]]:
        """Label, number, share of the model's total, and a remark."""
        whole = self.whole
        memory, all_memory = (each.bytes + each.result_bytes for each in (box, whole))
        return [
            _bar(
                "parameters", box.parameters, whole.parameters, number(box.parameters)
            ),
            _bar("FLOPs", 2 * box.macs, 2 * whole.macs, number(2 * box.macs)),
            _bar(
                "memory",
                memory,
                all_memory,
                size(memory) if memory else "0",
                f"{size(box.bytes)} weights, {size(box.result_bytes)} results",
            ),
        ]


def _bar(
    word: str, part: int, whole: int, text: str, about: str = ""
) -> tuple[str, str, str, str]:
    share = 100 * part / whole if whole else 0.0
    title = f"{word}: {about or f'{part:,}'}, {share:.1f}% of the model"
    return word, text if part else "", f"{share:.1f}", title


def _child(box: Box, path: str) -> Box | None:
    """The child that is this module, or has it as an item of a list."""
    for child in box.children:
        if child.path == path or any(item.path == path for item in child.children):
            return child
    return None


def _again(box: Box, step: Step) -> Step:
    """A reference to a module whose box is elsewhere."""
    if not step.module:
        return step
    inside = f"{box.path}." if box.path else ""
    return Step(step.module.removeprefix(inside), "", "")


def _end(made: Shown, run: list[Step]) -> None:
    """Put a run of operators in; calls of list items whose box is there are no news."""
    names = {item.path for part in made.box.children for item in part.children}
    inside = f"{made.box.path}." if made.box.path else ""
    steps = [s for s in run if s.output or f"{inside}{s.operator}" not in names]
    if steps:
        outputs = [step.output for step in steps if step.output]
        made.parts.append(Run(steps, outputs[-1] if outputs else ""))


# --- numbers and pictures ---


def number(count: int) -> str:
    """`999`, `12.3k`, `1.81G`."""
    if count < 1000:
        return str(count)
    value, units = count / 1000, "kMGTPE"
    while value >= 999.5 and len(units) > 1:
        value, units = value / 1000, units[1:]
    return f"{value:.3g}{units[0]}"


def drawn(histogram: Histogram) -> str:
    """The path of a histogram's outline in a box of one column a count, 12 high."""
    most = max(histogram.counts)
    parts = ["M0 12"]
    for count in histogram.counts:
        parts.append(f"V{12 - 12 * count / most:.1f}".replace(".0", "") + "h1")
    return "".join(parts) + "V12z"


def spread(histogram: Histogram) -> str:
    """`-0.21 to 0.2, mean 0.001, deviation 0.05`, and anomalies."""
    summary = (
        f"{histogram.low:.3g} to {histogram.high:.3g}, mean {histogram.mean:.3g}, "
        f"deviation {histogram.deviation:.3g}"
    )
    if histogram.zeros:
        summary += f", {histogram.zeros / histogram.values:.1%} zeros"
    if histogram.odd:
        summary += f", {histogram.odd:,} not finite"
    return summary


# --- source ---


def coloured(source: str) -> Iterator[list[tuple[str, str]]]:
    """The lines of a source as pieces: a CSS class ("" for none) and text."""
    lines = source.split("\n")
    marks: dict[int, list[tuple[int, int, str]]] = {}
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if kind := _kind(token):
            (first, left), (last, right) = token.start, token.end
            for row in range(first, last + 1):
                begin = left if row == first else 0
                end = right if row == last else len(lines[row - 1])
                marks.setdefault(row, []).append((begin, end, kind))
    for row, line in enumerate(lines, 1):
        pieces, at = [], 0
        for begin, end, kind in marks.get(row, ()):
            pieces += [("", line[at:begin]), (kind, line[begin:end])]
            at = end
        pieces.append(("", line[at:]))
        yield [piece for piece in pieces if piece[1]]


def _kind(token: tokenize.TokenInfo) -> str:
    if token.type == tokenize.STRING:
        return "s"
    if token.type == tokenize.COMMENT:
        return "c"
    if token.type == tokenize.NAME and keyword.iskeyword(token.string):
        return "k"
    return ""
