"""Render a training run as one HTML page: metrics as plots, a table, the log."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from burnish._files.atomic import atomic_write
from burnish.codegen.errors import keep_inputs
from burnish.codegen.extensions.environment import filled
from burnish.learner.display.summary import LearnerSummary
from burnish.learner.events import SPLITS, EventStore, read_events

Points: TypeAlias = Sequence[tuple[float, float]]

_WIDTH, _HEIGHT = 460, 220
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 12, 10, 30
_LOG = 200  # lines of the application log that the page shows


@dataclass(frozen=True)
class Plot:
    """One metric's picture."""

    title: str
    svg: str


def report(directory: Path, output: Path | None = None) -> Path:
    """Write the page of a run, finished or not; its path.

    output: RUN_DIR/report.html where none is given. Raises RecordError where there is
    no run.
    """
    store = read_events(directory)
    target = output or directory / "report.html"
    if target.suffix != ".html":
        keep_inputs([target], (p for p in directory.rglob("*") if p.is_file()))
    log = directory / "experiment.log"
    lines = log.read_text("utf-8", "replace").splitlines() if log.exists() else []
    page = filled(
        "report.html.jinja",
        None,
        title=directory.resolve().name,
        epochs=max(
            (e for n in _names(store) for s in SPLITS for e in store.epochs(n, s)),
            default=0,
        ),
        ranges=[
            {
                "split": r.split,
                "metric": f"{r.metric} ({r.unit})" if r.unit else r.metric,
                "low": f"{r.low:.4g}",
                "low_epoch": r.low_epoch,
                "high": f"{r.high:.4g}",
                "high_epoch": r.high_epoch,
            }
            for r in LearnerSummary.of(store).ranges
        ],
        plots=[plot for name in _names(store) for plot in _plots(store, name)],
        log=lines[-_LOG:],
        left_out=max(len(lines) - _LOG, 0),
    )
    with atomic_write(target) as file:
        file.write(page.encode())
    return target


def _names(store: EventStore) -> list[str]:
    return [
        name for name in store.units if any(name in store.metrics(s) for s in SPLITS)
    ]


def _plots(store: EventStore, name: str) -> list[Plot]:
    """A metric by epochs, and by batches of training."""
    unit = store.units.get(name, "")
    title = f"{name} ({unit})" if unit else name
    by_epoch = {
        split: sorted(store.epochs(name, split).items())
        for split in SPLITS
        if store.epochs(name, split)
    }
    plots = [Plot(f"{title} by epoch", line_plot(by_epoch, "epoch"))]
    batches: list[tuple[float, float]] = []
    for epoch in sorted(store.epochs(name, "train")):
        start = len(batches)
        steps = store.steps(name, epoch, "train")
        batches += [(start + i + 1, value) for i, (_, value) in enumerate(steps)]
    if len(batches) > 1:
        drawn = {"train": thinned(batches)}
        plots.append(Plot(f"{title} by batch", line_plot(drawn, "batch")))
    return plots


def thinned(points: Points, most: int = 400) -> list[tuple[float, float]]:
    """At most about `most` points: the mean of as many neighbours as that takes."""
    size = math.ceil(len(points) / most)
    groups = [points[i : i + size] for i in range(0, len(points), size)]
    return [
        (sum(x for x, _ in group) / len(group), sum(y for _, y in group) / len(group))
        for group in groups
    ]


def line_plot(series: Mapping[str, Points], across: str) -> str:
    """An SVG of one line for each series; points that are not finite break it."""
    points = [p for line in series.values() for p in line if math.isfinite(p[1])]
    xs, ys = [x for x, _ in points] or [0.0], [y for _, y in points] or [0.0]
    x_ticks, y_ticks = ticks(min(xs), max(xs), whole=True), ticks(min(ys), max(ys))
    low_x, high_x = min(min(xs), x_ticks[0]), max(max(xs), x_ticks[-1])
    low_y, high_y = min(min(ys), y_ticks[0]), max(max(ys), y_ticks[-1])

    def place_x(x: float) -> float:
        part = (x - low_x) / (high_x - low_x) if high_x > low_x else 0.5
        return round(_LEFT + part * (_WIDTH - _LEFT - _RIGHT), 1)

    def place_y(y: float) -> float:
        part = (y - low_y) / (high_y - low_y) if high_y > low_y else 0.5
        return round(_HEIGHT - _BOTTOM - part * (_HEIGHT - _TOP - _BOTTOM), 1)

    parts = []
    for tick in y_ticks:
        y, end = place_y(tick), _WIDTH - _RIGHT
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{end}" y1="{y}" y2="{y}"/>')
        parts.append(
            f'<text class="tick" x="{_LEFT - 6}" y="{y + 4}" text-anchor="end">'
            f"{tick:.4g}</text>"
        )
    for tick in x_ticks:
        parts.append(
            f'<text class="tick" x="{place_x(tick)}" y="{_HEIGHT - _BOTTOM + 16}" '
            f'text-anchor="middle">{tick:.4g}</text>'
        )
    parts.append(
        f'<text class="tick" x="{_WIDTH - _RIGHT}" y="{_HEIGHT - 2}" '
        f'text-anchor="end">{across}</text>'
    )
    for split, line in series.items():
        placed = [(place_x(x), place_y(y), x, y) for x, y in line if math.isfinite(y)]
        path = " ".join(f"{x},{y}" for x, y, *_ in placed)
        parts.append(f'<polyline class="{split}" points="{path}"/>')
        if len(placed) <= 60:
            parts += [
                f'<circle class="{split}" cx="{x}" cy="{y}" r="2.5">'
                f"<title>{split} {across} {at:g}: {value:.6g}</title></circle>"
                for x, y, at, value in placed
            ]
    inside = "".join(parts)
    return f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img">{inside}</svg>'


def ticks(low: float, high: float, whole: bool = False, count: int = 5) -> list[float]:
    """About `count` round numbers from `low` to `high`; at least one."""
    if not high > low:
        return [low]
    rough = (high - low) / count
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * m for m in (1, 2, 5, 10) if power * m >= rough)
    if whole:
        step = max(1.0, round(step))
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [i * step for i in range(first, last + 1)] or [low]
