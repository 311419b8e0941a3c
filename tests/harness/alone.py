"""Runs files where nothing but NumPy and the standard library can be imported.

A server imports NumPy once and forks for each script: to start an interpreter takes
longer than most of them.
"""

from __future__ import annotations

import atexit
import functools
import json
import subprocess
import sys
import tempfile
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

#: Runs each script of a line of standard input in a fork, which prints to a file.
SERVER = """
import json, os, signal, traceback
import numpy

for line in sys.stdin:
    script, printed, *args = json.loads(line)
    child = os.fork()
    if not child:
        signal.alarm(300)
        file = os.open(printed, os.O_WRONLY)
        os.dup2(file, 1)
        os.dup2(file, 2)
        sys.argv, code = ["-c", *args], 1
        try:
            exec(script, {"__name__": "__main__", "sys": sys})
            code = 0
        except SystemExit as end:
            code = end.code or 0
        except BaseException:
            traceback.print_exc()
        sys.stdout.flush()
        os._exit(code)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
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


@functools.cache
def _server() -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    command = [sys.executable, "-I", "-c", BLOCKER + SERVER]
    server = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
    atexit.register(server.communicate)  # it ends with its input
    return server


def ran(script: str, *args: object) -> tuple[int, str]:
    """The exit code of a script in such a process, and what it prints and reports."""
    server = _server()
    assert server.stdin is not None
    assert server.stdout is not None
    with tempfile.NamedTemporaryFile("r") as printed:
        server.stdin.write(json.dumps([script, printed.name, *map(str, args)]) + "\n")
        server.stdin.flush()
        return int(server.stdout.readline()), printed.read()


def run(script: str, *args: object) -> str:
    """The output of a script in such a process; AssertionError with its error."""
    code, printed = ran(script, *args)
    assert code == 0, printed
    return printed
