"""What a failed command says, in which words, with which exit code, and what it leaves.

The commands run in this process; errors are put where a user's would appear.
"""

from __future__ import annotations

import errno
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import wraps
from importlib import resources
from pathlib import Path

import pytest

from burnish.codegen import ModelGen, pipeline
from burnish.codegen.cli import main, parser
from burnish.codegen.errors import UnsupportedError, UsageError, about
from burnish.codegen.ops.rule.registry import registry
from burnish.codegen.weights.entries import Entry

Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with mnist.onnx in it."""
    shipped = resources.files("burnish.models.mnist").joinpath("mnist.onnx")
    (tmp_path / "mnist.onnx").write_bytes(shipped.read_bytes())
    (tmp_path / "text.onnx").write_text("this is no model\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _everything(folder: Path) -> set[Path]:
    return set(folder.rglob("*"))


# --- --json ---

WITH_JSON = [
    (["generate", "text.onnx"], 1, "ReadError"),
    (["generate", "nowhere.onnx"], 1, "ReadError"),
    (["generate"], 2, "UsageError"),
    (["generate", "mnist.onnx", "--name", "a b"], 2, "UsageError"),
    (["generate", "mnist.onnx", "--wrong"], 2, "UsageError"),
    (["generate", "mnist.onnx", "--dim", "batch=2"], 2, "UsageError"),
    (["generate", "mnist.onnx", "--compiled", "--dim", "batch=two"], 2, "UsageError"),
    (["generate", "mnist.onnx", "--compiled", "--dim", "other=2"], 2, "UsageError"),
    (["generate", "mnist.onnx", "--compiled", "--standalone"], 2, "UsageError"),
    (["generate", "mnist.onnx", "--compiled", "--embed"], 2, "UsageError"),
    (["generate", "mnist.onnx", "--compiled", "--no-weights"], 2, "UsageError"),
    (["generate", "mnist.onnx", "--compiled", "--diff"], 2, "UsageError"),
    (["generate", ".", "--compiled"], 2, "UsageError"),
    (["generate", "--compiled"], 2, "UsageError"),
    (["verify", "text.onnx"], 1, "ReadError"),
    (["verify", "mnist.onnx", "nowhere"], 2, "UsageError"),
    (["inspect", "nowhere.onnx"], 1, "ReadError"),
    (["check", "nowhere"], 2, "UsageError"),
    (["upgrade", "text.onnx", "-o", "new.onnx"], 1, "ReadError"),
    (["upgrade", "text.onnx"], 2, "UsageError"),
    (["export", "text.onnx"], 2, "UsageError"),
    (["init"], 2, "UsageError"),
    (["kernels", "other"], 2, "UsageError"),
    (["profile", "text.onnx"], 2, "UsageError"),
]


@pytest.mark.parametrize(("words", "code", "kind"), WITH_JSON)
def test_json_has_the_error(
    words: list[str], code: int, kind: str, capsys: Captured
) -> None:
    assert main([*words, "--json"]) == code
    printed = capsys.readouterr()
    error = json.loads(printed.out)["error"]
    assert set(error) == {"command", "kind", "message", "exit_code", "notes"}
    assert (error["command"], error["kind"]) == (words[0], kind)
    assert error["exit_code"] == code
    assert error["message"].splitlines()[0] in printed.err


def test_every_command_with_json_is_in_the_table() -> None:
    (commands,) = (a.choices for a in parser()._actions if a.dest == "command")
    assert isinstance(commands, dict)
    reporting = {n for n, c in commands.items() if "--json" in c.format_help()}
    assert reporting == {words[0] for words, *_ in WITH_JSON}


# --- several models ---


def test_the_model_that_failed_is_named(folder: Path) -> None:
    gen = ModelGen("out").input("mnist.onnx").input("text.onnx")
    with pytest.raises(Exception, match=r"text\.onnx") as caught:
        gen.run()
    assert caught.value.__notes__ == ["none of the 2 models was written"]
    assert not Path("out").exists()


def test_a_message_gets_the_model_where_it_lacks_it() -> None:
    with (
        pytest.raises(UnsupportedError, match=r"^some/m\.onnx: expected") as caught,
        about(Path("some/m.onnx")),
    ):
        raise UnsupportedError({"Foo (opset 18)": ["a"]})
    assert caught.value.missing == {"Foo (opset 18)": ["a"]}


def test_what_was_written_before_a_failure_is_reported(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("two.onnx").write_bytes(Path("mnist.onnx").read_bytes())
    Path("out/two.py").mkdir(parents=True)
    assert main(["generate", "mnist.onnx", "two.onnx", "-o", "out"]) == 1
    message = capsys.readouterr().err
    assert "written before that: out/mnist.py, out/mnist.safetensors" in message


def test_a_build_script_learns_what_was_written_too() -> None:
    Path("two.onnx").write_bytes(Path("mnist.onnx").read_bytes())
    Path("out/two.py").mkdir(parents=True)
    gen = ModelGen("out").input("mnist.onnx").input("two.onnx")
    with pytest.raises(IsADirectoryError) as caught:
        gen.run()
    first = f"{Path('out/mnist.py')}, {Path('out/mnist.safetensors')}"
    assert caught.value.__notes__ == [f"written before that: {first}"]
    names = {path.name for path in Path("out").iterdir()}
    assert names == {"mnist.py", "mnist.safetensors", "two.py"}


def test_a_write_that_fails_midway_leaves_its_model_as_it_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gen = ModelGen("out").input("mnist.onnx")
    gen.run()
    before = {path.name: path.read_bytes() for path in Path("out").iterdir()}
    blocks = Entry.blocks

    def full(entry: Entry) -> Iterator[memoryview]:
        if entry.path == "linear2.weight":
            raise OSError(errno.ENOSPC, "No space left on device")
        return blocks(entry)

    monkeypatch.setattr(Entry, "blocks", full)
    gen.options = replace(gen.options, half=True)
    with pytest.raises(OSError, match="No space left") as caught:
        gen.run()
    assert not getattr(caught.value, "__notes__", [])
    assert {path.name: path.read_bytes() for path in Path("out").iterdir()} == before


def test_two_models_of_one_name_do_not_replace_each_other() -> None:
    Path("other").mkdir()
    Path("other/mnist.onnx").write_bytes(Path("mnist.onnx").read_bytes())
    gen = ModelGen("out").input("mnist.onnx").input("other/mnist.onnx")
    with pytest.raises(UsageError, match=r"got mnist more than once; .* with name"):
        gen.run()
    assert not Path("out").exists()


# --- errors of Burnish itself ---


def _broken(*_: object, **__: object) -> None:
    raise IndexError("list index\nout of range")


def test_an_error_of_our_own_says_so(
    folder: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "lift", _broken)
    before = _everything(folder)
    assert main(["generate", "mnist.onnx", "-o", "out", "--json"]) == 3
    printed = capsys.readouterr()
    first, *rest = printed.err.splitlines()
    assert first == (
        "burnish generate: an error of Burnish itself, not of yours: "
        "IndexError: list index\\nout of range"
    )
    assert all(line.startswith("  ") for line in rest)
    for words in ("sha256 5d4ebb6d", "burnish 0.1.0, python 3", "--traceback", "line"):
        assert words in printed.err
    assert "Traceback" not in printed.err
    assert json.loads(printed.out)["error"]["kind"] == "InternalError"
    assert _everything(folder) == before


@pytest.mark.parametrize("kind", [AttributeError, IndexError, TypeError, ValueError])
@pytest.mark.parametrize("place", ["rule of an operator", "pass"])
def test_a_defect_in_a_rule_is_ours(
    place: str,
    kind: type[Exception],
    folder: Path,
    capsys: Captured,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The model is good: no message says that its operators are not supported."""

    def broken(*_: object, **__: object) -> None:
        raise kind("no such thing")

    if place == "pass":
        monkeypatch.setattr("burnish.codegen.passes.fuse._apply", broken)
    else:
        rules = registry["", "Conv"]
        monkeypatch.setitem(
            registry,
            ("", "Conv"),
            [replace(r, function=wraps(r.function)(broken)) for r in rules],
        )
    assert main(["generate", "mnist.onnx", "-o", "out"]) == 3
    message = capsys.readouterr().err
    assert "an error of Burnish itself, not of yours" in message
    assert message.count("sha256 5d4ebb6d") == 1
    assert place == "pass" or "(Conv), given FLOAT[" in message


def test_traceback_shows_where(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "lift", _broken)
    assert main(["generate", "mnist.onnx", "--traceback"]) == 3
    assert "in _broken" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["verify", "inspect", "upgrade"])
def test_other_commands_say_which_model(
    command: str, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (
        "verify.read",
        "tools.inspect_model.read",
        "tools.upgrade.load_for_upgrade",
    ):
        monkeypatch.setattr(f"burnish.codegen.{module}", _broken)
    more = ["-o", "new.onnx"] if command == "upgrade" else []
    more = ["mnist.py"] if command == "verify" else more
    assert main([command, "mnist.onnx", *more]) == 3
    assert "model mnist.onnx, sha256 5d4ebb6d" in capsys.readouterr().err


def test_a_lack_of_memory_is_no_error_of_ours(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(pipeline, "lift", away)
    assert main(["generate", "mnist.onnx"]) == 1
    message = capsys.readouterr().err
    assert message.startswith("burnish generate: needs more memory than there is\n")


# --- folders that generate makes ---


def test_new_folders_are_packages_and_old_ones_stay(capsys: Captured) -> None:
    Path("old").mkdir()
    assert main(["generate", "mnist.onnx", "-o", "old/new/models"]) == 0
    found = {str(path) for path in Path().rglob("__init__.py")}
    assert found == {"old/new/__init__.py", "old/new/models/__init__.py"}


def test_a_failed_write_takes_its_folders_away(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("burnish.serialize.write_stream", full)
    assert main(["generate", "mnist.onnx", "-o", "a/b"]) == 1
    assert "No space left" in capsys.readouterr().err
    assert not Path("a").exists()


def test_a_zipped_package_is_imported(capsys: Captured, folder: Path) -> None:
    assert main(["generate", "mnist.onnx", "-o", "app/models"]) == 0
    code = (
        "import shutil, sys; shutil.make_archive('app', 'zip', '.', 'app'); "
        "shutil.rmtree('app'); sys.path.insert(0, 'app.zip'); "
        "from app.models.mnist import Model; "
        "print(Model.from_embedded().num_params)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr == ""
    assert int(done.stdout) > 1000


# --- packages that are not there ---

_WITHOUT = """
import sys
class Away:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {away!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Away())
{code}
"""
_GENERATING = {"onnx", "onnx_ir", "ml_dtypes", "safetensors", "msgspec"}


def _without(away: set[str], code: str) -> subprocess.CompletedProcess[str]:
    program = _WITHOUT.format(away=away, code=code)
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True
    )


@pytest.mark.parametrize("name", ["ModelGen", "generate", "write", "Options"])
def test_the_generator_on_a_bare_install_says_what_to_install(name: str) -> None:
    away = {*_GENERATING, "jinja2", "rich"}
    done = _without(away, f"from burnish.codegen import {name}")
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"ModuleNotFoundError: burnish.codegen.{name} needs ")
    assert last.endswith("run: pip install 'burnish[codegen]'")


def test_a_report_needs_what_training_brings(folder: Path) -> None:
    (folder / "run").mkdir()
    code = "from burnish.codegen.cli import main; sys.exit(main(['report', 'run']))"
    done = _without(_GENERATING, code)
    assert "expected the directory of a run" in done.stderr
    done = _without({*_GENERATING, "jinja2"}, code)
    assert "run: pip install 'burnish[train]'" in done.stderr


def test_generating_needs_no_msgspec(folder: Path) -> None:
    code = (
        "from burnish.codegen.cli import main; "
        "sys.exit(main(['generate', 'mnist.onnx', '--json']) "
        "or main(['verify', 'mnist.onnx', '--json']) "
        "or main(['inspect', 'mnist.onnx', '--json']))"
    )
    assert _without({"msgspec"}, code).returncode == 0
