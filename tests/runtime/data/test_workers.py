"""Workers: the same batches whoever loads them, errors that say which, no leaks."""

from __future__ import annotations

import gc
import multiprocessing
import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from burnish import Tensor, data, learner, nn, optim, seed
from burnish.data.sources.mnist import normalized
from burnish.errors import DataError, InputError
from tests.harness.datasets import (
    Damaged,
    Ends,
    Slow,
    Squares,
    jitter,
    wrong_batcher,
)

WORKERS = {
    "none": {},
    "threads": {"num_workers": 2},
    "processes": {"num_workers": 2, "processes": True},
}
BUSY = {name: options for name, options in WORKERS.items() if options}


def plain(value):
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    return value.tolist() if isinstance(value, Tensor) else value


def shared_blocks(process=None):
    """Those of this process or of that one; others may run tests as well."""
    folder, own = "/dev/shm", f"burnish_{process or os.getpid()}_"
    if not os.path.isdir(folder):
        return set()
    return {name for name in os.listdir(folder) if name.startswith(own)}


def open_files():
    return len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0


@pytest.fixture
def no_leak():
    """After the test there are the processes, threads, files, memory of before it."""
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # Python's own, which stays
    gc.collect()
    before = set(threading.enumerate()), shared_blocks(), open_files()
    yield
    gc.collect()
    assert multiprocessing.active_children() == []
    threads, blocks, files = before
    assert (set(threading.enumerate()), shared_blocks()) == (threads, blocks)
    assert open_files() <= files


def loader(dataset, options, **more):
    return data.batches(
        dataset, 4, shuffle=3, augment=jitter, seed=9, **options, **more
    )


@pytest.mark.parametrize("options", BUSY.values(), ids=BUSY)
def test_whoever_loads_the_batches_are_the_same(options, no_leak):
    alone, helped = loader(Squares(), {}), loader(Squares(), options, prefetch=3)
    first = [[plain(batch) for batch in alone] for _ in range(2)]
    with helped:
        second = [[plain(batch) for batch in helped] for _ in range(2)]
    assert first == second
    assert first[0] != first[1]
    helped.epoch = 1
    assert [plain(batch) for batch in helped] == first[1]


def test_draws_depend_on_seed_epoch_and_index_alone():
    def noise(**options):
        rows = data.batches(Squares(), 4, augment=jitter, **options)
        return {
            name: tuple(seen)
            for batch in rows
            for name, seen in zip(batch["name"], batch["noise"].tolist(), strict=True)
        }

    base = noise(seed=9)
    assert noise(seed=9, shuffle=1) == base
    assert len(set(base.values())) == 23
    assert not set(noise(seed=8).values()) & set(base.values())


@pytest.mark.parametrize("options", BUSY.values(), ids=BUSY)
def test_parts_of_batches_with_workers(options, no_leak):
    whole = [plain(batch) for batch in loader(Squares(), {})]
    parts = [
        [plain(batch) for batch in loader(Squares(), options).part(rank, 2)]
        for rank in range(2)
    ]
    assert [part[i] for i in range(3) for part in parts] == whole


def test_large_batches_come_through_shared_memory(no_leak):
    images = np.random.default_rng(0).integers(0, 255, (40, 28, 28)).astype(np.uint8)
    arrays = np.concatenate([images] * 30), np.arange(1200)
    options = {"batcher": normalized, "num_workers": 2, "processes": True}
    for (x, y), (again, labels) in zip(
        data.batches(arrays, 500, batcher=normalized),
        data.batches(arrays, 500, **options),
        strict=True,
    ):
        assert (x.numpy() == again.numpy()).all()
        assert y.tolist() == labels.tolist()
        assert again.dtype == np.float32


def test_many_indices_and_few_bytes_do_not_stop_the_pipes(no_leak):
    x = np.arange(300_000, dtype=np.uint8)
    options = {"num_workers": 2, "processes": True, "prefetch": 8}
    found = [batch for (batch,) in data.batches((x,), 20_000, **options)]
    assert (np.concatenate([each.numpy() for each in found]) == x).all()


@pytest.mark.parametrize("options", WORKERS.values(), ids=WORKERS)
def test_an_error_says_the_item(options, no_leak):
    with pytest.raises(
        DataError, match=r"^Squares, item 17: Damaged: file 17.png: truncated"
    ) as caught:
        list(data.batches(Squares(bad=17), 4, **options))
    if "processes" in options:  # this exception cannot be sent
        assert "in __getitem__" in caught.value.__notes__[0]
    else:
        assert isinstance(caught.value.__cause__, Damaged)


@pytest.mark.parametrize("options", WORKERS.values(), ids=WORKERS)
def test_an_error_of_a_batcher_says_the_items(options, no_leak):
    message = r"Squares, the batcher, items 0, 1, 2, 3, ... \(5\): KeyError: 'y'"
    with pytest.raises(DataError, match=message) as caught:
        list(data.batches(Squares(), 5, batcher=wrong_batcher, **options))
    assert isinstance(caught.value.__cause__, KeyError)


def broken(loader):
    for _ in loader:
        break


def interrupted(loader):
    for _ in loader:
        raise KeyboardInterrupt


def raised(loader):
    with pytest.raises(KeyboardInterrupt):
        interrupted(loader)


def collected(loader):
    batches = iter(loader)
    next(batches)
    del batches
    gc.collect()


def in_a_cycle(loader):
    batches = iter(loader)
    next(batches)
    batches = [batches]
    batches.append(batches)
    del batches
    gc.collect()


def never_begun(loader):
    iter(loader)


def kept(loader):
    with loader:
        broken(loader)
        list(loader)
        broken(loader)


def kept_and_interrupted(loader):
    with pytest.raises(KeyboardInterrupt), loader:
        interrupted(loader)


@pytest.mark.parametrize("options", BUSY.values(), ids=BUSY)
@pytest.mark.parametrize(
    "leave",
    [broken, raised, collected, in_a_cycle, never_begun, kept, kept_and_interrupted],
)
def test_nothing_is_left_however_a_loop_ends(leave, options, no_leak):
    leave(data.batches(Slow(40), 4, **options))


def test_a_process_that_ends_is_an_error_not_a_wait(no_leak):
    with pytest.raises(DataError, match="ended with exit code 3; expected it to wait"):
        list(data.batches(Ends(), 4, **WORKERS["processes"]))


def test_two_loops_at_once_share_the_kept_workers(no_leak):
    with data.batches(Squares(), 4, **WORKERS["processes"]) as loader:
        pairs = [(plain(a), plain(b)) for a, b in zip(loader, loader, strict=True)]
    assert all(one == other for one, other in pairs)
    assert len(pairs) == 6


def test_what_cannot_be_sent_is_reported_before_anything_starts(no_leak):
    options = WORKERS["processes"]
    with pytest.raises(InputError, match=r"expected a batcher that processes can be"):
        list(data.batches(Squares(), 4, batcher=lambda x: x, **options))
    mapped = data.MappedDataset(Squares(), lambda x: x)
    with pytest.raises(InputError, match=r"expected a dataset that .* use threads"):
        list(data.batches(mapped, 4, **options))


@pytest.mark.parametrize("options", [{"num_workers": -1}, {"prefetch": 0}])
def test_numbers_that_cannot_be(options):
    with pytest.raises(InputError, match="num_workers from 0 and prefetch from 1"):
        data.batches(Squares(), 4, **options)


SCRIPT = """
import numpy as np
from burnish import data

if __name__ == "__main__":
    loader = data.batches((np.arange(100.0),), 4, num_workers=2, processes={processes})
    batches = iter(loader)
    print(next(batches)[0].tolist(), flush=True)
    {then}
"""
THEN = {
    "end": "",
    "error": "raise SystemExit(4)",
    "interrupt": "import os, signal; os.kill(os.getpid(), signal.SIGINT)",
}


@pytest.mark.parametrize("processes", [False, True])
@pytest.mark.parametrize("then", THEN)
def test_a_program_that_ends_in_a_loop(tmp_path, then, processes):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(processes=processes, then=THEN[then]))
    with subprocess.Popen(
        [sys.executable, script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as program:
        printed, complaint = program.communicate(timeout=300)
    assert printed == "[0.0, 1.0, 2.0, 3.0]\n"
    assert program.returncode == {"end": 0, "error": 4, "interrupt": -2}[then]
    last = complaint.strip().splitlines()[-1:]
    assert last == (["KeyboardInterrupt"] if then == "interrupt" else [])
    assert shared_blocks(program.pid) == set()


def test_workers_end_when_their_program_is_killed(tmp_path):
    script = tmp_path / "script.py"
    then = """import multiprocessing as m, os, signal
    print(*(p.pid for p in m.active_children()), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)"""
    script.write_text(SCRIPT.format(processes=True, then=then))
    done = subprocess.run([sys.executable, script], capture_output=True, timeout=300)
    workers = [int(pid) for pid in done.stdout.split(b"\n")[1].split()]
    assert len(workers) == 2
    deadline = time.monotonic() + 120
    while any(map(alive, workers)):
        assert time.monotonic() < deadline, "workers are left"
        time.sleep(0.05)


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().split()[2] != "Z"
    except FileNotFoundError:
        return False


def flipped(item, rng):
    x, y = item
    return x * rng.choice([-1, 1]), y


@pytest.mark.parametrize("options", BUSY.values(), ids=BUSY)
def test_a_run_that_continues_in_an_epoch_is_the_same_with_workers(
    tmp_path, options, no_leak
):
    x = np.random.default_rng(0).normal(size=(24, 4)).astype(np.float32)
    y = (x[:, 0] > 0).astype(np.int64)

    def fit(folder, more, stop=None, **rest):
        train = data.batches((x, y), 4, shuffle=1, augment=flipped, **more)
        seed(5)
        model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.Linear(4, 2))
        interrupter = learner.Interrupter()

        def step(model, batch):
            fit.steps += 1
            if fit.steps == stop:
                interrupter.stop("enough")
            return supervised(model, batch)

        fit.steps = 0
        supervised = learner.Supervised(nn.CrossEntropyLoss())
        run = learner.Learner(
            model,
            optim.Adam(),
            1e-2,
            step=step,
            epochs=2,
            directory=tmp_path / folder,
            interrupter=interrupter,
            renderer=learner.Renderer(),
            **rest,
        )
        return run.fit(train).state_dict()

    whole = fit("whole", {})
    fit("parts", options, stop=8)
    parts = fit("parts", options, resume="last")
    assert fit.steps == 4
    assert all((whole[name] == parts[name]).all() for name in whole)
