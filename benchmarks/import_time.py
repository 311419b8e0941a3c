"""How long `import burnish` takes on top of `import numpy`.

    python benchmarks/import_time.py [processes]

Each process imports NumPy first and Burnish after it, from compiled files, as an
installed package is. Prints the median and the least of all processes, and the modules
that Burnish brings along from outside itself, the slowest first.
"""

import os
import subprocess
import sys
import tempfile
from statistics import median

PROGRAM = """
import sys, time
start = time.perf_counter()
import numpy
middle = time.perf_counter()
before = set(sys.modules)
import burnish
end = time.perf_counter()
print(middle - start, end - middle)
print(*(name for name in sys.modules if name not in before))
"""


def run(folder: str, *command: str) -> subprocess.CompletedProcess[str]:
    """One process that keeps its compiled files in `folder`."""
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": folder}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    return subprocess.run(
        [sys.executable, *command],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )


def main(processes: int, folder: str) -> None:
    times = []
    run(folder, "-c", PROGRAM)  # compiles
    for _ in range(processes):
        first, names = run(folder, "-c", PROGRAM).stdout.splitlines()
        times.append([1000 * float(seconds) for seconds in first.split()])
    for label, column in zip(
        ("numpy", "burnish"), zip(*times, strict=True), strict=True
    ):
        print(f"{label:8} median {median(column):6.1f} ms, least {min(column):6.1f} ms")
    modules = set(names.split())
    own = {name for name in modules if name.split(".")[0] == "burnish"}
    print(f"{len(own)} modules of its own, {len(modules - own)} from elsewhere")
    for own_time, name in slowest(modules - own, folder)[:8]:
        print(f"  {own_time / 1000:6.1f} ms {name}")


def slowest(modules: set[str], folder: str) -> list[tuple[int, str]]:
    """Microseconds that each module's own code took in one more process."""
    command = "-X", "importtime", "-c", "import numpy, burnish"
    lines = run(folder, *command).stderr.splitlines()
    rows = [line.removeprefix("import time:").split("|") for line in lines]
    found = [(int(a), c.strip()) for a, _, c in rows if a.strip().isdigit()]
    return sorted((row for row in found if row[1] in modules), reverse=True)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as compiled:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 9, compiled)
