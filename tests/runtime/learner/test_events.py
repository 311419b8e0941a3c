"""Logs of a run: lines that were cut off, and files that somebody else wrote."""

import json
from contextlib import suppress

import numpy as np
import pytest

from burnish.errors import RecordError
from burnish.learner import EventStore, FileLogger, read_events
from burnish.learner.checkpoint import Checkpointer, keep_all
from burnish.learner.events import (
    Entry,
    forget_after,
    forget_run,
    holds_run,
    write_metrics,
)
from burnish.learner.metric import Loss
from burnish.record import PrettyJsonRecorder, SafetensorsRecorder

LINE = '{"iteration": %d, "value": 0.5, "running": 0.25}\n'
DESCRIBED = '{"Loss": {"unit": "", "higher_is_better": false}}'


@pytest.fixture
def run(tmp_path):
    write_metrics(EventStore([Loss()]), tmp_path)
    logger = FileLogger(tmp_path)
    for iteration in (1, 2):
        logger.step("train", 1, iteration, [Entry("Loss", 0.5, 0.25)])
    logger.close()
    return tmp_path


def log(folder):
    return folder / "train" / "epoch-1" / "Loss.log"


@pytest.mark.parametrize("cut", [1, 20, 44])
def test_a_last_line_that_was_cut_off(run, cut):
    """It is passed over by readers, and no new line joins it."""
    text = log(run).read_text()
    log(run).write_text(text[:-cut])
    assert [at for at, _ in read_events(run).steps("Loss", 1, "train")] == [1]
    logger = FileLogger(run)
    logger.step("train", 1, 3, [Entry("Loss", 0.5, 0.25)])
    logger.close()
    assert [at for at, _ in read_events(run).steps("Loss", 1, "train")] == [1, 3]
    forget_after(run, 0, 1)
    assert log(run).read_text() == text.splitlines(keepends=True)[0]


def test_a_log_that_is_one_long_torn_line(run):
    log(run).write_text("x" * 200_000)
    logger = FileLogger(run)
    logger.step("train", 1, 7, [Entry("Loss", 0.5, 0.25)])
    logger.close()
    assert [at for at, _ in read_events(run).steps("Loss", 1, "train")] == [7]


WRONG_LINES = [
    "{}",
    "[]",
    "nothing",
    '{"iteration": 1}',
    '{"iteration": [1], "value": 1, "running": 1}',
    '{"epoch": 1, "value": "1"}',
    '{"epoch": 1, "value": 1, "more": 1}',
    "[" * 100_000,
    '{"epoch": 1, "value": 1%s}' % ("0" * 5000),
]


@pytest.mark.parametrize("text", WRONG_LINES, ids=range(len(WRONG_LINES)))
def test_a_line_that_no_run_wrote_is_named(run, text):
    log(run).write_text(LINE % 1 + text + "\n" + LINE % 2)
    if "0" * 5000 in text:  # a number beyond all sizes is infinite
        assert read_events(run).epochs("Loss", "train") == {1: float("inf")}
        return
    with pytest.raises(RecordError, match=r"Loss\.log, line 2"):
        read_events(run)


@pytest.mark.parametrize(
    "page",
    ["[]", "{", "1", '{"Loss": 1}', DESCRIBED.replace("false", "[]"), '{"L": {}}'],
)
def test_a_page_that_no_run_wrote_is_named(run, page):
    (run / "metrics.json").write_text(page)
    with pytest.raises(RecordError, match=r"metrics\.json"):
        read_events(run)
    with pytest.raises(ValueError, match="not the file of a run"):
        holds_run(run)


def test_folders_that_are_no_epochs_are_passed_over(run):
    for name in ("epoch-²", "epoch-1x", "epoch-" + "9" * 100, "epoch--1"):
        (run / "train" / name).mkdir()
        (run / "train" / name / "Loss.log").write_text(LINE % 9)
    assert len(read_events(run).steps("Loss", 1, "train")) == 2


@pytest.mark.parametrize("link", ["train/epoch-1", "train/epoch-1/Loss.log"])
def test_links_that_leave_the_run_are_refused(run, link, tmp_path_factory):
    """Nothing is written, read or deleted where they lead."""
    away = tmp_path_factory.mktemp("away")
    (run / link).rename(away / "moved")
    (run / link).symlink_to(away / "moved")
    before = {path: path.read_bytes() for path in away.rglob("*.log")}
    before |= {path: path.read_bytes() for path in away.glob("moved") if path.is_file()}
    logger = FileLogger(run)
    for action in (
        lambda: logger.step("train", 1, 3, [Entry("Loss", 0.5, 0.25)]),
        lambda: read_events(run),
        lambda: forget_after(run, 0, 1),
        lambda: forget_run(run),
    ):
        with pytest.raises(RecordError, match="a link that leaves it"):
            action()
    assert before == {path: path.read_bytes() for path in before}


def test_many_lines_are_no_bomb(run):
    """A line's memory is given back: a long run's logs are read whole."""
    log(run).write_text("".join(LINE % i for i in range(100_000)))
    assert len(read_events(run).steps("Loss", 1, "train")) == 100_000
    assert json.loads((run / "metrics.json").read_text()) == json.loads(DESCRIBED)


STATES = [
    {},
    {"files": {}, "state": {}},
    {"files": {}, "state": {"epoch": -1}},
    {"files": {}, "state": {"epoch": 1, "more": 1}},
    {"files": {"other": "x"}, "state": {"epoch": 1}},
    {"files": {"model": 1}, "state": {"epoch": 1}},
    {"files": [1], "state": {"epoch": 1}},
]


@pytest.mark.parametrize("state", STATES, ids=range(len(STATES)))
def test_a_checkpoint_that_no_run_wrote_is_named(tmp_path, state):
    keeper = Checkpointer(tmp_path, [keep_all], SafetensorsRecorder())
    keeper.directory.mkdir()
    for name in ("state-1", "state-²", "state-" + "9" * 5000):
        with suppress(OSError):  # a name that is too long
            PrettyJsonRecorder().record(state, keeper.directory / name)
    assert keeper.moments() == [(1, 0)]
    with pytest.raises(RecordError, match=r"state-1\.json"):
        keeper.load()


@pytest.mark.parametrize("name", ["../model.safetensors", "/etc/passwd", "a/../../x"])
def test_a_checkpoint_names_files_of_its_own_folder(tmp_path, name):
    keeper = Checkpointer(tmp_path, [keep_all], SafetensorsRecorder())
    keeper.directory.mkdir()
    SafetensorsRecorder().record({"a": np.ones(2)}, tmp_path / "model")
    page = {"files": {"model": name}, "state": {"epoch": 1}}
    PrettyJsonRecorder().record(page, keeper.directory / "state-1")
    with pytest.raises(RecordError, match="expected a file below"):
        keeper.load()
