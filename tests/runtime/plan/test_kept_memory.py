"""Memory of large arrays that the library keeps for later ones."""

from __future__ import annotations

import contextvars
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

from burnish.kernels import library, memory
from burnish.kernels.direct import address

LARGE, SMALL = 1 << 20, 1 << 10
"""Bytes: of arrays whose memory is kept, and of others."""


@pytest.fixture(autouse=True)
def own():
    """Each test in a context with the library's allocator."""
    if library() is None:
        pytest.skip("no C compiler here")
    name = np._core._multiarray_umath.get_handler_name
    if name() != "burnish_allocator":
        memory.keep(library().memory_handler)
    assert name() == "burnish_allocator"


def test_an_array_has_the_memory_of_one_that_is_gone():
    array = np.empty(LARGE, np.uint8)
    place = address(array)
    assert place % 64 == 0
    del array
    array = np.empty(LARGE - 5, np.uint8)
    assert address(array) == place
    other = np.empty(LARGE, np.uint8)
    assert address(other) != place


@pytest.mark.parametrize("count", [SMALL, LARGE])
def test_zeros_are_zeros_where_an_array_was(count):
    array = np.full(count, 7, np.uint8)
    del array
    assert not np.zeros(count, np.uint8).any()


@pytest.mark.parametrize("first", [0, SMALL, LARGE, 3 * LARGE])
@pytest.mark.parametrize("then", [0, SMALL, LARGE - 1, LARGE, 2 * LARGE])
def test_arrays_change_their_size(first, then):
    array = np.arange(first).astype(np.uint8)
    wanted = np.zeros(then, np.uint8)
    wanted[:first] = array[:then]
    array.resize(then, refcheck=False)
    np.testing.assert_array_equal(array, wanted)


@pytest.mark.parametrize(("then", "stays"), [(5 * LARGE, True), (3 * LARGE, False)])
def test_an_array_that_shrinks_below_half_leaves_its_memory_to_others(then, stays):
    array = np.full(8 * LARGE, 3, np.uint8)
    place = address(array)
    array.resize(then, refcheck=False)
    assert (address(array) == place) == stays
    assert (address(np.empty(8 * LARGE, np.uint8)) == place) != stays
    assert array.shape == (then,)
    assert (array == 3).all()


def test_numpy_frees_what_it_never_allocated():
    """Sorting does, where it needs no copy of what it sorts."""
    order = np.argsort(np.arange(LARGE), kind="stable")
    np.testing.assert_array_equal(order, np.arange(LARGE))


def test_arrays_keep_their_values_while_others_come_and_go():
    d = np.random.default_rng(0)
    held = {}
    for step in range(2000):
        place = int(d.integers(12))
        if place in held:
            array, number = held.pop(place)
            assert (array == number).all()
        size = int(2 ** d.uniform(12, 21))
        held[place] = np.full(size, step % 251, np.uint8), step % 251


def test_arrays_go_from_thread_to_thread():
    context, made = contextvars.copy_context(), []

    def work(seed):
        for i in range(200):
            made.append(np.full(LARGE + 4096 * (i % 5), seed, np.uint8))
            if len(made) > 8:
                array = made.pop(0)
                assert (array == array[0]).all()

    threads = [
        threading.Thread(target=context.copy().run, args=(work, seed))
        for seed in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all((array == array[0]).all() for array in made)


@pytest.mark.skipif(sys.platform != "linux", reason="reads what Linux tells")
@pytest.mark.parametrize(
    "arrays",
    [
        "for i in range(400): np.ones((4 << 20) + (i << 16), np.uint8)",
        "held = [np.ones(4 << 20, np.uint8) for _ in range(100)]; del held",
        "np.ones(400 << 20, np.uint8)",
        """d, held = np.random.default_rng(0), []
for _ in range(1500):
    held.append(np.ones(int(np.exp(d.uniform(11.5, 17.3))), np.uint8))
    if len(held) > 5: held.pop(d.integers(5))
del held""",
    ],
    ids=["sizes", "many", "large", "mixed"],
)
def test_no_more_is_kept_than_a_little(arrays):
    program = f"""
import numpy as np
from pathlib import Path
from burnish.kernels import library
library()

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

before = resident()
{arrays}
print(resident() - before)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) < (64 + 16) << 20


def test_arrays_may_be_freed_after_all_modules():
    program = """
import numpy as np
from burnish.kernels import library
library()
random = np.random.default_rng(0)

class Held:
    def __del__(self):
        self.array.sum()

held = Held()
held.array = np.ones(1 << 20)
"""
    command = [sys.executable, "-X", "dev", "-c", program]  # fills memory that is freed
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "PyDataMem_UserFREE" not in done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_children_of_busy_threads_have_arrays_too():
    program = """
import contextvars, os, threading
import numpy as np
from burnish.kernels import library
library()
context, is_done = contextvars.copy_context(), threading.Event()

def work():
    while not is_done.is_set():
        np.empty(1 << 20, np.uint8)

threads = [threading.Thread(target=context.copy().run, args=(work,)) for _ in range(3)]
for thread in threads:
    thread.start()
for _ in range(60):
    if child := os.fork():
        assert os.waitpid(child, 0)[1] == 0
    else:
        np.empty(1 << 20, np.uint8)
        os._exit(0)
is_done.set()
"""
    command = [sys.executable, "-W", "ignore", "-c", program]
    subprocess.run(command, timeout=60, check=True)


def test_an_allocator_of_another_package_stays(monkeypatch):
    calls = []
    memory.keep(lambda default: calls.append(default))
    assert not calls


@pytest.mark.skipif(sys.platform != "linux", reason="reads what Linux tells")
def test_what_is_kept_is_released():
    resident = "int(Path('/proc/self/statm').read_text().split()[1]) * 4096"
    program = f"""
import numpy as np
from pathlib import Path
from burnish.kernels import library
library()
before = {resident}
held = [np.ones(4 << 20, np.uint8) for _ in range(12)]
one = held.pop()
del held
kept = {resident} - before
library().release_memory()
library().release_memory()
assert one.all()
print(kept, {resident} - before)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    kept, left = map(int, done.stdout.split())
    assert kept > 40 << 20
    assert left < 8 << 20


@pytest.mark.skipif(sys.platform != "linux", reason="reads what Linux tells")
@pytest.mark.parametrize("is_step", [False, True], ids=["inference", "step"])
def test_a_plan_holds_no_memory_of_its_capture(is_step):
    """Beside its arena, constants, parameters and the optimizer's two slots."""
    program = f"""
import gc
import numpy as np
import burnish
from pathlib import Path
from burnish import Tensor, nn, optim
from burnish.kernels import library
from burnish.plan.plan import Plan

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

if {is_step}:
    layers = [nn.Linear(256, 256) if i % 4 else nn.GELU() for i in range(32)]
    model, shape = nn.Sequential(*layers).to("cpu:autodiff"), (2048, 256)
else:  # whose plan computes one image at a time
    layers = [nn.Conv2d(3 if i < 1 else 16, 16, 3, padding=1) for i in range(6)]
    model, shape = nn.Sequential(*layers).valid(), (32, 3, 96, 96)
adam = optim.Adam()

def step(x):
    loss = model(x).square().mean()
    adam.step(1e-3, model, loss.backward())
    return loss

fast = burnish.compile(step if {is_step} else model)
x = Tensor(np.ones(shape, np.float32))
library()
burnish.compile(nn.Sequential(nn.Linear(4, 4)).valid())(Tensor(np.ones((1, 4), "f")))
before = resident()
for _ in range(3):
    fast(x)
plan = max((p for p in gc.get_objects() if type(p) is Plan), key=lambda p: len(p.steps))
assert not plan.eager
held = plan.memory.arena + sum(a.nbytes for a in plan.constants.values())
held += sum(size for _, size in plan.outside)
held += {is_step} * 3 * sum(4 * p.data.size for p in model.parameters())
print(resident() - before, held)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    grown, held = map(int, done.stdout.split())
    assert grown < held + (28 << 20)
