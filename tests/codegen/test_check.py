"""`burnish check`: generated files against the model files that they name."""

import hashlib
from pathlib import Path

import pytest

from burnish.codegen.cli import main
from burnish.codegen.tools.check import check, header_of

MODEL = b"the bytes of a model"


def generated(folder: Path, name: str = "net", model: bytes = MODEL) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.py"
    path.write_text(
        f'"""Net.\n\nImported from {name}.onnx (opset 17), sha256\n'
        f"{hashlib.sha256(model).hexdigest()};\nweights in {name}.safetensors; options:"
        ' --half.\n"""\n'
    )
    return path


def states(*paths: Path, source: Path) -> dict[str, str]:
    return {result.path.name: result.state for result in check(paths, source)}


def test_header_survives_line_breaks(tmp_path: Path) -> None:
    header = header_of(generated(tmp_path))
    assert header is not None
    assert header.model == "net.onnx"
    assert header.sha256 == hashlib.sha256(MODEL).hexdigest()
    assert header.options == "--half"


def test_a_file_name_that_a_docstring_cannot_hold(tmp_path: Path) -> None:
    path = generated(tmp_path)
    path.write_text(path.read_text().replace("net.onnx", "n_t __.onnx"))
    (tmp_path / 'n"t  (.onnx').write_bytes(MODEL)
    assert states(tmp_path, source=tmp_path) == {"net.py": "missing"}
    (tmp_path / 'n"t ((.onnx').write_bytes(MODEL)
    assert states(tmp_path, source=tmp_path) == {"net.py": "current"}


def test_current_stale_and_missing(tmp_path: Path) -> None:
    for name in ("same", "changed", "gone"):
        generated(tmp_path / "app", name)
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "same.onnx").write_bytes(MODEL)
    (tmp_path / "app" / "changed.onnx").write_bytes(b"other bytes")
    assert states(tmp_path / "app", source=tmp_path / "files") == {
        "changed.py": "stale",
        "gone.py": "missing",
        "same.py": "current",
    }


def test_any_file_of_the_name_will_do(tmp_path: Path) -> None:
    generated(tmp_path / "app")
    for folder, content in (("old", b"old"), ("new", MODEL)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "net.onnx").write_bytes(content)
    assert states(tmp_path / "app", source=tmp_path) == {"net.py": "current"}


def test_a_generated_file_that_is_no_python_any_more(tmp_path: Path) -> None:
    path = generated(tmp_path)
    path.write_text(path.read_text() + "def (")
    assert states(tmp_path, source=tmp_path) == {"net.py": "unreadable"}


@pytest.mark.parametrize("folder", [".hidden", "env", "node_modules"])
def test_folders_that_are_not_the_users_source(tmp_path: Path, folder: str) -> None:
    generated(tmp_path / folder / "lib")
    if folder == "env":
        (tmp_path / folder / "pyvenv.cfg").touch()
    (tmp_path / "own.py").write_text('"""Not generated."""\n')
    assert states(tmp_path, source=tmp_path) == {}


def test_a_file_named_twice_is_told_once(tmp_path: Path) -> None:
    path = generated(tmp_path)
    (tmp_path / "net.onnx").write_bytes(MODEL)
    assert len(list(check([path, tmp_path], tmp_path))) == 1


def test_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    generated(tmp_path)
    (tmp_path / "net.onnx").write_bytes(MODEL)
    assert main(["check"]) == 0
    assert capsys.readouterr().out == "net.py: current\n"
    (tmp_path / "net.onnx").write_bytes(b"new")
    assert main(["check"]) == 1
    assert capsys.readouterr().out == "net.py: stale, net.onnx has changed\n"
    assert main(["check", "nowhere"]) == 2
    assert "nowhere" in capsys.readouterr().err
