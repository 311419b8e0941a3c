"""What it costs to start with weights that the package carries.

    python benchmarks/embedding.py [processes]

The model that ships inside Burnish, generated with its weights in a file, and in the
source as text: as they are, in half precision, in 8 and in 4 bits. For each the bytes
on disk, and the medians of: importing the module behind Burnish, from_embedded (with
its checksum), and the first result.
"""

import os
import subprocess
import sys
import tempfile
from importlib import resources
from pathlib import Path
from statistics import median

from burnish.codegen import ModelGen

PROGRAM = """
import sys, time
import numpy as np
import burnish
x = np.zeros((1, 28, 28), np.float32)
times = [time.perf_counter()]
from {name}.mnist import Model
times.append(time.perf_counter())
model = Model.from_embedded()
times.append(time.perf_counter())
model(x)
times.append(time.perf_counter())
print(*(later - earlier for earlier, later in zip(times, times[1:])))
"""

FORMS = {
    "file": {},
    "text": {"embed_states": True},
    "half": {"embed_states": True, "half_precision": True},
    "q8": {"embed_states": True, "quantize": "q8"},
    "q4": {"embed_states": True, "quantize": "q4"},
}


def started(name: str, folder: Path) -> list[float]:
    """Milliseconds of each step in a process of its own, from compiled files."""
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(name=name)],
        capture_output=True,
        text=True,
        check=True,
        cwd=folder,
        env=environment,
    )
    return [1000 * float(seconds) for seconds in done.stdout.split()]


def main(processes: int, folder: Path) -> None:
    model = resources.files("burnish.models.mnist").joinpath("mnist.onnx")
    with resources.as_file(model) as path:
        for name, settings in FORMS.items():
            ModelGen(folder / name, **settings).input(path).run()
            started(name, folder)  # compiles
    print("form       bytes   import ms   weights ms   first result ms")
    for name in FORMS:
        size = sum(f.stat().st_size for f in (folder / name).iterdir() if f.is_file())
        rows = [started(name, folder) for _ in range(processes)]
        times = [median(column) for column in zip(*rows, strict=True)]
        print(f"{name:5} {size:10,} {times[0]:11.1f} {times[1]:12.1f} {times[2]:17.1f}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 9, Path(place))
