"""Runs files where nothing but NumPy and the standard library can be imported."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

BLOCKER = """
import sys

class OnlyNumPy:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top not in sys.stdlib_module_names and top not in ("numpy", "__main__"):
            raise ImportError(f"{name} is neither NumPy's nor the standard library's")

sys.meta_path.insert(0, OnlyNumPy())
"""

CALL = """
import importlib.util, json
import numpy as np

name, source, state, inputs, outputs = sys.argv[1:]
spec = importlib.util.spec_from_file_location(name, source)
module = importlib.util.module_from_spec(spec)
sys.modules[name] = module
spec.loader.exec_module(module)
Model = module.Model
if state == "file":
    model = Model.from_file()
elif state == "embedded":
    model = Model.from_embedded()
else:
    model = Model.from_file(state)
made = {}
with np.load(inputs) as held:
    for call in sorted({int(key.partition("/")[0]) for key in held.files}):
        keys = sorted(
            (key for key in held.files if key.startswith(f"{call}/")),
            key=lambda key: int(key.rpartition("/")[2]),
        )
        results = model(*(held[key] for key in keys))
        results = results if isinstance(results, tuple) else (results,)
        made |= {f"{call}/{i}": result.numpy() for i, result in enumerate(results)}
np.savez(outputs, **made)
"""


def alone(
    source: Path, calls: Sequence[Sequence[np.ndarray]], state: str = "file"
) -> list[list[np.ndarray]]:
    """The results of a file's model for each call, in a process with NumPy alone.

    state: "file", "embedded", or the path of weights.
    """
    given, made = source.with_suffix(".in.npz"), source.with_suffix(".out.npz")
    arrays = {f"{n}/{i}": a for n, call in enumerate(calls) for i, a in enumerate(call)}
    np.savez(given, **arrays)
    run(CALL, source.stem, source, state, given, made)
    with np.load(made) as held:
        found: list[list[np.ndarray]] = [[] for _ in calls]
        for key in sorted(held.files, key=lambda key: [*map(int, key.split("/"))]):
            found[int(key.partition("/")[0])].append(held[key])
    return found


def run(script: str, *args: object) -> str:
    """The output of a script in such a process; AssertionError with its error."""
    command = [sys.executable, "-I", "-c", BLOCKER + script, *map(str, args)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout
