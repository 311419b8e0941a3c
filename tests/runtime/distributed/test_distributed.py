"""Several processes train as one does with their batches together."""

import json
import subprocess

import numpy as np
import pytest

from burnish import Device, data, distributed
from burnish.distributed.launch import place
from burnish.distributed.message import decode, encode
from burnish.errors import DeviceError
from tests.harness.processes import needs_gpus

from .curves import LAUNCHER, run, run_on_gpus, same_curves, same_weights


@pytest.fixture(scope="module")
def mpi():
    pytest.importorskip("mpi4py", reason="pip install 'burnish[mpi]'")
    if not LAUNCHER.exists():
        pytest.skip(f"no launcher {LAUNCHER}: pip install 'burnish[mpi]'")


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    directory = tmp_path_factory.mktemp("alone")
    return directory, run(directory, 16)


def test_two_processes_are_one_with_the_doubled_batch(mpi, alone, tmp_path):
    directory, weights = alone
    found = run(tmp_path, 8, processes=2)
    assert json.loads((tmp_path / "where.json").read_text())["size"] == 2
    same_weights(weights, found)
    same_curves(directory, tmp_path)


def test_two_processes_stop_together_and_continue(mpi, alone, tmp_path):
    run(tmp_path, 8, processes=2, mode="stop")
    where = json.loads((tmp_path / "where.json").read_text())
    assert where == {"size": 2, "reason": "a test"}
    run(tmp_path, 8, processes=2, mode="resume")
    same_curves(alone[0], tmp_path)


@pytest.mark.parametrize("compiled", ["", "compiled"])
def test_two_gpus_are_one_process_with_the_doubled_batch(alone, tmp_path, compiled):
    needs_gpus(2)
    directory, weights = alone
    if compiled:  # every batch is a step of the optimizer
        directory = tmp_path / "alone"
        weights = run(directory, 16, mode="at once")
    found = run_on_gpus(tmp_path / "both", 8, 2, compiled)
    same_weights(weights, found)
    assert json.loads((tmp_path / "both/where.json").read_text())["size"] == 2
    same_curves(directory, tmp_path / "both")


@pytest.mark.parametrize(("count", "size"), [(24, 2), (25, 3), (1, 2), (7, 4)])
@pytest.mark.parametrize("drop_last", [False, True])
def test_parts_of_batches_are_the_batches(count, size, drop_last):
    x = np.arange(count)
    options = {"shuffle": 2, "drop_last": drop_last}
    whole = data.batches((x,), 3 * size, **options)
    parts = [data.batches((x,), 3, **options).part(i, size) for i in range(size)]
    assert [len(part) for part in parts] == [len(whole)] * size
    for (batch,), *each in zip(whole, *parts, strict=True):
        assert batch.tolist() == [v for (part,) in each for v in part.tolist()]


def test_messages_come_out_as_they_went_in():
    array = np.arange(6.0).reshape(2, 3)
    value = {"a": {"b": array, "c": None, "": "text"}, "n": 2**100, "x": 0.1, "e": {}}
    found = decode(encode(value))
    assert (found["a"].pop("b") == value["a"].pop("b")).all()
    assert found == value


def test_a_process_alone_is_a_group():
    group = distributed.group()
    assert (group.rank, group.size, group.device) == (0, 1, Device("cpu"))
    assert group.gather({"a": 1}) == [{"a": 1}]
    array = np.ones(2)
    assert group.sum({"a": array})["a"] is array


PLACES = [
    ({}, (0, 1)),
    ({"PMI_RANK": "1", "PMI_SIZE": "4"}, (1, 4)),
    ({"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "3"}, (2, 3)),
    ({"RANK": "0", "WORLD_SIZE": "2"}, (0, 2)),
    ({"RANK": "0"}, (0, 1)),
]


@pytest.mark.parametrize(("environment", "expected"), PLACES)
def test_a_launcher_says_the_place(environment, expected):
    assert place(environment) == expected


def test_places_are_numbers():
    with pytest.raises(DeviceError, match="expected whole numbers, got 'x', '2'"):
        place({"RANK": "x", "WORLD_SIZE": "2"})


def test_an_error_of_one_ends_all(mpi, tmp_path):
    (tmp_path / "metrics.json").write_text("{}")  # only the first process looks
    with pytest.raises(subprocess.CalledProcessError) as failed:
        run(tmp_path, 8, processes=2)
    assert b"holds a run: give resume='last'" in failed.value.stderr
