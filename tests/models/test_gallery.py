"""The gallery's sources are current, and their numbers are onnxruntime's."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest

from burnish.codegen.pipeline import Generated, write
from burnish.models import _numbers, regenerate
from burnish.models._gallery import BY_MODULE, ENTRIES, Entry, generated, weights
from burnish.models._originals import OriginalError
from burnish.nn import Module
from tests.harness.both_forms import both_forms, same_numbers

TOLERANCE = 1e-4
_SHA256 = re.compile(r"\b[0-9a-f]{64}\b")
_made: dict[str, Generated] = {}


def made(entry: Entry) -> Generated:
    """The generator's output for the original, or a skipped test."""
    if not entry.file.is_file():
        pytest.skip(f"{entry.original} is not in the cache; run: {entry.command}")
    if entry.module not in _made:
        _made[entry.module] = generated(entry)
    return _made[entry.module]


def loaded(entry: Entry, folder: Path) -> Module:
    """The checked-in source, with the original's weights."""
    write(made(entry), folder)
    model: Module = entry.model().from_file(folder / f"{entry.module}.safetensors")
    return model


def outputs(model: Module, entry: Entry) -> list[dict[str, np.ndarray]]:
    """For each call every output by its name."""
    found = []
    expected = _numbers.expected(entry)
    for feed, names in zip(_numbers.feeds(entry.folder), expected, strict=True):
        result = model(*feed.values())
        values = result if isinstance(result, tuple) else (result,)
        arrays = map(np.asarray, values)
        found.append(dict(zip(names, arrays, strict=True)))
    return found


every_entry = pytest.mark.parametrize("entry", ENTRIES, ids=lambda e: e.module)


@every_entry
def test_the_source_is_what_the_original_gives(entry: Entry) -> None:
    written, text = entry.source.read_text("utf-8"), made(entry).text
    if entry.script == "export":  # builds of torch write their own versions into it
        written, text = (_SHA256.sub("", each) for each in (written, text))
    assert written == text


@every_entry
def test_the_numbers_are_those_of_onnxruntime(entry: Entry, tmp_path: Path) -> None:
    model = loaded(entry, tmp_path)
    calls = _numbers.expected(entry)
    for found, expected in zip(outputs(model, entry), calls, strict=True):
        assert _numbers.difference(found, expected) < TOLERANCE


@every_entry
def test_the_flat_form_has_the_same_numbers(entry: Entry, tmp_path: Path) -> None:
    made(entry)
    models = both_forms(entry.file, tmp_path)
    for feed in _numbers.feeds(entry.folder):
        same_numbers(models, list(feed.values()))


@pytest.mark.parametrize("folder", ["squeezenet", "resnet18"])
def test_both_exporters_files_give_the_same(folder: str, tmp_path: Path) -> None:
    pair = [BY_MODULE[f"{folder}_{by}"] for by in ("dynamo", "torchscript")]
    one, other = (outputs(loaded(entry, tmp_path), entry)[0] for entry in pair)
    scale = np.abs(one["logits"]).max()
    assert np.abs(one["logits"] - other["logits"]).max() < 1e-5 * scale


@every_entry
def test_the_check_numbers_are_small_and_whole(entry: Entry) -> None:
    assert entry.numbers.stat().st_size < 50_000
    for call in _numbers.expected(entry):
        assert call
        for digest in call.values():
            assert 0 < digest.sample.size <= _numbers.KEPT
            assert np.isfinite(digest.sample).all()


def test_a_wrong_number_is_reported() -> None:
    right = np.linspace(-2, 2, 12).reshape(3, 4)
    digests = {"y": _numbers.Digest.of(right)}
    assert _numbers.difference({"y": right}, digests) == 0
    assert _numbers.difference({"y": right + 2e-3}, digests) == pytest.approx(1e-3)
    assert _numbers.difference({"y": right.T}, digests) == np.inf
    assert _numbers.difference({"z": right}, digests) == np.inf


def test_weights_are_written_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    entry = BY_MODULE["attacut"]
    made(entry)  # or skipped
    content = entry.file.read_bytes()
    monkeypatch.setenv("BURNISH_CACHE_DIR", str(tmp_path))
    entry.file.parent.mkdir(parents=True)
    entry.file.write_bytes(content)
    path = weights("attacut")
    assert path.is_relative_to(tmp_path)
    assert "writing" in capsys.readouterr().err
    assert weights("attacut") == path
    assert capsys.readouterr().err == ""
    path.with_suffix(".py").write_text("an older source")
    weights("attacut")
    assert "writing" in capsys.readouterr().err


def test_weights_that_cannot_be_had_are_one_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BURNISH_CACHE_DIR", str(tmp_path))
    monkeypatch.setitem(sys.modules, "burnish.codegen.pipeline", None)
    with pytest.raises(OriginalError, match=r"pip install 'burnish\[codegen\]'"):
        weights("attacut")
    monkeypatch.undo()
    monkeypatch.setenv("BURNISH_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(sys, "executable", "false")
    with pytest.raises(OriginalError, match="it wrote no such file"):
        weights("attacut")


def test_the_command_says_what_is_current(capsys: pytest.CaptureFixture[str]) -> None:
    assert regenerate.main(["--check", "mnist"]) == 0
    assert capsys.readouterr().out.split() == ["mnist/mnist.py", "current"]
    with pytest.raises(SystemExit):
        regenerate.main(["no_such_model"])
