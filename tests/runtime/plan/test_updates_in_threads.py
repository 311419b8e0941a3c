"""Updates by records in several threads: no deadlock, and no update is lost."""

import sys
import threading

import numpy as np
import pytest

import burnish
from burnish import nn, optim
from burnish.kernels import library
from burnish.plan.updates import Updating

pytestmark = pytest.mark.skipif(library() is None, reason="there is no compiler")


@pytest.fixture(autouse=True)
def _switch_often():
    """Let threads take turns as often as they can."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def run(jobs):
    """Run each job in a thread; fail where one never ends, or raises."""
    faults = []

    def guarded(job):
        try:
            job()
        except BaseException as fault:
            faults.append(fault)

    threads = [
        threading.Thread(target=guarded, args=(job,), daemon=True) for job in jobs
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join(60)
    assert not any(each.is_alive() for each in threads), "threads wait for each other"
    assert not faults, faults


def planned(model, rule):
    """A step whose gradient is 1 for each element of each parameter."""

    @burnish.compile
    def step():
        loss = sum(p.sum() for p in model.parameters())
        rule.step(1.0, model, loss.backward())

    return step


def layers(count=16):
    made = [nn.Linear(8, 8) for _ in range(count)]
    for each in made:
        for param in each.parameters():
            param.assign(np.zeros(param.shape, np.float32))
    return made


def test_plans_that_share_parameters_in_opposite_order():
    forth = layers()
    models = [nn.Sequential(*some).to("cpu:autodiff") for some in (forth, forth[::-1])]
    steps = [planned(model, optim.SGD()) for model in models]
    for step in steps:
        step()
        assert "one plan" in step.explain()
    run([lambda step=step: [step() for _ in range(200)] for step in steps * 2])
    for param in models[0].parameters():
        np.testing.assert_array_equal(param.data, np.full(param.shape, -802))


def test_plans_that_share_an_optimizer():
    def trained(in_threads):
        model, rule = nn.Sequential(*layers(2)).to("cpu:autodiff"), optim.Adam()
        steps = [planned(model, rule) for _ in range(2)]
        jobs = [lambda step=step: [step() for _ in range(50)] for step in steps * 2]
        if in_threads:
            run(jobs)
        else:
            for job in jobs:
                job()
        return [p.data for p in model.parameters()], rule.state_dict()

    weights, state = trained(True)
    wanted, wanted_state = trained(False)
    for one, other in zip(weights, wanted, strict=True):
        np.testing.assert_array_equal(one, other)
    assert state.keys() == wanted_state.keys()
    for key, array in wanted_state.items():
        np.testing.assert_array_equal(state[key], array)


@pytest.mark.parametrize("are_planned", [(1, 1), (1, 0), (0, 0)])
def test_models_of_their_own_that_share_a_state(are_planned):
    """Steps of either model add 1 to the one velocity, and take it from its weights."""
    rule, count = optim.SGD(momentum=1.0), 100
    models = [nn.Sequential(*layers(2)).to("cpu:autodiff") for _ in are_planned]

    def job(model, is_planned):
        step = planned(model, rule)
        return step if is_planned else step._function

    steps = [job(*pair) for pair in zip(models, are_planned, strict=True)]
    run([lambda step=step: [step() for _ in range(count)] for step in steps])
    total = len(steps) * count
    for path, param in models[0].named_parameters():
        both = param.data + dict(models[1].named_parameters())[path].data
        np.testing.assert_array_equal(
            both, np.full_like(both, -(total + 1) * total / 2)
        )
        assert rule.state_dict()[f"{path}.step"] == total


@pytest.mark.parametrize("is_planned", [True, False])
def test_a_state_is_read_between_updates(is_planned):
    """Each gradient is 1, so that a velocity is the number of its steps."""
    model, rule = nn.Sequential(*layers(2)).to("cpu:autodiff"), optim.SGD(momentum=1.0)
    grouped = optim.ModuleOptimizer(rule)
    step = planned(model, rule)
    step = step if is_planned else step._function
    step()

    def read():
        for _ in range(300):
            for state in (rule.state_dict(), grouped.state_dict()):
                for name in (name for name in state if name.endswith(".velocity")):
                    count = state[name.replace(".velocity", ".step")]
                    assert (state[name] == count).all()

    run([lambda: [step() for _ in range(500)], read])


def test_no_update_is_lost():
    param = nn.Param(np.zeros(1, np.float32))

    def add():
        for _ in range(2000):
            updating = Updating()
            updating.take([param])
            array = updating.of(param)
            array += 1
            updating.end()

    run([add] * 4)
    assert param.data[0] == 8000


@pytest.mark.parametrize("is_kept", [True, False])
def test_an_assignment_waits_for_an_update(is_kept):
    param = nn.Param(np.zeros(3, np.float32))
    updating = Updating()
    updating.take([param])
    begun = threading.Event()

    def assign():
        begun.set()
        param.assign(np.full(3, 7, np.float32))

    thread = threading.Thread(target=assign, daemon=True)
    thread.start()
    assert begun.wait(60)
    thread.join(0.05)
    updating.of(param)[...] = 2
    if is_kept:
        updating.end()
    else:
        updating.take_back()
    thread.join(60)
    assert not thread.is_alive()
    np.testing.assert_array_equal(param.data, np.full(3, 7))


def test_assignments_beside_updates():
    param = nn.Param(np.zeros(1, np.float32))

    def add():
        for _ in range(2000):
            updating = Updating()
            updating.take([param])
            array = updating.of(param)
            array += 1
            updating.end()

    def assign():
        for _ in range(5000):
            param.assign(np.full(1, 1e6, np.float32))

    run([add, assign, assign])
    assert 1e6 <= param.data[0] <= 1e6 + 2000
