"""Compiled networks beside onnxruntime and PyTorch: inference.

    python benchmarks/compiled.py [--threads 1,2] [--batch 1] [--only TEXT,TEXT]
        [--contenders compiled,rounded,bf16,onnxruntime,plain,torch,torch.bf16,
        torch.compile]
        [--rounds 7] [--files FOLDER] [--json FILE] [--patience 2] [--own-time]

Networks are those of `workloads.py`, exported once into FOLDER, and the gallery's whose
original is in the cache. Each contender is a process of its own, asked in turn; before
every sample all wait for idle processors, so many seconds at most. What is printed: the
median of the lower third of each one's samples (the processor's own time with
--own-time, for one thread), every other contender's time divided by the compiled one's,
and how far its numbers are from onnxruntime's, of their scale; at the end the geometric
means.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from race import Run, means, race
from workloads import WORKLOADS, make

CONTENDERS = (
    *("compiled", "rounded", "bf16", "onnxruntime", "plain"),
    *("torch", "torch.bf16", "torch.compile"),
)
COMPILED: dict[str, dict[str, Any]] = {
    "compiled": {},
    "rounded": {"tolerance": 1e-5},
    "bf16": {"precision": "bf16"},
}
"""What the compiled ones may round more than a sum does: see `burnish.compile`."""
GALLERY = ("mnist", "silero_vad", "attacut", "open_nsfw")


def gallery_run(kind: str, name: str, threads: int) -> Run:
    """A model of the gallery; its original is what onnxruntime runs."""
    from burnish.models._gallery import BY_MODULE
    from burnish.models._numbers import feeds

    entry = BY_MODULE[name]
    return file_run(kind, entry.file, feeds(entry.folder)[0], threads)


def file_run(kind: str, file: Path, feed: dict[str, Any], threads: int) -> Run:
    """An ONNX file in onnxruntime, or as generated source."""
    if kind == "onnxruntime":
        return onnx_run(file, feed, threads)
    import burnish
    from burnish import Tensor

    model = generated(file)
    given = [Tensor(array) for array in feed.values()]
    burnish.set_num_threads(threads)
    run = model
    if kind in COMPILED:
        run = burnish.compile(model, **COMPILED[kind])
    return lambda: run(*given)


def onnx_run(file: Path, feed: dict[str, Any], threads: int) -> Run:
    """An ONNX file in onnxruntime."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(
        file, options, providers=["CPUExecutionProvider"]
    )
    return lambda: session.run(None, feed)


def generated(file: Path) -> Any:
    """The model of an ONNX file's generated source."""
    from burnish.codegen.pipeline import Options, generate, write

    with tempfile.TemporaryDirectory() as folder:
        write(generate(file, Options(name="benchmarked")), Path(folder))
        sys.path.insert(0, folder)
        import benchmarked

        return benchmarked.Model.from_file()


def torch_run(kind: str, name: str, batch: int, threads: int) -> Run:
    """A network in PyTorch."""
    import torch

    torch.set_num_threads(threads)
    model, given = make(name, batch)
    if kind == "torch.compile":
        model = torch.compile(model)

    half = torch.autocast("cpu", torch.bfloat16, enabled=kind == "torch.bf16")

    def run() -> Any:
        with torch.inference_mode(), half:
            return model(*given.values())

    return run


def made(kind: str, name: str, setting: dict[str, Any]) -> tuple[Run, Any]:
    """What a contender runs, and its first result."""
    import numpy as np

    threads, batch = setting["threads"], setting["batch"]
    if name in GALLERY:
        run = gallery_run(kind, name, threads)
    elif kind.startswith("torch"):
        run = torch_run(kind, name, batch, threads)
    else:
        file = Path(setting["files"], f"{name}-b{batch}.onnx")
        run = file_run(kind, file, dict(np.load(file.with_suffix(".npz"))), threads)
    return run, result_of(run())


def result_of(made: Any) -> Any:
    """The first array of what a run gives."""
    import numpy as np

    while isinstance(made, tuple | list):
        made = made[0]
    if hasattr(made, "bfloat16"):  # of PyTorch, whose bfloat16 is none of NumPy's
        made = made.float()
    return np.asarray(getattr(made, "data", made))


def apart(one: Any, other: Any) -> float:
    """How far two results are apart, of their scale."""
    return float(abs(one - other).max() / max(1e-6, abs(other).max()))


def compared(name: str, kinds: list[str], setting: dict[str, Any]) -> dict[str, Any]:
    """Each contender's seconds, or why it has none; how far numbers are apart."""
    took, firsts, failed = race(made, name, kinds, setting)
    found: dict[str, Any] = {**failed, **took}
    if {"compiled", "onnxruntime"} <= set(took):
        found["apart"] = apart(firsts["compiled"], firsts["onnxruntime"])
    return found


def exported(folder: Path, name: str, batch: int) -> str:
    """Make a network's file if there is none; why there is none, else ""."""
    if (folder / f"{name}-b{batch}.npz").is_file():
        return ""
    script = Path(__file__).with_name("workloads.py")
    words = [sys.executable, str(script), str(folder), name, str(batch)]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode == 0:
        return ""
    return (done.stderr.strip().splitlines() or ["no message"])[-1]


def table(options: argparse.Namespace) -> list[dict[str, Any]]:
    """A line for each network, threads and batch, printed as they come."""
    kinds = options.contenders.split(",")
    wanted = options.only.split(",") if options.only else [""]
    names = [n for n in (*GALLERY, *WORKLOADS) if any(w in n for w in wanted)]
    rows = []
    for name in names:
        for batch in map(int, options.batch.split(",")):
            if name in GALLERY:
                if batch != 1 or not in_cache(name):
                    continue
            elif why := exported(options.files, name, batch):
                print(f"{name:18} is not exported: {why}", flush=True)
                continue
            for threads in map(int, options.threads.split(",")):
                setting = {"threads": threads, "batch": batch}
                setting |= {"files": str(options.files), "rounds": options.rounds}
                setting |= {"patience": options.patience, "chunks": 4}
                setting |= {"own_time": options.own_time}
                own = [k for k in kinds if name not in GALLERY or "torch" not in k]
                took = compared(name, own, setting)
                row = {"name": name, "batch": batch, "threads": threads, **took}
                print(shown(row, kinds), flush=True)
                rows.append(row)
    return rows


def in_cache(name: str) -> bool:
    from burnish.models._gallery import BY_MODULE

    return BY_MODULE[name].file.is_file()


def shown(row: dict[str, Any], kinds: list[str]) -> str:
    cells, ratios, notes = [], [], []
    for kind in kinds:
        took = row.get(kind)
        known = isinstance(took, float)
        cells.append(f"{took * 1e3:9.3f}ms" if known else f"{'-':>11}")
        if isinstance(took, str):
            notes.append(f"{kind}: {took}")
        if kind != "compiled":
            both = known and isinstance(row.get("compiled"), float)
            ratios.append(f"{took / row['compiled']:6.2f}" if both else f"{'-':>6}")
    differ = f"  {row['apart']:.0e}" if "apart" in row else ""
    head = f"{row['name']:16} b{row['batch']:<2} {row['threads']:2}t"
    return f"{head} {' '.join(cells)} {''.join(ratios)}{differ} {'; '.join(notes)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--batch", default="1")
    parser.add_argument("--only", default="")
    parser.add_argument("--contenders", default="compiled,onnxruntime")
    parser.add_argument("--rounds", type=int, default=7)
    default = Path(tempfile.gettempdir(), "burnish-benchmarks")
    parser.add_argument("--files", type=Path, default=default)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--patience", type=float, default=2.0)
    parser.add_argument("--own-time", action="store_true")
    options = parser.parse_args()
    options.files.mkdir(parents=True, exist_ok=True)
    kinds = options.contenders.split(",")
    if unknown := set(kinds) - set(CONTENDERS):
        parser.error(f"--contenders: expected some of {CONTENDERS}, got {unknown}")
    print(f"{'':24} " + " ".join(f"{kind:>11}" for kind in kinds) + "  ratios, apart")
    rows = table(options)
    print(means(rows, "compiled", kinds))
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
