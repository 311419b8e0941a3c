"""Profiles: which spans ran, within what, with how much memory."""

import json
import threading
import time

import numpy as np
import pytest

import burnish
from burnish import Tensor, nn, ops
from burnish.errors import BurnishError
from burnish.nn.core.module import Module
from burnish.operator import Operator
from burnish.optim import SGD
from burnish.profiling.memory import Live


class Block(nn.Module):
    def __init__(self):
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        return ops.relu(self.linear(x)) + x


class Net(nn.Module):
    def __init__(self):
        self.blocks = [Block(), Block()]
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def tree(profile):
    return [(row.depth, row.name, row.detail, row.calls) for row in profile.modules()]


def test_modules_stand_below_their_callers_by_path():
    net, x = Net(), Tensor(np.ones((3, 4), np.float32))
    with burnish.profile() as profile:
        net(x)
        net(x)
    assert tree(profile) == [
        (0, "", "Net", 2),
        (1, "blocks.0", "Block", 2),
        (2, "blocks.0.linear", "Linear", 2),
        (1, "blocks.1", "Block", 2),
        (2, "blocks.1.linear", "Linear", 2),
        (1, "head", "Linear", 2),
    ]
    operators = {row.name: row.calls for row in profile.operators()}
    assert operators == {"linear": 6, "relu": 4, "add": 4}
    assert profile.parameters == net.num_bytes


def test_own_times_sum_to_the_total():
    net, x = Net(), Tensor(np.ones((3, 4), np.float32))
    with burnish.profile() as profile:
        net(x)
    rows = profile.modules()
    assert sum(row.own for row in rows) == profile.total == rows[0].total
    within = sum(row.total for row in rows if row.depth == 1)
    assert 0 < within < rows[0].total
    assert all(row.own > 0 for row in profile.operators())


def test_a_slow_operator_is_where_the_time_is(monkeypatch):
    value = ops.relu.value

    def slow(x):
        time.sleep(0.05)
        return value(x)

    monkeypatch.setattr(ops.relu, "value", slow)
    monkeypatch.setattr(ops.relu, "kernels", {})
    net, x = Net(), Tensor(np.ones((3, 4), np.float32))
    with burnish.profile() as profile:
        net(x)
    first = profile.operators()[0]
    assert first.name == "relu"
    assert first.own >= 100_000_000
    blocks = [row for row in profile.modules() if row.detail == "Block"]
    assert all(row.own >= 50_000_000 for row in blocks)


def test_results_are_counted_while_they_live():
    a = Tensor(np.ones(1000, np.float32))
    with burnish.profile() as profile:
        b = a * 2
        c = b.reshape(10, 100)  # a view
        del b, c
        d = a * 3
        e = d + d
    assert [span.allocated for span in profile.spans] == [4000, 0, 4000, 4000]
    assert profile.live == 8000
    assert e.shape == (1000,)


def test_an_argument_is_no_result():
    live, held = Live(), np.ones(10)
    live.known(held[2:])
    assert live.made(held) == 0
    other = np.ones(10)
    assert live.made(other[3:]) == 80
    assert live.made(other) == 0
    del other
    assert (live.bytes, live.most) == (0, 80)


def test_gradients_and_steps_have_rows():
    net = Net().to("cpu:autodiff")
    x = Tensor(np.ones((3, 4), np.float32), device=net.device)
    with burnish.profile() as profile:
        loss = net(x).sum()
        SGD().step(0.1, net, loss.backward())
    names = {row.name for row in profile.operators()}
    assert {"linear (backward)", "relu (backward)", "SGD"} <= names
    rows = {row.name: row for row in profile.modules() if row.depth == 0}
    assert rows["backward"].total > 0
    assert rows["SGD"].detail == "optimizer"


def test_a_compiled_function_is_one_span():
    net, x = Net(), Tensor(np.ones((3, 4), np.float32))
    fast = burnish.compile(net)
    expected = fast(x).numpy()
    with burnish.profile() as profile:
        got = fast(x).numpy()
    np.testing.assert_array_equal(got, expected)
    assert (profile.spans[0].kind, profile.spans[0].name) == ("plan", "Net")


def test_everything_is_as_it_was_afterwards():
    before = Module.__call__, Operator._compute, Operator.pull
    with pytest.raises(ZeroDivisionError), burnish.profile():
        raise ZeroDivisionError
    assert (Module.__call__, Operator._compute, Operator.pull) == before


def test_an_error_ends_its_spans():
    net = Net()
    with burnish.profile() as profile:
        with pytest.raises(BurnishError):
            net(Tensor(np.ones((3, 5), np.float32)))
        net(Tensor(np.ones((3, 4), np.float32)))
    assert [span.kind for span in profile.spans if span.parent < 0] == ["module"] * 2
    assert all(span.end >= span.start for span in profile.spans)


def test_other_threads_are_left_alone():
    net, x = Net(), Tensor(np.ones((3, 4), np.float32))
    with burnish.profile() as profile:
        other = threading.Thread(target=net, args=(x,))
        other.start()
        other.join()
    assert profile.spans == []
    assert str(profile) == "nothing ran within the profile"


def test_one_runs_at_a_time():
    with (
        burnish.profile(),
        pytest.raises(BurnishError, match="one is running already"),
        burnish.profile(),
    ):
        pass


def test_the_text_names_what_ran():
    net, x = Net(), Tensor(np.ones((3, 4), np.float32))
    with burnish.profile() as profile:
        net(x)
    lines = str(profile).splitlines()
    head = "module calls own ms total ms share results live at most"
    assert " ".join(lines[2].split()) == head
    names = [line.split()[0] for line in lines[3:9]]
    assert names == ["Net", "blocks.0", "linear", "blocks.1", "linear", "head"]
    assert lines[5].startswith("    linear")


def test_a_trace_holds_every_span_within_its_parent(tmp_path):
    net, x = Net(), Tensor(np.ones((3, 4), np.float32))
    with burnish.profile() as profile:
        net(x)
    profile.save_trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"][1:]
    assert len(events) == len(profile.spans)
    for span, event in zip(profile.spans, events, strict=True):
        assert event["ph"] == "X"
        assert event["name"]
        if span.parent >= 0:
            outer = events[span.parent]
            assert outer["ts"] <= event["ts"]
            assert event["ts"] + event["dur"] <= outer["ts"] + outer["dur"] + 1e-6
    (first, *_) = (each for each in events if each["cat"] == "operator")
    assert first["args"]["arguments"].startswith("float32[3, 4], float32[4, 4]")
