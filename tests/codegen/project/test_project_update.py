"""A project's modules: generated, left alone where nothing changed, checked."""

from __future__ import annotations

import hashlib
import importlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from burnish.codegen.cli import main
from burnish.codegen.errors import ConversionError, ReadError
from burnish.codegen.project import tables, update
from tests.harness.projects import net, project

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A project, and the current folder; its package can be imported."""
    monkeypatch.chdir(project(tmp_path))
    monkeypatch.syspath_prepend(tmp_path / "src")
    yield tmp_path
    for name in [name for name in sys.modules if name.partition(".")[0] == "my_app"]:
        del sys.modules[name]


def model() -> Any:
    """The class that was generated."""
    return importlib.import_module("my_app.net").Model


def generated(root: Path, **settings: Any) -> list[update.Updated]:
    found = tables.read(root)
    return update.up_to_date(found, update.modules(found, **settings))


def test_a_project_is_generated_by_its_tables(root: Path, capsys: Captured) -> None:
    assert main(["generate"]) == 0
    printed = capsys.readouterr().out.split()
    assert printed == ["src/my_app/net.py", "src/my_app/net.safetensors"]
    assert model().from_file().num_params == 15


def test_nothing_is_written_where_nothing_changed(root: Path, capsys: Captured) -> None:
    main(["generate"])
    files = sorted((root / "src").rglob("*"))
    before = [file.stat().st_mtime_ns for file in files]
    assert generated(root)[0].written == ()
    assert sorted((root / "src").rglob("*")) == files
    assert [file.stat().st_mtime_ns for file in files] == before
    capsys.readouterr()
    assert main(["generate"]) == 0
    assert capsys.readouterr().err == "my_app.net: is up to date\n"


def test_other_weights_are_written(root: Path) -> None:
    generated(root)
    net(root / "assets" / "net.onnx", seed=1)
    assert [path.name for path in generated(root)[0].written] == [
        "net.py",
        "net.safetensors",
    ]


def test_a_checkout_with_other_line_ends_is_the_same(root: Path) -> None:
    generated(root)
    source = root / "src/my_app/net.py"
    source.write_bytes(source.read_bytes().replace(b"\n", b"\r\n"))
    assert generated(root)[0].written == ()


@pytest.mark.parametrize("folder", ["new", "my_app/deep/er"])
def test_a_new_folder_is_a_package(root: Path, folder: str) -> None:
    text = (root / "pyproject.toml").read_text()
    module = folder.replace("/", ".")
    (root / "pyproject.toml").write_text(text.replace("my_app.net", f"{module}.net"))
    generated(root)
    assert (root / "src" / folder / "__init__.py").is_file()
    assert generated(root)[0].written == ()


def test_edited_source_stays_and_the_message_says_how_to_continue(
    root: Path, capsys: Captured
) -> None:
    generated(root)
    source = root / "src/my_app/net.py"
    source.write_text(edited := source.read_text() + "\n# mine\n")
    net(root / "assets" / "net.onnx", seed=1)
    with pytest.raises(ConversionError, match="burnish generate --merge") as caught:
        generated(root)
    assert str(source) in str(caught.value)
    assert source.read_text() == edited
    assert main(["generate"]) == 1
    assert "--merge" in capsys.readouterr().err
    assert main(["generate", "--diff"]) == 0
    assert "-# mine" in capsys.readouterr().out
    assert source.read_text() == edited
    assert main(["generate", "--force"]) == 0
    assert (root / "src/my_app/net.py.bak").read_text() == edited


def test_merging_keeps_the_edits(root: Path) -> None:
    generated(root)
    source = root / "src/my_app/net.py"
    source.write_text(source.read_text() + "\n# mine\n")
    net(root / "assets" / "net.onnx", seed=1)
    assert main(["generate", "--merge"]) == 0
    text = source.read_text()
    assert "# mine" in text
    digest = hashlib.sha256((root / "assets/net.onnx").read_bytes()).hexdigest()
    assert digest in text


def test_what_others_wrote_stays(root: Path) -> None:
    own = root / "src/my_app/net.py"
    own.write_text("print('mine')\n")
    with pytest.raises(ConversionError, match="not written by Burnish"):
        generated(root)
    assert own.read_text() == "print('mine')\n"


# --- pins, dtype, weights ---


def test_a_pin_lets_its_model_through_and_no_other(root: Path) -> None:
    digest = hashlib.sha256((root / "assets/net.onnx").read_bytes()).hexdigest()
    project(root, f'sha256 = "{digest}"')
    generated(root)
    before = (root / "src/my_app/net.py").read_bytes()
    net(root / "assets" / "net.onnx", seed=1)
    with pytest.raises(ReadError, match=f"sha256: net.onnx: expected {digest}, got"):
        generated(root)
    assert (root / "src/my_app/net.py").read_bytes() == before
    assert main(["check"]) == 1


def test_a_pin_covers_weights_in_a_file_of_their_own(root: Path) -> None:
    net(root / "assets" / "net.onnx", beside=True)
    files = [root / "assets" / name for name in ("net.onnx", "net.onnx.data")]
    digests = [hashlib.sha256(file.read_bytes()).hexdigest() for file in files]
    project(root, f'sha256 = "{digests[0]}"')
    line = (
        f'sha256 = {{ "net.onnx" = "{digests[0]}", "net.onnx.data" = "{digests[1]}" }}'
    )
    with pytest.raises(ReadError) as caught:
        generated(root)
    assert line in str(caught.value)
    project(root, line)
    generated(root)
    changed = bytearray(files[1].read_bytes())
    changed[0] ^= 1
    files[1].write_bytes(changed)
    with pytest.raises(ReadError, match=f"net.onnx.data: expected {digests[1]}"):
        generated(root)


def test_external_weights_are_inputs_too(root: Path) -> None:
    net(root / "assets" / "net.onnx", beside=True)
    (table,) = tables.read(root).models
    names = [path.name for path in update.inputs(table)]
    assert names == ["net.onnx", "net.onnx.data"]
    (module,) = update.modules(tables.read(root))
    assert [path.name for path in module.inputs] == names


@pytest.mark.parametrize(
    ("message", "files", "text"),
    [
        (
            'weights = "file"',
            {"net.py", "net.safetensors"},
            "weights in net.safetensors",
        ),
        ('weights = "embed"', {"net.py"}, "WEIGHTS ="),
        ('weights = "none"', {"net.py"}, "no weights; options: --no-weights"),
        ('dtype = "float16"', {"net.py", "net.safetensors"}, "options: --half"),
        ('dtype = "float32"', {"net.py", "net.safetensors"}, "in net.safetensors."),
    ],
)
def test_what_becomes_of_weights(
    root: Path, message: str, files: set[str], text: str
) -> None:
    project(root, message)
    generated(root)
    folder = root / "src/my_app"
    assert {path.name for path in folder.iterdir()} == files | {"__init__.py"}
    assert text in " ".join((folder / "net.py").read_text().split())
    made = model()() if "none" in message else model().from_embedded()
    assert made(np.ones((1, 4), np.float32)).shape == (1, 3)
    assert main(["check"]) == 0


def test_a_dtype_that_the_weights_do_not_have(root: Path) -> None:
    project(root, 'dtype = "float32"')
    path = root / "assets/net.onnx"
    model = onnx.load(path)
    for tensor in list(model.graph.initializer):
        wide = numpy_helper.to_array(tensor).astype("float64")
        tensor.CopyFrom(numpy_helper.from_array(wide, tensor.name))
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.elem_type = TensorProto.DOUBLE
    onnx.save(helper.make_model(model.graph, opset_imports=model.opset_import), path)
    with pytest.raises(
        ConversionError, match=r"dtype: expected .* float32, got float64"
    ):
        generated(root)


def test_a_model_that_is_not_there(root: Path) -> None:
    (root / "assets/net.onnx").unlink()
    with pytest.raises(ReadError, match=r"number 1 \(my_app.net\): source: expected"):
        generated(root)


# --- check ---


def test_check_looks_at_the_tables(root: Path, capsys: Captured) -> None:
    def message() -> str:
        capsys.readouterr()
        code = main(["check"])
        out = capsys.readouterr().out
        assert code == (not out.startswith("src/my_app/net.py: current"))
        return out

    assert "not generated, run: burnish generate" in message()
    assert main(["check", "--allow", "not-generated"]) == 0
    generated(root)
    assert "current" in message()
    text = (root / "pyproject.toml").read_text()
    (root / "pyproject.toml").write_text(f"{text}typed = true\n")
    assert "stale, pyproject.toml asks for options --typed" in message()
    (root / "pyproject.toml").write_text(text)
    net(root / "assets" / "net.onnx", seed=1)
    assert "stale" in message()
    generated(root)
    (root / "src/my_app/net.safetensors").unlink()
    assert "weights missing" in message()
    capsys.readouterr()
    assert main(["check", "--json"]) == 1
    (file,) = json.loads(capsys.readouterr().out)["files"]
    assert file["state"] == "weights missing"


# --- the command line ---


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--half"], "--half: expected a MODEL beside it"),
        (["--no-simplify"], "--no-simplify: expected a MODEL beside it"),
        (["-o", "x"], "--out: expected a MODEL beside it"),
        (["--watch", "--force"], "--watch: expected no --force"),
        (["assets/net.onnx", "--watch"], "--watch: expected no MODEL"),
        (["assets/net.onnx", "--embed", "--no-weights"], "got --no-weights"),
    ],
)
def test_words_that_do_not_fit(
    root: Path, words: list[str], expected: str, capsys: Captured
) -> None:
    assert main(["generate", *words]) == 2
    assert expected in capsys.readouterr().err
    assert not (root / "src/my_app/net.py").exists()


def test_without_a_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["generate"]) == 2
    assert "expected MODEL, or a pyproject.toml with" in capsys.readouterr().err


def test_watching_follows_the_model_and_the_tables(root: Path) -> None:
    command = [sys.executable, "-m", "burnish.codegen", "generate", "--watch"]
    source = root / "src/my_app/net.py"

    def until(holds: str) -> None:
        end = time.monotonic() + 60
        while not (source.is_file() and holds in source.read_text()):
            assert time.monotonic() < end
            time.sleep(0.1)

    with subprocess.Popen(command, cwd=root, stderr=subprocess.DEVNULL) as process:
        try:
            until("sha256 of this text")
            path = net(root / "assets" / "net.onnx", seed=1)
            until(hashlib.sha256(path.read_bytes()).hexdigest())
            text = (root / "pyproject.toml").read_text()
            (root / "pyproject.toml").write_text("[tool")  # half saved
            time.sleep(1)
            (root / "pyproject.toml").write_text(f"{text}typed = true\n")
            until("--typed")
        finally:
            process.terminate()


def test_the_pre_commit_hook_stops_at_edits_and_changed_models(root: Path) -> None:
    hooks = (Path(__file__).parents[3] / ".pre-commit-hooks.yaml").read_text()
    _, _, entry = hooks.partition("entry: burnish ")
    words = entry.partition("\n")[0].split()
    assert main(words) == 0  # nothing is generated yet, as in a fresh clone
    generated(root)
    assert main(words) == 0
    source = root / "src/my_app/net.py"
    before = source.read_text()
    source.write_text(f"{before}\n# mine\n")
    assert main(words) == 1
    source.write_text(before)
    net(root / "assets" / "net.onnx", seed=1)
    assert main(words) == 1
