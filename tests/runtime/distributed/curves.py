"""Runs of program.py, and whether two of them went alike."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from burnish import serialize
from burnish.learner import read_events
from tests.harness.processes import on_gpus

PROGRAM = Path(__file__).with_name("program.py")
LAUNCHER = Path(sys.executable).with_name("mpiexec")


def run(directory, batch_size, *, processes=1, mode="whole"):
    """The weights that processes under MPI have trained."""
    command = [sys.executable, str(PROGRAM), str(directory), str(batch_size), mode]
    if processes > 1:
        command = [str(LAUNCHER), "-n", str(processes), *command]
    subprocess.run(command, check=True, timeout=240, capture_output=True)
    return serialize.load_file(directory / "trained.safetensors")


def run_on_gpus(directory, batch_size, processes, compiled=""):
    """The weights that processes with a GPU each have trained."""
    given = [PROGRAM, directory, batch_size, "whole", "cuda", compiled]
    on_gpus(given, processes)
    return serialize.load_file(directory / "trained.safetensors")


def same_weights(one, other):
    for name, value in one.items():
        np.testing.assert_allclose(other[name], value, rtol=1e-4, atol=1e-6)


def same_curves(one, other):
    """Whether the metrics of two runs' directories are alike, batch by batch."""
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
