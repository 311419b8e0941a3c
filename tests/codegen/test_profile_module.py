"""`burnish profile`: what it runs, tells and writes, and what it refuses."""

import json
from pathlib import Path

import numpy as np
import pytest

from burnish.codegen.cli import main
from tests.harness.projects import net


@pytest.fixture
def module(tmp_path):
    out = tmp_path / "out"
    assert main(["generate", str(net(tmp_path / "net.onnx")), "-o", str(out)]) == 0
    return out / "net.py"


EDITED = """
import numpy as np
from burnish import nn


class Model(nn.Module):
    def __init__(self):
        self.linear = nn.Linear(4, 4)

    {decorator}
    def forward(self, x, scale=None):
        {body}
"""


def edited(folder, decorator="", body="return self.linear(x)"):
    path = folder / "edited.py"
    path.write_text(EDITED.format(decorator=decorator, body=body))
    return str(path)


@pytest.mark.parametrize("options", [[], ["--train"], ["--dim", "batch=3"]])
def test_the_model_runs_on_inputs_of_its_own(module, capsys, options):
    capsys.readouterr()
    assert main(["profile", str(module), "--runs", "2", *options]) == 0
    first, second, *lines = capsys.readouterr().out.splitlines()
    size = 3 if "--dim" in options else 1
    assert first == f"net.py on x float32[{size}, 4]"
    assert "(mean of 2 runs); parameters 60 B" in second
    words = [line.split()[0] for line in lines if line]
    assert {"Model", "linear", "relu"} <= set(words)
    assert ("backward" in words) == ("--train" in options)


def test_json_has_the_times_of_one_run(module, capsys):
    capsys.readouterr()
    assert main(["profile", str(module), "--runs", "4", "--json"]) == 0
    message = json.loads(capsys.readouterr().out)
    assert message["inputs"] == {"x": "float32[1, 4]"}
    assert message["modules"][0]["calls"] == 1
    own = sum(row["own_milliseconds"] for row in message["modules"])
    assert own == pytest.approx(message["milliseconds"])
    assert {row["name"] for row in message["operators"]} == {"linear", "relu"}


def test_the_page_and_the_trace_are_written(module, tmp_path):
    page, trace = tmp_path / "page.html", tmp_path / "trace.json"
    words = ["profile", str(module), "--html", str(page), "--trace", str(trace)]
    assert main(words) == 0
    text = page.read_text()
    assert "http" not in text
    assert text.count("<div style=") == text.count('scope="row" style=') == 2
    assert json.loads(trace.read_text())["traceEvents"]


def test_others_have_the_sizes_of_those_given(tmp_path, capsys):
    np.save(tmp_path / "x.npy", np.ones((7, 4), np.float32))
    decorator = '@nn.accepts(x="float32[batch, 4]", scale="float32[batch, 1]")'
    path = edited(tmp_path, decorator)
    source = Path(path).read_text().replace("scale=None", "scale")
    Path(path).write_text(source.replace("linear(x)", "linear(x) * scale"))
    assert main(["profile", path, "--input", f"x={tmp_path / 'x.npy'}"]) == 0
    assert "scale float32[7, 1]" in capsys.readouterr().out


def test_inputs_may_be_given(tmp_path, capsys):
    np.save(tmp_path / "x.npy", np.ones((7, 4), np.float32))
    path = edited(tmp_path)
    assert main(["profile", path, "--input", f"x={tmp_path / 'x.npy'}"]) == 0
    assert "x float32[7, 4]" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("decorator", "body"),
    [
        ('@nn.accepts(x="float32[batch, 4]")', "return self.linear(x)"),
        ('@nn.accepts(x="int64[n]")', "return x + 1"),
        ('@nn.accepts(x="float32[..., 4]")', "return [self.linear(x)]"),
        ('@nn.accepts(x="float32[h, w]")', "return x.reshape(8, 8, -1, 8)[0]"),
        ('@nn.accepts(x="float32[n]")', "return x.reshape(224)"),
    ],
)
def test_sizes_that_the_model_takes_are_found(tmp_path, decorator, body):
    assert main(["profile", edited(tmp_path, decorator, body), "--runs", "1"]) == 0


@pytest.mark.parametrize(
    ("decorator", "body", "options", "message", "code"),
    [
        ("", "return x", [], "expected @nn.accepts to say what 'x' is", 2),
        (
            '@nn.accepts(x="float32[batch, 4]")',
            "return self.nothing",
            [],
            "got AttributeError",
            1,
        ),
        (
            '@nn.accepts(x="float32[batch, 4]")',
            "return x",
            ["--dim", "n=2"],
            "--dim: expected one of batch, got n",
            2,
        ),
        (
            '@nn.accepts(x="float32[4]")',
            "return x",
            ["--input", "y=y.npy"],
            "--input: expected one of x, scale, got y",
            2,
        ),
        (
            '@nn.accepts(x="int64[4]")',
            "return x",
            ["--train"],
            "expected an output of floating-point numbers",
            1,
        ),
        ('@nn.accepts(x="float32[4]")', "return x", ["--runs", "0"], "1 or more", 2),
    ],
)
def test_what_cannot_be_profiled_is_reported(
    tmp_path, capsys, decorator, body, options, message, code
):
    path = edited(tmp_path, decorator, body)
    assert main(["profile", path, *options]) == code
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("import nowhere", "a module to import, got ModuleNotFoundError"),
        ("def broken(:", "a module to import, got SyntaxError"),
        ("nn.Linear.nothing", "a module to import, got AttributeError"),
        ("Model.__init__ = None", "its Model to be made, got TypeError"),
    ],
)
def test_edits_that_do_not_run_are_no_error_of_burnish(tmp_path, capsys, line, message):
    path = Path(edited(tmp_path, '@nn.accepts(x="float32[4]")', "return x"))
    path.write_text(f"{path.read_text()}\n{line}\n")
    assert main(["profile", str(path)]) == 1
    assert f"{path}: expected {message}" in capsys.readouterr().err


def test_no_input_is_replaced(module, capsys):
    weights = module.with_suffix(".safetensors")
    before = weights.read_bytes()
    for path in (module, weights):
        assert main(["profile", str(module), "--html", str(path)]) == 2
    assert weights.read_bytes() == before
    assert main(["profile", str(module.with_name("none.py"))]) == 2
    assert "expected a generated module (.py)" in capsys.readouterr().err
