"""Weights that travel with the package: every form, also from a zip; changed ones."""

from __future__ import annotations

import base64
import importlib
import json
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from burnish.codegen.cli import main
from burnish.codegen.output import stored
from burnish.errors import RecordError
from tests.harness.projects import net

Captured = pytest.CaptureFixture[str]

X = np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4)

#: By name: options, and how far the outputs may be from those of the full weights.
FORMS = {
    "full": ([], 0.0),
    "half": (["--half"], 1e-2),
    "8 bits": (["--quantize", "q8"], 5e-2),
    "4 bits": (["--quantize", "q4"], 5e-1),
    "half and 8 bits": (["--half", "--quantize", "q8"], 5e-2),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The current folder, with net.onnx; what is imported from it is forgotten."""
    net(tmp_path / "net.onnx")
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    for name in [name for name in sys.modules if name.partition(".")[0] == "app"]:
        del sys.modules[name]


def imported(place: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Model of app.net, which lies in a folder or a zip."""
    monkeypatch.syspath_prepend(place)
    return importlib.import_module("app.net").Model


def in_zip(folder: Path) -> Path:
    made = folder / "app.zip"
    with zipfile.ZipFile(made, "w") as archive:
        for path in (folder / "app").iterdir():
            archive.write(path, f"app/{path.name}")
    return made


@pytest.mark.parametrize("zipped", [False, True], ids=["folder", "zip"])
@pytest.mark.parametrize("beside", [False, True], ids=["text", "data"])
@pytest.mark.parametrize("form", FORMS)
def test_every_form(
    form: str,
    beside: bool,
    zipped: bool,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    options, limit = FORMS[form]
    if beside:
        monkeypatch.setattr(stored, "EMBED_AS_TEXT", 0)
    assert main(["generate", "net.onnx", "-o", "app", "--embed", *options]) == 0
    assert (folder / "app/net.safetensors").exists() == beside
    assert main(["check", "app"]) == 0
    place = in_zip(folder) if zipped else folder
    got = imported(place, monkeypatch).from_embedded()(X).numpy()
    weight, bias = (_original(name) for name in ("weight", "bias"))
    expected = np.maximum(X @ weight.T + bias, 0)
    assert got.dtype == np.float32
    distance = np.abs(got - expected).max() / np.abs(expected).max()
    assert distance <= max(limit, 1e-6)
    assert limit == 0 or distance > 0, "the weights are not the full ones"


def _original(name: str) -> np.ndarray:
    import onnx
    from onnx import numpy_helper

    tensors = {t.name: t for t in onnx.load("net.onnx").graph.initializer}
    return numpy_helper.to_array(tensors[name])


def test_changed_text_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    main(["generate", "net.onnx", "-o", "app", "--embed"])
    source = folder / "app/net.py"
    text = source.read_text()
    held = text.partition('WEIGHTS = """\n')[2].rstrip('"\n')
    data = bytearray(base64.b64decode(held))
    data[-1] ^= 1
    changed = base64.b64encode(data).decode()
    source.write_text(text.replace(held, changed))
    with pytest.raises(RecordError, match=r"WEIGHTS of app.net: .* sha256 has changed"):
        imported(folder, monkeypatch).from_embedded()


@pytest.mark.parametrize("zipped", [False, True], ids=["folder", "zip"])
def test_changed_data_is_refused(
    zipped: bool, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    main(["generate", "net.onnx", "-o", "app"])
    stored = folder / "app/net.safetensors"
    data = bytearray(stored.read_bytes())
    data[-1] ^= 1
    stored.write_bytes(data)
    kind = imported(in_zip(folder) if zipped else folder, monkeypatch)
    with pytest.raises(RecordError, match=r"net.safetensors: .* sha256 has changed"):
        kind.from_embedded()
    assert kind.from_file() is not None, "whoever asks for the file gets it"


def test_weights_that_training_made_are_embedded_too(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    main(["generate", "net.onnx", "-o", "app"])
    model = imported(folder, monkeypatch).from_file()
    model.map(lambda path, tensor: tensor.numpy() * 2)
    model.save_file(folder / "app/net.safetensors")
    again = imported(folder, monkeypatch).from_embedded()
    np.testing.assert_array_equal(again(X).numpy(), model(X).numpy())


def test_verify_reports_the_error_of_fewer_bits(folder: Path, capsys: Captured) -> None:
    found = {}
    for bits in ("q8", "q4"):
        main(["generate", "net.onnx", "-o", bits, "--embed", "--quantize", bits])
        capsys.readouterr()
        assert main(["verify", "net.onnx", bits, "--json"]) == 0
        printed = capsys.readouterr()
        (output,) = json.loads(printed.out)["outputs"]
        found[bits] = output["max_rel"]
        assert f"note: weights in {bits[1]} bits" in printed.err
    assert 0 < found["q8"] < found["q4"]


def test_a_weights_file_as_the_model_is_not_taken_for_its_quantized_self(
    folder: Path,
) -> None:
    main(["generate", "net.onnx", "-o", "first"])
    stored = folder / "first/net.safetensors"
    before = stored.read_bytes()
    words = ["generate", str(stored), "-o", "first", "--quantize", "q8"]
    assert main(words) == 2
    assert stored.read_bytes() == before
