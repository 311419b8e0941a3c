"""The digit classifier of the gallery: its source is current, its script works."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from burnish.codegen.pipeline import generate
from burnish.models.mnist import train
from burnish.serialize import load_file, to_bytes

FOLDER = Path(train.__file__).parent


def test_the_source_is_what_the_file_gives() -> None:
    generated = generate(FOLDER / "mnist.onnx")
    assert (FOLDER / "mnist.py").read_text("utf-8") == generated.text
    weights = {entry.path: entry.read() for entry in generated.weights}
    assert to_bytes(load_file(FOLDER / "mnist.safetensors")) == to_bytes(weights)


def test_the_script_teaches_it_black_ink_on_white_paper(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "tuned.safetensors"
    monkeypatch.setattr(sys, "argv", ["train", "--epochs=2", f"--out={out}"])
    train.main()
    printed = capsys.readouterr().out.split()
    before, after = (
        float(printed[printed.index(when) + 1].rstrip("%"))
        for when in ("before:", "after:")
    )
    assert before < 50 < 80 < after
    assert load_file(out).keys() == load_file(FOLDER / "mnist.safetensors").keys()
