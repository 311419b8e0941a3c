"""Runs a program in several processes with a GPU each, as a launcher does."""

import os
import socket
import subprocess
import sys

import pytest

from burnish import Device


def needs_gpus(count):
    """Skip a test on a machine with fewer GPUs."""
    found = sum(device.kind == "cuda" for device in Device.enumerate())
    if found < count:
        pytest.skip(f"needs {count} GPUs, found {found}")


def on_gpus(command, processes):
    """Run a Python file with arguments; every process has to end well."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    started = [
        subprocess.Popen(
            [sys.executable, *map(str, command)],
            env=os.environ
            | {"RANK": f"{rank}", "WORLD_SIZE": f"{processes}"}
            | {"MASTER_PORT": f"{port}"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        for rank in range(processes)
    ]
    try:
        for process in started:
            message, _ = process.communicate(timeout=240)
            assert process.returncode == 0, message.decode()
    finally:
        for process in started:
            process.kill()
