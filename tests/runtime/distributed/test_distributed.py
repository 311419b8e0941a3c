"""Several processes train as one does with their batches together."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from burnish import Device, data, distributed, serialize
from burnish.distributed.launch import place
from burnish.distributed.message import decode, encode
from burnish.errors import DeviceError
from burnish.learner import read_events

PROGRAM = Path(__file__).with_name("program.py")


def run(directory, batch_size, *, processes=1, mode="whole"):
    command = [sys.executable, str(PROGRAM), str(directory), str(batch_size), mode]
    if processes > 1:
        launcher = Path(sys.executable).with_name("mpiexec")
        command = [str(launcher), "-n", str(processes), *command]
    subprocess.run(command, check=True, timeout=240, capture_output=True)
    return serialize.load_file(directory / "trained.safetensors")


@pytest.fixture(scope="module")
def mpi():
    pytest.importorskip("mpi4py", reason="pip install 'burnish[mpi]'")


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    directory = tmp_path_factory.mktemp("alone")
    return directory, run(directory, 16)


def same_curves(one, other):
    one, other = read_events(one), read_events(other)
    for split in ("train", "valid"):
        for name in one.metrics(split):
            epochs = one.epochs(name, split)
            assert epochs == pytest.approx(other.epochs(name, split), rel=1e-4)
            for epoch in epochs:
                steps = one.steps(name, epoch, split)
                found = other.steps(name, epoch, split)
                assert [i for i, _ in steps] == [i for i, _ in found]
                np.testing.assert_allclose(
                    [v for _, v in steps], [v for _, v in found], rtol=1e-4
                )


def test_two_processes_are_one_with_the_doubled_batch(mpi, alone, tmp_path):
    directory, weights = alone
    found = run(tmp_path, 8, processes=2)
    assert json.loads((tmp_path / "where.json").read_text())["size"] == 2
    for name, value in weights.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-4, atol=1e-6)
    same_curves(directory, tmp_path)


def test_two_processes_stop_together_and_go_on(mpi, alone, tmp_path):
    run(tmp_path, 8, processes=2, mode="stop")
    where = json.loads((tmp_path / "where.json").read_text())
    assert where == {"size": 2, "reason": "a test"}
    run(tmp_path, 8, processes=2, mode="resume")
    same_curves(alone[0], tmp_path)


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
