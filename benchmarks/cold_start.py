"""From the start of a process to the first result.

    python benchmarks/cold_start.py [processes]
    python benchmarks/cold_start.py [processes] MODEL.onnx [NAME=SIZE,...]

The MNIST model in four ways, each a process of its own that reads a picture and prints
the digit: one file for NumPy alone (weights inside, and beside it), the package, and
onnxruntime on the model file. With a model file: what `burnish generate --compiled`
writes for it, and onnxruntime. They take turns. Prints the median and the least wall
time and processor's time, what NumPy alone takes of it, and the bytes that each way
needs beside NumPy.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from importlib import resources, util
from pathlib import Path
from statistics import median

import numpy as np

from burnish.codegen.cli.parsing.pairs import choices
from burnish.codegen.compiled import calls
from burnish.codegen.pipeline import Options, generate, write
from burnish.codegen.readers import read

OURS = """
import numpy as np
from {module} import Model
model = Model.{load}()
print(model(np.load("picture.npy")).numpy().argmax())
"""
PEER = """
import numpy as np
import onnxruntime
session = onnxruntime.InferenceSession("mnist.onnx")
print(session.run(None, {"images": np.load("picture.npy")})[0].argmax())
"""


COMPILED = """
import numpy as np
from burnish import Tensor
from compiled import Model
model = Model.from_file()
assert model._ahead is not None
made = model(*(Tensor(x) for x in np.load("inputs.npz").values()))
print((made[0] if isinstance(made, tuple) else made).numpy().argmax())
"""
OF_FILE = """
import numpy as np
import onnxruntime
session = onnxruntime.InferenceSession({model!r})
print(session.run(None, dict(np.load("inputs.npz")))[0].argmax())
"""


def of_file(processes: int, model: Path, dims: list[str], folder: Path) -> None:
    """What is planned ahead of time for a model file, beside onnxruntime."""
    chosen = choices(dims)
    command = [sys.executable, "-m", "burnish", "generate", str(model), "--compiled"]
    command += ["--name", "compiled", "-o", str(folder)]
    command += [word for text in dims for word in ("--dim", text)]
    subprocess.run(command, check=True, capture_output=True)
    (given, *_) = calls(model, dims=chosen)
    names = [value.name for value in read(model).model.graph.inputs]
    np.savez(folder / "inputs.npz", **dict(zip(names, given, strict=True)))
    ways = {"NumPy": "import numpy", "compiled": COMPILED}
    files = [file for file in folder.iterdir() if file.stem.startswith("compiled")]
    sizes = {"NumPy": 0, "compiled": sum(file.stat().st_size for file in files)}
    sizes["compiled"] += _size("burnish")
    if util.find_spec("onnxruntime"):
        ways["onnxruntime"] = OF_FILE.format(model=str(model.resolve()))
        sizes["onnxruntime"] = model.stat().st_size + _size("onnxruntime")
    race(processes, ways, sizes, folder)


def main(processes: int, folder: Path) -> None:
    model = folder / "mnist.onnx"
    shipped = resources.files("burnish.models.mnist").joinpath("mnist.onnx")
    model.write_bytes(shipped.read_bytes())
    np.save(folder / "picture.npy", np.zeros((1, 28, 28), np.float32))
    ways = {"NumPy": "import numpy"}
    sizes = {"NumPy": 0}
    for name, options in (
        ("one_inside", Options("one_inside", embed=True, standalone=True)),
        ("one_beside", Options("one_beside", standalone=True)),
        ("package", Options("package")),
    ):
        files = write(generate(model, options), folder)
        load = "from_embedded" if options.embed else "from_file"
        ways[name] = OURS.format(module=name, load=load)
        sizes[name] = sum(file.stat().st_size for file in files)
    sizes["package"] += _size("burnish")
    if util.find_spec("onnxruntime"):
        ways["onnxruntime"] = PEER
        sizes["onnxruntime"] = model.stat().st_size + _size("onnxruntime")
    race(processes, ways, sizes, folder)


def race(
    processes: int, ways: dict[str, str], sizes: dict[str, int], folder: Path
) -> None:
    """Run each way in turn, and print what it took."""
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    for turn in range(processes + 1):
        for name, program in ways.items():
            took = _timed(program, folder)
            if turn:  # the first one compiles
                times[name].append(took)
    for name, rows in times.items():
        walls, used = ([1000 * took for took in row] for row in zip(*rows, strict=True))
        print(
            f"{name:12} median {median(walls):7.1f} ms, least {min(walls):7.1f} ms, "
            f"processor {median(used):7.1f} and {min(used):7.1f} ms, "
            f"{sizes[name] / 1e6:6.1f} MB beside NumPy"
        )


def _timed(program: str, folder: Path) -> tuple[float, float]:
    """Seconds of a process: wall, and the processor's."""
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(folder / "compiled")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    start, before = time.perf_counter(), _of_children()
    command = [sys.executable, "-c", program]
    subprocess.run(
        command, cwd=folder, check=True, capture_output=True, env=environment
    )
    return time.perf_counter() - start, _of_children() - before


def _of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _size(package: str) -> int:
    """Bytes of an installed package, without compiled files."""
    spec = util.find_spec(package)
    assert spec is not None
    assert spec.origin is not None
    files = Path(spec.origin).parent.rglob("*")
    kept = (f for f in files if f.is_file() and "__pycache__" not in f.parts)
    return sum(file.stat().st_size for file in kept)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        words = sys.argv[1:]
        count = int(words.pop(0)) if words and words[0].isdecimal() else 9
        if words:
            of_file(count, Path(words[0]), words[1:], Path(made))
        else:
            main(count, Path(made))
