"""burnish.compile among copies, threads and processes, and without kernels."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest

import burnish
from burnish import nn, ops
from burnish.errors import InputError
from tests.runtime.plan.checks import check, same
from tests.runtime.plan.test_compile import Net, tensor


@pytest.mark.parametrize(
    ("copied", "has_own"),
    [
        (copy.copy, False),
        (copy.deepcopy, True),
        (lambda fast: pickle.loads(pickle.dumps(fast)), True),
    ],
    ids=["copy", "deepcopy", "pickle"],
)
def test_copies_plan_their_own_calls(copied, has_own):
    model, x = nn.Linear(3, 4).to("cpu").valid(), tensor(2, 3)
    fast = burnish.compile(model, off=("gemv",))
    y = fast(x)
    other = copied(fast)
    np.testing.assert_array_equal(other(x).numpy(), y.numpy())
    assert other.plan(x)
    model.bias.assign(model.bias + 1)
    moved = np.zeros_like(y.numpy()) if has_own else np.ones_like(y.numpy())
    np.testing.assert_allclose(other(x).numpy() - y.numpy(), moved, atol=1e-6)


@burnish.compile
def decorated(x):
    return ops.exp(x)


@pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda f: pickle.loads(pickle.dumps(f))]
)
def test_a_decorated_function_is_found_by_its_name(copied):
    assert copied(decorated) is decorated


def test_many_threads_of_python():
    model = Net()
    fast = burnish.compile(model)
    inputs = [tensor(2, 3, 16, 16) for _ in range(8)]
    wanted = [model(x) for x in inputs]
    wrong = []

    def work(place):
        for i in range(40):
            j = (place + i) % 8
            try:
                same(fast(inputs[j]), wanted[j])
            except AssertionError as error:
                wrong.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not wrong


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_any_number_of_threads(threads):
    burnish.set_num_threads(threads)
    try:
        check(Net(), tensor(4, 3, 24, 24))
        assert burnish.num_threads() == threads
    finally:
        burnish.set_num_threads(None)


@pytest.mark.parametrize("count", [0, -1, 65, True])
def test_refused_numbers_of_threads(count):
    with pytest.raises(InputError, match="a number from 1 to 64"):
        burnish.set_num_threads(count)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_child_of_a_fork_has_its_own_threads():
    burnish.set_num_threads(3)
    try:
        model = Net()
        fast, x = burnish.compile(model), tensor(4, 3, 24, 24)
        wanted = fast(x).numpy()
        child = os.fork()
        if child == 0:
            try:
                fine = np.array_equal(fast(x).numpy(), wanted)
            finally:
                os._exit(0 if fine else 1)
        assert os.waitpid(child, 0)[1] == 0
        np.testing.assert_array_equal(fast(x).numpy(), wanted)
    finally:
        burnish.set_num_threads(None)


OFF = """
import numpy as np, burnish
fast = burnish.compile(lambda x: burnish.ops.exp(x))
assert fast(burnish.Tensor(np.zeros(3, np.float32))).numpy().tolist() == [1, 1, 1]
print(fast.explain())
"""


@pytest.mark.parametrize(
    ("setting", "report"),
    [
        ({"BURNISH_KERNELS": "off"}, ""),
        ({"CC": "/no/compiler"}, "cannot be run"),
        ({"XDG_CACHE_HOME": os.devnull}, "cannot be written"),
    ],
)
def test_without_kernels_everything_runs_as_it_is(setting, report, tmp_path):
    setting = {**os.environ, "XDG_CACHE_HOME": str(tmp_path), **setting}
    words = [sys.executable, "-c", OFF]
    done = subprocess.run(
        words, env=setting, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert "there are no kernels" in done.stdout
    assert report in done.stderr
    assert len(done.stderr.splitlines()) <= 2


def test_nothing_is_loaded_before_it_is_asked_for():
    code = (
        "import burnish, sys; from burnish import nn; nn.Linear(2, 3); "
        "late = ('burnish.plan', 'burnish.kernels'); "
        "print([name for name in sys.modules if name.startswith(late)])"
    )
    words = [sys.executable, "-c", code]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"
