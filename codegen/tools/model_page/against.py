"""Compare two models: modules, shapes, values of weights, source."""

from __future__ import annotations

import ast
import difflib
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from burnish.codegen.tools.console import count
from burnish.codegen.tools.model_page.boxes import Box, Look
from burnish.codegen.weights.entries import Entry

_BLOCK = 1 << 20
"""So many values are compared at a time."""


@dataclass(frozen=True)
class Changed:
    """One module or tensor, and its differences from the other model."""

    path: str
    what: str


@dataclass(frozen=True)
class Values:
    """A tensor of both models whose values differ.

    different: how many; largest: the largest difference, and relative to the largest
    value of the model's own; None where they cannot be subtracted.
    """

    path: str
    values: int
    different: int
    largest: float | None
    relative: float | None


@dataclass(frozen=True)
class Differences:
    """The result of `--against`; `--json` prints it. added: only the other model's."""

    model: str
    other: str
    added: tuple[Changed, ...]
    removed: tuple[Changed, ...]
    changed: tuple[Changed, ...]
    tensors: tuple[Changed, ...]  #: added, removed, or of another shape or dtype
    values: tuple[Values, ...]
    equal_tensors: int
    source: tuple[str, ...]  #: a unified diff of both sources, without their headers

    @property
    def differ(self) -> bool:
        """Whether anything is different."""
        return any(
            (
                *(self.added, self.removed, self.changed),
                *(self.tensors, self.values, self.source),
            )
        )

    @property
    def summary(self) -> str:
        """A summary line: counts of differences by kind."""
        counts = (
            (len(self.added), "module", "added"),
            (len(self.removed), "module", "removed"),
            (len(self.changed), "module", "changed"),
            (len(self.tensors), "tensor", "of other kinds"),
            (len(self.values), "tensor", "of other values"),
        )
        parts = [f"{count(n, word)} {what}" for n, word, what in counts if n]
        parts += ["another source"] if self.source else ["the same source"]
        return ", ".join(parts) if self.differ else "no difference"


def differences(
    one: tuple[Look, Mapping[str, Entry]],
    other: tuple[Look, Mapping[str, Entry]],
) -> Differences:
    """Compare two models, as `examined` gives them, by the paths of their modules."""
    (first, weights), (second, others) = one, other
    before, after = first.boxes, second.boxes
    tensors, values, equal = _tensors(weights, others)
    return Differences(
        first.model,
        second.model,
        tuple(_changed(box) for path, box in after.items() if path not in before),
        tuple(_changed(box) for path, box in before.items() if path not in after),
        tuple(
            Changed(path, what)
            for path, box in before.items()
            if path in after and (what := "; ".join(_changes(box, after[path])))
        ),
        tuple(tensors),
        tuple(values),
        equal,
        tuple(_diff(first, second)),
    )


def _changed(box: Box) -> Changed:
    return Changed(box.path, f"{box.kind}({box.about})" if box.about else box.kind)


def _changes(one: Box, other: Box) -> Iterator[str]:
    mine, its = _changed(one).what, _changed(other).what
    if mine != its:
        yield f"{mine} became {its}"
    for word, before, after in (
        ("takes", one.inputs, other.inputs),
        ("gives", one.outputs, other.outputs),
    ):
        old, new = (", ".join(map(str, flows)) for flows in (before, after))
        if old and new and old != new:
            yield f"{word} {new}, not {old}"


def _tensors(
    weights: Mapping[str, Entry], others: Mapping[str, Entry]
) -> tuple[list[Changed], list[Values], int]:
    """Tensors of other kinds, tensors of other values, and how many are equal."""
    kinds, values, equal = [], [], 0
    for path in dict.fromkeys([*weights, *others]):
        mine, its = weights.get(path), others.get(path)
        if mine is None or its is None:
            only = "only the other has it" if mine is None else "the other has it not"
            held = its if mine is None else mine
            assert held is not None
            kinds.append(Changed(path, f"{only}: {_kind(held)}"))
        elif _kind(mine) != _kind(its):
            kinds.append(Changed(path, f"{_kind(mine)} became {_kind(its)}"))
            if mine.weight.shape == its.weight.shape:
                found = _compared(path, mine.read(), its.read())
                values += [found] if found else []
        elif found := _compared(path, mine.read(), its.read()):
            values.append(found)
        else:
            equal += 1
    return kinds, values, equal


def _kind(entry: Entry) -> str:
    return f"{entry.dtype}[{', '.join(map(str, entry.weight.shape))}]"


def _compared(path: str, mine: np.ndarray, its: np.ndarray) -> Values | None:
    """None for equal values."""
    if mine.dtype.kind in "OSUM" or its.dtype.kind in "OSUM":
        count = int(np.count_nonzero(np.asarray(mine != its)))
        return Values(path, mine.size, count, None, None) if count else None
    different, largest, scale = 0, 0.0, 0.0
    for a, b in zip(_blocks(mine), _blocks(its), strict=True):
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        different += int(a.size - np.count_nonzero(same))
        with np.errstate(invalid="ignore"):
            gaps = np.abs(np.where(same, 0, a - b))
            largest = max(largest, float(np.max(gaps, initial=0)))
            scale = max(scale, float(np.max(np.abs(a), initial=0)))
    if not different:
        return None
    relative = largest / scale if scale and math.isfinite(scale) else None
    return Values(path, mine.size, different, largest, relative)


def _blocks(array: np.ndarray) -> Iterator[np.ndarray]:
    """The values in float64 (complex where they are), some at a time."""
    wide = np.complex128 if array.dtype.kind == "c" else np.float64
    flat = array.reshape(-1)
    for start in range(0, max(flat.size, 1), _BLOCK):
        yield flat[start : start + _BLOCK].astype(wide)


def _diff(one: Look, other: Look) -> Iterator[str]:
    return difflib.unified_diff(
        _body(one.source),
        _body(other.source),
        f"{one.model}: {one.title}.py",
        f"{other.model}: {other.title}.py",
        lineterm="",
    )


def _body(source: str) -> list[str]:
    """The lines behind the header, which names the file."""
    body = ast.parse(source).body
    lines = source.split("\n")
    return (
        lines[body[0].end_lineno :] if ast.get_docstring(ast.parse(source)) else lines
    )
