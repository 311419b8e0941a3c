"""Loading a large file side by side: `python benchmarks/loading.py --mb 1024`.

A chain of Linear layers in float32, saved as safetensors and as PyTorch's own file, is
loaded into a module in processes of their own: by Burnish, by safetensors.torch and by
torch. Each line has the seconds from an open interpreter with the library imported to a
loaded module ("load"), to the sum of every value ("and use"), and the peak memory above
that of the imports: of the process's own pages, and with the file's mapped pages.
The file is in the page cache, so that what is measured is not the disk.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

SIDE, MB = 2048, 1 << 20
LAYER = SIDE * SIDE * 4 / MB

MEASURE = """
import json, sys, time, threading
path, depth = sys.argv[1], int(sys.argv[2])

def pages():
    names = {"RssAnon": 0, "RssFile": 0}
    for line in open("/proc/self/status"):
        word, _, rest = line.partition(":")
        if word in names:
            names[word] = int(rest.split()[0]) / 1024
    return names["RssAnon"], names["RssAnon"] + names["RssFile"]

most, running = [0, 0], True
def watch():
    while running:
        most[:] = map(max, most, pages())
        time.sleep(0.002)
"""

RUN = """
before = pages()
watcher = threading.Thread(target=watch)
watcher.start()
start = time.perf_counter()
model = load(path, depth)
loaded = time.perf_counter() - start
total = use(model)
used = time.perf_counter() - start
running = False
watcher.join()
most[:] = map(max, most, pages())
print(json.dumps([loaded, used, *(m - b for m, b in zip(most, before)), total]))
"""

BURNISH = f"""
import burnish.serialize.pytorch
from burnish import nn

class Chain(nn.Module):
    def __init__(self, depth):
        self.layers = [nn.Linear({SIDE}, {SIDE}, bias=False) for _ in range(depth)]

def load(path, depth):
    return Chain(depth).load_file(path)

def use(model):
    return sum(float(p.data.sum()) for p in model.parameters())
"""

TORCH = f"""
import torch
torch.set_num_threads(1)

class Chain(torch.nn.Module):
    def __init__(self, depth):
        super().__init__()
        with torch.device("meta"):
            layers = [torch.nn.Linear({SIDE}, {SIDE}, bias=False) for _ in range(depth)]
        self.layers = torch.nn.ModuleList(layers)

def load(path, depth):
    model = Chain(depth)
    model.load_state_dict(state(path), assign=True)
    return model

def use(model):
    return sum(float(p.detach().sum()) for p in model.parameters())
"""

SAFETENSORS = f"""
import safetensors.torch
{TORCH}
def state(path):
    return safetensors.torch.load_file(path)
"""

TORCH_LOAD = f"""
{TORCH}
def state(path):
    return torch.load(path, weights_only=True)
"""

TORCH_MAPPED = f"""
{TORCH}
def state(path):
    return torch.load(path, weights_only=True, mmap=True)
"""

ROWS = (
    ("burnish, .safetensors", BURNISH, "model.safetensors"),
    ("safetensors.torch.load_file", SAFETENSORS, "model.safetensors"),
    ("burnish, .pt", BURNISH, "model.pt"),
    ("torch.load", TORCH_LOAD, "model.pt"),
    ("torch.load, mmap=True", TORCH_MAPPED, "model.pt"),
)


def write(folder: Path, depth: int) -> None:
    """The same weights in both formats."""
    import numpy as np

    from burnish import serialize

    one = np.linspace(-1, 1, SIDE * SIDE, dtype=np.float32).reshape(SIDE, SIDE)
    state = {f"layers.{i}.weight": one + i for i in range(depth)}
    for name in ("model.safetensors", "model.pt"):
        serialize.save_file(state, folder / name)


def measure(program: str, path: Path, depth: int) -> list[float]:
    """Seconds to load, and to use; MB of own pages, and of all; the sum."""
    run = [sys.executable, "-c", MEASURE + program + RUN, str(path), str(depth)]
    done = subprocess.run(run, capture_output=True, text=True, check=True)
    numbers: list[float] = json.loads(done.stdout)
    return numbers


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mb", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    depth = max(1, round(options.mb / LAYER))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder, depth)
        found: dict[str, list[list[float]]] = {label: [] for label, *_ in ROWS}
        for _ in range(options.rounds):
            for label, program, file in ROWS:
                found[label].append(measure(program, folder / file, depth))
    print(f"{depth * LAYER:.0f} MB of weights, least of {options.rounds} rounds")
    print(f"{'':28}{'load':>10}{'and use':>10}{'own MB':>9}{'all MB':>9}")
    for label, rounds in found.items():
        assert len({round(numbers[4], 1) for numbers in rounds}) == 1
        load, used, own, every = (min(n[at] for n in rounds) for at in range(4))
        print(f"{label:28}{load:9.3f}s{used:9.3f}s{own:9.0f}{every:9.0f}")


if __name__ == "__main__":
    main()
