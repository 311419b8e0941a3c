"""The command line: what it prints where, its exit codes, and a user's mistakes."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from importlib import resources
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from burnish import __version__
from burnish.codegen.cli import main

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def mnist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """mnist.onnx, alone in the current folder."""
    shipped = resources.files("burnish.models.mnist").joinpath("mnist.onnx")
    (tmp_path / "mnist.onnx").write_bytes(shipped.read_bytes())
    monkeypatch.chdir(tmp_path)
    return Path("mnist.onnx")


def run(*arguments: str) -> int:
    """The exit code, argparse's too."""
    try:
        return main(arguments)
    except SystemExit as stop:
        return int(stop.code or 0)


def files() -> set[str]:
    return {str(path) for path in Path().rglob("*")}


# --- what the commands do ---


def test_generate_prints_files_on_stdout_and_the_rest_on_stderr(
    mnist: Path, capsys: Captured
) -> None:
    assert run("generate", "mnist.onnx", "-o", "out") == 0
    printed = capsys.readouterr()
    assert printed.out.split() == ["out/mnist.py", "out/mnist.safetensors"]
    assert "133,882 parameters" in printed.err or "parameters" in printed.err
    assert "next: burnish verify mnist.onnx out/mnist.py" in printed.err
    assert run("check", "out") == 0
    assert run("verify", "mnist.onnx", "out") == 0


@pytest.mark.parametrize("option", ["--name=digits", "--half", "--no-weights"])
def test_the_next_command_is_one_that_passes(
    option: str, mnist: Path, capsys: Captured
) -> None:
    assert run("generate", "mnist.onnx", "-o", "a b", option) == 0
    lines = capsys.readouterr().err.splitlines()
    advised = [line for line in lines if line.startswith("next: burnish ")]
    assert len(advised) == (option != "--no-weights"), "random weights do not verify"
    for line in advised:
        assert run(*shlex.split(line)[2:]) == 0


def test_generating_again_gives_the_same_bytes(mnist: Path, capsys: Captured) -> None:
    assert run("generate", "mnist.onnx", "-o", "a") == 0
    assert run("generate", "mnist.onnx", "-o", "b") == 0
    for name in ("mnist.py", "mnist.safetensors"):
        assert Path("a", name).read_bytes() == Path("b", name).read_bytes()


def test_generate_json(mnist: Path, capsys: Captured) -> None:
    assert run("generate", "mnist.onnx", "--json", "--name", "digits") == 0
    (made,) = json.loads(capsys.readouterr().out)["generated"]
    assert made["model"] == "mnist.onnx"
    assert made["module"] == "digits"
    assert made["files"] == ["digits.py", "digits.safetensors"]


@pytest.mark.parametrize("flag", ["--half", "--embed", "--no-simplify", "--flat"])
def test_every_option_verifies(mnist: Path, flag: str, capsys: Captured) -> None:
    assert run("generate", "mnist.onnx", flag) == 0
    assert run("verify", "mnist.onnx", "mnist.py") == 0
    assert run("check", "mnist.py") == 0


def test_explain_says_why_on_stderr(mnist: Path, capsys: Captured) -> None:
    node = helper.make_node("Identity", ["x"], ["h"], "needless")
    last = helper.make_node("Relu", ["h"], ["y"], "last")
    Path("m.onnx").write_bytes(_model([node, last]))
    assert run("generate", "m.onnx", "--explain", "--json") == 0
    printed = capsys.readouterr()
    json.loads(printed.out)
    assert "needless" in printed.err


def test_a_template_of_the_user(mnist: Path, capsys: Captured) -> None:
    Path("pages").mkdir()
    shipped = resources.files("burnish.templates").joinpath("module.py.jinja")
    page = shipped.read_text("utf-8") + "\n\nMINE = True\n"
    Path("pages", "module.py.jinja").write_text(page, "utf-8")
    assert run("generate", "mnist.onnx", "--template-dir", "pages") == 0
    assert "MINE = True" in Path("mnist.py").read_text("utf-8")


def test_inspect(mnist: Path, capsys: Captured) -> None:
    assert run("inspect", "mnist.onnx") == 0
    text = capsys.readouterr().out
    assert "Conv" in text
    assert "batch" in text
    assert run("inspect", "mnist.onnx", "--json") == 0
    json.loads(capsys.readouterr().out)


def test_kernels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert run("kernels", "info") == 0
    out, _ = capsys.readouterr()
    assert "library: none yet" in out
    assert run("kernels", "info", "--json") == 0
    assert json.loads(capsys.readouterr().out)["library"] is None
    monkeypatch.setenv("CC", "/no/compiler")
    assert run("kernels", "build") == 1
    _, report = capsys.readouterr()
    assert "/no/compiler cannot be run" in report


def test_upgrade(mnist: Path, capsys: Captured) -> None:
    assert run("upgrade", "mnist.onnx", "-o", "newer.onnx", "--opset", "20") == 0
    (opset,) = onnx.load("newer.onnx").opset_import
    assert opset.version == 20
    assert run("generate", "newer.onnx") == 0


def test_the_demo_learns_and_keeps_its_files(
    mnist: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("burnish.codegen.tools.demo.EPOCHS", 1)
    assert run("demo", "--keep", "kept") == 0
    printed = capsys.readouterr()
    before, after = (
        float(re.search(rf"{when}: ([\d.]+)%", printed.out)[1])  # type: ignore[index]
        for when in ("before", "after")
    )
    assert before < 50 < 80 < after
    assert "\x1b" not in printed.out
    assert sorted(path.name for path in Path("kept").glob("*.*")) == [
        "mnist.onnx",
        "mnist.py",
        "mnist.safetensors",
        "tuned.safetensors",
    ]


@pytest.mark.parametrize("package", ["burnish", "burnish.codegen"])
def test_python_m_is_the_command(package: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", package, "--help"], capture_output=True, text=True
    )
    assert done.returncode == 0
    assert done.stdout.startswith("usage: burnish ")


def test_python_m_imports_nothing_from_the_current_folder(mnist: Path) -> None:
    Path("rich.py").write_text("raise SystemExit('the folder ran')\n")
    command = [sys.executable, "-m", "burnish", "inspect", "mnist.onnx"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr.count("the folder ran")) == (0, 0)


def test_version_says_what_decides_the_output(capsys: Captured) -> None:
    assert run("--version") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"burnish {__version__}"
    assert {"python", "numpy", "onnx", "onnx-ir"} <= {s.split()[0] for s in lines}


def test_help_and_check_load_nothing_heavy() -> None:
    code = (
        "import sys; from burnish.codegen.cli import main; main(['check', '.']); "
        "heavy = {'onnx', 'onnx_ir', 'jinja2', 'rich', 'msgspec', 'safetensors'}; "
        "sys.exit(sorted(heavy & sys.modules.keys()) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parent)
    assert done.returncode == 0


def test_generating_loads_no_symbolic_arithmetic(mnist: Path) -> None:
    code = (
        "import sys; from burnish.codegen.cli import main; "
        "main(['generate', 'mnist.onnx']); sys.exit('sympy.core' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code])
    assert done.returncode == 0
    assert Path("mnist.py").exists()


def test_symbolic_arithmetic_is_there_when_it_is_asked_for() -> None:
    """SymPy is its own module then, whichever part of it is imported first."""
    pytest.importorskip("sympy", reason="an onnx-ir that does without SymPy")
    code = (
        "import burnish.codegen.pipeline, onnx_ir; "
        "from sympy.core import Symbol; import sympy.core.expr; "
        "print(issubclass(Symbol, sympy.core.expr.Expr), onnx_ir.__loader__.name); "
        "print((onnx_ir.SymbolicDim('n') + 1).value)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout == "True onnx_ir\nn + 1\n"


def test_without_the_extra_the_command_says_what_to_install(
    mnist: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    def away(*_: object, **__: object) -> None:
        raise ModuleNotFoundError("No module named 'onnx_ir'", name="onnx_ir.serde")

    monkeypatch.setattr("burnish.codegen.pipeline.generate", away)
    assert run("generate", "mnist.onnx") == 1
    assert "pip install 'burnish[codegen]'" in capsys.readouterr().err


# --- mistakes: one message, the exit code, nothing written ---


def _unknown_operators() -> bytes:
    first = helper.make_node("Frobnicate", ["x"], ["h"], "first", domain="com.example")
    second = helper.make_node("Wibble", ["h"], ["y"], "second", domain="com.example")
    return _model([first, second])


def _model(nodes: list[onnx.NodeProto]) -> bytes:
    """x -> nodes -> y, one float"""
    value = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in "xy"
    ]
    graph = helper.make_graph(nodes, "g", value[:1], value[1:])
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("com.example", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    return model.SerializeToString()


MISTAKES = {
    "no such file": (["generate", "nowhere.onnx"], 1, ["nowhere.onnx"]),
    "a folder": (["generate", "folder"], 1, ["folder", "a folder"]),
    "an empty file": (["generate", "empty.onnx"], 1, ["empty.onnx"]),
    "a cut-off file": (["generate", "short.onnx"], 1, ["short.onnx"]),
    "text": (["generate", "text.onnx"], 1, ["text.onnx"]),
    "operators without a rule": (
        ["generate", "unknown.onnx"],
        1,
        ["Frobnicate", "Wibble", "first", "second", "com.example"],
    ),
    "out is a file": (
        ["generate", "mnist.onnx", "-o", "text.onnx"],
        2,
        ["text.onnx: expected a folder, or a name that is free"],
    ),
    "out below a file": (
        ["generate", "mnist.onnx", "-o", "text.onnx/out"],
        2,
        ["text.onnx/out: expected a folder"],
    ),
    "somebody's source": (["generate", "mnist.onnx", "--name", "own"], 1, ["own.py"]),
    "a second model is broken": (
        ["generate", "mnist.onnx", "short.onnx", "-o", "out"],
        1,
        ["short.onnx", "none of the 2 models was written"],
    ),
    "a second model has operators without a rule": (
        ["generate", "mnist.onnx", "unknown.onnx", "-o", "out"],
        1,
        ["unknown.onnx: expected", "Frobnicate", "none of the 2 models was written"],
    ),
    "one name, two models": (
        ["generate", "mnist.onnx", "mnist.onnx", "-o", "out"],
        2,
        ["mnist"],
    ),
    "a file for a command": (["mnist.onnx"], 2, ["burnish generate mnist.onnx"]),
    "nearly a command": (["generat", "mnist.onnx"], 2, ["did you mean generate?"]),
    "nearly an option": (
        ["generate", "mnist.onnx", "--embeded"],
        2,
        ["did you mean --embed?"],
    ),
    "a seed that is none": (
        ["verify", "mnist.onnx", "folder", "--seed", "x", "--json"],
        2,
        ["--seed", "a whole number"],
    ),
    "help as a command": (["help"], 2, ["did you mean --help?"]),
    "version as a command": (["version"], 2, ["did you mean --version?"]),
    "a short option that is none": (["-v"], 2, ["unknown: '-v'"]),
    "a negative seed": (["verify", "mnist.onnx", "--seed", "-1"], 2, ["0 or more"]),
    "a limit that is none": (["verify", "mnist.onnx", "--rtol", "nan"], 2, ["--rtol"]),
    "weights for a module": (
        ["verify", "mnist.onnx", "empty.onnx"],
        2,
        ["empty.onnx", "(.py)"],
    ),
    "an input of another kind": (
        ["verify", "mnist.onnx", "--input", "images=own.py"],
        2,
        ["own.py", "another kind of file"],
    ),
    "an empty file as an input": (
        ["inspect", "mnist.onnx", "--html", "--input", "images=empty.onnx"],
        2,
        ["images=empty.onnx", "an empty file"],
    ),
    "an input where nothing runs": (
        ["inspect", "mnist.onnx", "--input", "images=own.npy"],
        2,
        ["--input: expected --html or --against"],
    ),
    "a size that no input has": (
        ["inspect", "mnist.onnx", "--dim", "size=3"],
        2,
        ["--dim: expected one of batch, got size"],
    ),
    "check a model file": (["check", "mnist.onnx"], 2, ["mnist.onnx", "--source"]),
    "keep in a file": (["demo", "--keep", "own.py"], 2, ["--keep", "own.py"]),
    "a name for two models": (
        ["generate", "mnist.onnx", "short.onnx", "--name", "x"],
        2,
        ["--name"],
    ),
    "a name of a module that NumPy needs": (
        ["generate", "mnist.onnx", "--name", "json"],
        2,
        ["--name", "json_model"],
    ),
    "a name of what the source imports": (
        ["generate", "mnist.onnx", "--name", "numpy"],
        2,
        ["--name", "numpy_model"],
    ),
    "our own name": (
        ["generate", "mnist.onnx", "--name", "burnish"],
        2,
        ["--name", "burnish_model"],
    ),
    "a keyword": (["generate", "mnist.onnx", "--name", "class"], 2, ["class_"]),
    "a builtin": (["generate", "mnist.onnx", "--name", "print"], 2, ["print_"]),
    "a name that is none": (
        ["generate", "mnist.onnx", "--name", "my model"],
        2,
        ["--name", "my_model"],
    ),
    "a size that is none": (
        ["verify", "mnist.onnx", "folder", "--dim", "batch=many"],
        2,
        ["--dim", "many"],
    ),
    "an input that is no file": (
        ["verify", "mnist.onnx", "--input", "images=nowhere.npy"],
        2,
        ["nowhere.npy"],
    ),
    "no such templates": (
        ["generate", "mnist.onnx", "--template-dir", "nowhere"],
        2,
        ["nowhere"],
    ),
    "a broken template": (
        ["generate", "mnist.onnx", "--template-dir", "folder"],
        1,
        ["module.py.jinja"],
    ),
    "no model": (["generate"], 2, ["MODEL"]),
    "no command": ([], 2, ["COMMAND"]),
    "no such command": (["convert", "mnist.onnx"], 2, ["convert"]),
    "no such option": (["generate", "mnist.onnx", "--quantize"], 2, ["--quantize"]),
    "verify nothing": (["verify", "nowhere.onnx", "folder"], 1, ["nowhere.onnx"]),
    "verify no module": (["verify", "mnist.onnx", "nowhere"], 2, ["nowhere"]),
    "verify other source": (["verify", "mnist.onnx", "own.py"], 1, ["own.py"]),
    "inspect nothing": (["inspect", "nowhere.onnx"], 1, ["nowhere.onnx"]),
    "inspect text": (["inspect", "text.onnx", "--json"], 1, ["text.onnx"]),
    "check nothing": (["check", "nowhere"], 2, ["nowhere"]),
    "upgrade nothing": (["upgrade", "nowhere.onnx", "-o", "n.onnx"], 1, ["nowhere"]),
    "upgrade text": (["upgrade", "text.onnx", "-o", "n.onnx"], 1, ["text.onnx"]),
    "upgrade without -o": (["upgrade", "mnist.onnx"], 2, ["-o"]),
    "an opset that is none": (
        ["upgrade", "mnist.onnx", "-o", "n.onnx", "--opset", "x"],
        2,
        ["--opset"],
    ),
    "an opset of the future": (
        ["upgrade", "mnist.onnx", "-o", "n.onnx", "--opset", "999"],
        2,
        ["999"],
    ),
    "upgrade to nowhere": (
        ["upgrade", "mnist.onnx", "-o", "nowhere/n.onnx", "--opset", "20"],
        2,
        ["nowhere"],
    ),
}


@pytest.mark.parametrize(
    ("arguments", "code", "words"), MISTAKES.values(), ids=MISTAKES.keys()
)
def test_a_mistake_gets_one_message_and_leaves_nothing(
    arguments: list[str], code: int, words: list[str], mnist: Path, capsys: Captured
) -> None:
    Path("folder").mkdir()
    Path("folder", "module.py.jinja").write_text("{% for %}")
    Path("empty.onnx").touch()
    Path("text.onnx").write_text("this is no model\n" * 20)
    Path("short.onnx").write_bytes(mnist.read_bytes()[:100_000])
    Path("unknown.onnx").write_bytes(_unknown_operators())
    Path("own.py").write_text("work = 'of a person'\n")
    before = files()
    assert run(*arguments) == code
    printed = capsys.readouterr()
    if "--json" in arguments:
        assert json.loads(printed.out)["error"]["exit_code"] == code
    else:
        assert printed.out == ""
    assert "Traceback" not in printed.err
    for word in words:
        assert word in printed.err
    assert files() == before
    assert Path("own.py").read_text() == "work = 'of a person'\n"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_may_not_be_written(mnist: Path, capsys: Captured) -> None:
    Path("locked").mkdir(mode=0o500)
    assert run("generate", "mnist.onnx", "-o", "locked") == 1
    assert "locked" in capsys.readouterr().err


def test_an_interrupt(
    mnist: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("burnish.codegen.pipeline.generate", interrupted)
    assert run("generate", "mnist.onnx") == 130
    assert capsys.readouterr().err == "burnish generate: interrupted\n"


def test_a_reader_that_goes_away() -> None:
    done = subprocess.run(
        f"{sys.executable} -m burnish.codegen check {Path(__file__).parent} | true",
        shell=True,
        capture_output=True,
        text=True,
    )
    assert "Traceback" not in done.stderr
