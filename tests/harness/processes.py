"""Runs a program in several processes with a GPU each, as a launcher does."""

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import time

import pytest

from burnish import Device


def needs_gpus(count):
    """Skip a test on a machine with fewer GPUs."""
    found = sum(device.kind == "cuda" for device in Device.enumerate())
    if found < count:
        pytest.skip(f"needs {count} GPUs, found {found}")


def on_gpus(command, processes, patience=240):
    """Run a Python file with arguments; every process has to end well.

    Where one fails the others, which wait for it, are ended.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with contextlib.ExitStack() as held:
        started = []
        for rank in range(processes):
            said = held.enter_context(tempfile.TemporaryFile("w+"))
            place = {"RANK": f"{rank}", "WORLD_SIZE": f"{processes}"}
            process = subprocess.Popen(
                [sys.executable, *map(str, command)],
                env=os.environ | place | {"MASTER_PORT": f"{port}"},
                stdout=said,
                stderr=subprocess.STDOUT,
            )
            held.callback(process.kill)
            started.append((process, said))
        end = time.monotonic() + patience
        while time.monotonic() < end:
            codes = [process.poll() for process, _ in started]
            if any(codes) or None not in codes:
                break
            time.sleep(0.05)
        for process, said in started:
            if process.poll() != 0:
                said.seek(0)
                pytest.fail(f"a process ended with {process.poll()}: {said.read()}")
