"""Output of the gallery's scripts, as a user sees it."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from burnish.models import _pictures
from burnish.models._gallery import BY_MODULE
from burnish.models._originals import OriginalError, cache_folder
from burnish.models.minilm._wordpiece import WordPiece, words
from burnish.serialize import load_file

Run = Callable[..., list[str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a script as a program; the lines it prints."""

    def call(module: str, *arguments: str) -> list[str]:
        monkeypatch.setattr(sys, "argv", [module, *arguments])
        with pytest.raises(SystemExit) as ended:
            runpy.run_module(f"burnish.models.{module}", run_name="__main__")
        captured = capsys.readouterr()
        assert ended.value.code == 0, captured.err
        return captured.out.splitlines()

    return call


def needs(folder: str, *files: str, script: str = "fetch") -> None:
    """Skip where an original is not in the cache."""
    for file in files:
        if not cache_folder(folder).joinpath(file).is_file():
            pytest.skip(
                f"{file} is not in the cache; run: "
                f"python -m burnish.models.{folder}.{script}"
            )


def test_mnist_reads_digits(run: Run) -> None:
    lines = run("mnist.infer", "--count=2")
    assert "it is 7" in lines[14]
    assert lines[-1] == "98.0% of 1,000 digits are right"


def test_minilm_ranks_by_meaning(run: Run) -> None:
    needs("minilm", "model.safetensors", "vocab.txt")
    lines = run(
        "minilm.infer",
        "--query=A man is eating food.",
        "The girl is carrying a baby.",
        "Someone eats a meal.",
    )
    assert lines[1].endswith("Someone eats a meal.")
    assert float(lines[1].split()[0]) > 0.7 > 0.1 > float(lines[2].split()[0])


def test_minilm_in_eight_bits_ranks_the_same(run: Run, tmp_path: Path) -> None:
    needs("minilm", "model.safetensors", "vocab.txt")
    file = tmp_path / "small.safetensors"
    lines = run("minilm.quantize", f"--out={file}")
    whole = (cache_folder("minilm") / "model.safetensors").stat().st_size
    assert file.stat().st_size < 0.3 * whole
    assert lines[-1] == "the ranking is the same"


def test_the_weights_of_the_package_are_those_of_the_onnx_file() -> None:
    entry = BY_MODULE["minilm"]
    needs("minilm", "model.safetensors")
    needs("minilm", "minilm.onnx", script="export")
    from burnish.codegen.pipeline import generate

    package = load_file(cache_folder("minilm") / "model.safetensors")
    for weight in generate(entry.file).weights:
        np.testing.assert_array_equal(package[weight.path], weight.read())


def test_silero_hears_the_voice(run: Run) -> None:
    needs("silero_vad", "silero_vad_op18_ifless.onnx")
    lines = run("silero_vad.infer")
    right, _, windows = lines[-1].split()[:3]
    assert int(right) / int(windows) > 0.95


def test_attacut_splits_thai(run: Run) -> None:
    needs("attacut", "attacut-sc.onnx", "attacut-sc-syllables.json")
    assert run("attacut.infer")[0] == "วัน|นี้|อากาศ|ดี|มาก|ฉัน|ไป|ตลาด"


def test_open_nsfw_finds_a_sunset_safe(run: Run) -> None:
    needs("open_nsfw", "open_nsfw.onnx")
    lines = run("open_nsfw.infer")
    assert len(lines) == 2
    for line in lines:
        assert float(line.split()[-1]) < 0.2


def test_words() -> None:
    assert list(words("Héllo, WORLD!\t日本\x00x")) == [
        "hello", ",", "world", "!", "日", "本", "x",
    ]  # fmt: skip


@pytest.mark.oracle("transformers")
def test_tokens_are_those_of_the_tokenizers_library() -> None:
    needs("minilm", "tokenizer.json", "vocab.txt")
    from tokenizers import Tokenizer

    folder = cache_folder("minilm")
    theirs = Tokenizer.from_file(str(folder / "tokenizer.json"))
    theirs.no_truncation()
    theirs.no_padding()
    ours = WordPiece((folder / "vocab.txt").read_text("utf-8").splitlines())
    for text in (
        "The girl is carrying a baby, and it is raining outside.",
        "naïve façade ÅNGSTRÖM — “quoted” e.g. $3.50 (50%)",
        "日本語 and 한국어, emoji 🙂 and\ttabs\nnewlines",
        "antidisestablishmentarianism " + "x" * 120,
        "",
    ):
        assert ours(text) == theirs.encode(text).ids


@pytest.mark.parametrize("name", ["squeezenet", "resnet18"])
def test_fine_tuning_the_last_layer_leaves_the_rest(
    name: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent(module: str) -> Path:
        raise OriginalError("no original")

    monkeypatch.setattr(_pictures, "weights", absent)
    out = tmp_path / "tuned.safetensors"
    lines = run(f"{name}.train", "--steps=2", "--batch=2", f"--out={out}")
    losses = [float(line.split()[-1]) for line in lines if line.startswith("step")]
    assert len(losses) == 2
    assert np.isfinite(losses).all()
    saved = load_file(out)
    if name == "resnet18":
        assert saved["fc.weight"].shape == (4, 512)
        assert any("running statistics moved" in line for line in lines)
        assert np.abs(saved["bn1.running_mean"]).max() > 0
    else:
        assert saved["classifier.1.weight"].shape == (4, 512, 1, 1)
