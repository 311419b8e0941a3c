"""Output of a run: lines, the dashboard, text plots."""

import io

import pytest

from burnish.learner import Accuracy, IterationSpeed, LineRenderer, Loss, Renderer
from burnish.learner.display.braille import plot
from burnish.learner.display.terminal import renderer_for_terminal

from .conftest import StopAt, train_batches, valid_batches


def test_lines_without_a_terminal(learner):
    out = io.StringIO()
    run = learner(epochs=2, renderer=LineRenderer(file=out))
    run.fit(train_batches(), valid_batches())
    lines = out.getvalue().splitlines()
    assert lines[0] == "Network, 74 parameters, on cpu:autodiff"
    starts = ["train 1/2", "valid 1/2", "train 2/2", "valid 2/2"]
    assert [line[:9] for line in lines[1:5]] == starts
    best = run.store.find_metric("Loss", 2, "valid")
    assert f"Loss {best:.4g}" in lines[4]
    assert lines[5].startswith("Split  Metric")


def test_lines_within_a_long_epoch_and_the_reason(learner):
    out = io.StringIO()
    lines = LineRenderer(every=0, file=out)
    run = learner(epochs=1)

    class Both(LineRenderer):
        def step(self, progress):
            lines.step(progress)
            if progress.iteration == 2:
                run.interrupter.stop("enough")

        def end(self, summary, reason):
            lines.end("", reason)

    run.renderer = Both(file=out)
    run.fit(train_batches())
    text = out.getvalue().splitlines()
    assert text[1].startswith("train 1/1  batch 1/5  Accuracy ")
    assert text[-1] == "ended early: enough"


@pytest.mark.parametrize("width", [80, 120])
def test_the_dashboard_draws_and_leaves_the_summary(learner, width):
    console = pytest.importorskip("rich.console").Console(
        file=io.StringIO(), force_terminal=True, width=width
    )
    from burnish.learner.display.dashboard import Dashboard

    dashboard = Dashboard(console)
    metrics = [Accuracy(), Loss(), IterationSpeed()]
    run = learner(epochs=3, renderer=dashboard, metrics=metrics)
    run.fit(train_batches(), valid_batches())
    console.print(dashboard.picture())
    text = console.file.getvalue()
    for part in (
        "Network",
        "74 parameters",
        "epoch 3/3",
        "5/5",
        "Accuracy (%)",
        "batches/s",
        "Split  Metric",
    ):
        assert part in text
    assert "\u2026" not in text  # an ellipsis: no plot lacks its newest part


def test_a_renderer_that_fails_ends_the_run_and_is_ended(learner):
    ended = []

    class Failing(StopAt):
        def end(self, summary, reason):
            ended.append(reason)

    def fail():
        raise OSError("the screen is gone")

    run = learner("run", renderer=Failing("train", 2, 1, fail))
    with pytest.raises(OSError, match="the screen is gone"):
        run.fit(train_batches())
    assert ended == [None]
    run = learner("run", resume="last")
    run.fit(train_batches())
    assert sorted(run.store.epochs("Loss", "train")) == [1, 2, 3, 4]


def test_no_terminal_no_dashboard():
    assert type(renderer_for_terminal()) is LineRenderer
    assert Renderer().step(None) is None


PLOTS = [
    ([0, 1], 2, 1, ["⣠⠞"]),
    ([1.0], 2, 1, ["⠤⠤"]),
    ([], 3, 2, ["⠀⠀⠀"] * 2),
    ([float("nan")], 1, 1, ["⠀"]),
    ([0, 0, 1, 1], 4, 2, None),
]


@pytest.mark.parametrize(("values", "width", "height", "expected"), PLOTS)
def test_plots(values, width, height, expected):
    rows = plot(values, width, height)
    assert [len(row) for row in rows] == [width] * height
    if expected:
        assert rows == expected


def test_a_plot_goes_up_and_down():
    rows = plot([0, 1, 0], 6, 2)
    top, bottom = ([ord(c) > 0x2800 for c in row] for row in rows)
    assert top[2:4] == [True, True]
    assert (top[0], bottom[0], bottom[-1]) == (False, True, True)
