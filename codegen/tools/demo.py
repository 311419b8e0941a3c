"""The steps of `burnish demo`, through the public API."""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from contextlib import ExitStack
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from burnish import nn, seed
from burnish.codegen import pipeline, verify
from burnish.codegen.errors import VerifyError
from burnish.codegen.loaded import imported
from burnish.codegen.tools import console
from burnish.models.mnist import train

EPOCHS = 5


def print_steps(keep: Path | None = None) -> None:
    """Generate, show, verify, use, fine-tune, save and load one small network.

    keep: the folder for the files; None works in one that is removed at the end.
    """
    started = time.perf_counter()
    with ExitStack() as stack:
        if keep is None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        else:
            folder = keep
            folder.mkdir(parents=True, exist_ok=True)
        original = folder / "mnist.onnx"
        shipped = resources.files("burnish.models.mnist").joinpath("mnist.onnx")
        with shipped.open("rb") as source, original.open("wb") as target:
            shutil.copyfileobj(source, target)

        _generate(original, folder)
        _verify(original, folder)
        model_class = stack.enter_context(imported(folder / "mnist.py")).Model
        model = model_class.from_file()
        images, labels = train.digits("test")
        _classify(model, images, labels)
        tuned = _fine_tune(model, images, labels)
        _reload(model_class, tuned, folder / "tuned.safetensors", 1 - images, labels)
    _end(keep, time.perf_counter() - started)


def _generate(original: Path, folder: Path) -> None:
    console.heading("1  An ONNX file becomes Python source")
    print(f"$ burnish generate {original.name} -o .\n")
    with console.progress() as listen:
        generated = pipeline.generate(original, progress=listen)
        files = pipeline.write(generated, folder)
    console.python(generated.text)
    print()
    for path in files:
        print(f"wrote {path.name}, {path.stat().st_size:,} bytes")


def _verify(original: Path, folder: Path) -> None:
    console.heading("2  The source computes what the file computes")
    print(f"$ burnish verify {original.name} .\n")
    report = verify.verify(original, folder)
    console.comparison(report)
    if not report.agrees:
        raise VerifyError(f"{report.module}: the numbers of the demo do not agree")


def _classify(model: nn.Module, images: np.ndarray, labels: np.ndarray) -> None:
    console.heading("3  It reads digits")
    print(">>> Model.from_file()")
    print(model)
    print()
    _show(model, images)
    score = train.score(model, images, labels)
    print(f"\n{score:.1%} of {len(images):,} test digits are right")


def _fine_tune(model: nn.Module, images: np.ndarray, labels: np.ndarray) -> nn.Module:
    console.heading("4  It learns something new: black ink on white paper")
    ink = 1 - images
    _show(model, ink)
    before = train.score(model, ink, labels)
    print(f"\nbefore: {before:.1%}")
    seed(0)
    tuned = model.train()
    examples, answers = train.digits("train")
    steps = EPOCHS * -(-len(examples) // train.BATCH)
    started = time.perf_counter()
    with console.progress() as listen:
        for step in train.fine_tune(tuned, 1 - examples, answers, EPOCHS):
            listen("fine-tuning", step.index + 1, steps)
    took = time.perf_counter() - started
    print(f"{steps} steps of {train.BATCH} digits in {took:.1f} s")
    return tuned.valid()


def _reload(
    model_class: Any, tuned: nn.Module, path: Path, ink: np.ndarray, labels: np.ndarray
) -> None:
    console.heading("5  What it learned is a file")
    print(f'>>> model.save_file("{path.name}")')
    tuned.save_file(path)
    print(f'>>> model = Model.from_file("{path.name}")\n')
    again = model_class.from_file(path)
    _show(again, ink)
    print(f"\nafter: {train.score(again, ink, labels):.1%}")


def _show(model: nn.Module, images: np.ndarray) -> None:
    """A few digits, cropped, with the model's predictions."""
    some = images[:8]
    logits = model(train.normalised(some)).numpy()
    shares = np.exp(logits - logits.max(1, keepdims=True))
    shares /= shares.sum(1, keepdims=True)
    captions = [f"{row.argmax()}  ({row.max():.1%})" for row in shares]
    console.pictures(some[:, 2:28, 2:26], captions)


def _end(keep: Path | None, seconds: float) -> None:
    console.heading(
        f"That took {seconds:.1f} s, on {Path(sys.executable).name} and NumPy"
    )
    if keep is None:
        print("burnish demo --keep DIR keeps the files to play with")
    else:
        console.line(f"the files are in {keep}")
    print("next: burnish inspect YOUR_MODEL.onnx")
