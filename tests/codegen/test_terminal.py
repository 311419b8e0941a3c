"""Text of files reaches the terminal as text: no command obeys it or lets it forge."""

from __future__ import annotations

import io
import json
import os
import pickle
import pty
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper

from burnish import serialize
from burnish.codegen.cli import main
from burnish.codegen.terminal import Filtered, shown
from tests.codegen.test_injection import hostile

#: A title, the clipboard, a colour (ESC and C1), backwards text, new lines of all
#: kinds that would be read as ours, and a tab.
TEXT = (
    "\x1b]0;title\x07\x1b]52;c;ZXZpbA==\x07\x1b[31m\x9b31m\x90q\x9c\u202eback\u2066"
    "\nFORGED a\rFORGED b\x85FORGED c\u2028FORGED d\x0bFORGED e\x08\x7f\t\u200b"
)
FILE = TEXT.replace("/", "_")[:120]


def _same(model: onnx.ModelProto, path: Path) -> Path:
    path.write_bytes(model.SerializeToString())
    return path


def _no_rule() -> onnx.ModelProto:
    """One operator that nobody knows, of a hostile domain, node and name."""
    node = helper.make_node(TEXT, ["x"], ["y"], TEXT, domain=TEXT)
    ports = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [TEXT]) for n in "xy"]
    graph = helper.make_graph([node], TEXT, ports[:1], ports[1:])
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid(TEXT, 1)]
    return helper.make_model(
        graph, opset_imports=opsets, ir_version=10, producer_name=TEXT
    )


def _old() -> onnx.ModelProto:
    model = hostile(TEXT)
    del model.functions[:]
    del model.graph.node[2:]
    model.graph.output[0].name = model.graph.node[-1].output[0]
    for opset in model.opset_import:
        opset.version = 11 if not opset.domain else opset.version
    return model


def _elsewhere() -> onnx.ModelProto:
    """Weights in a file of a hostile name, which is not there."""
    model = hostile(TEXT)
    weight = model.graph.initializer[0]
    weight.data_location = TensorProto.EXTERNAL
    weight.ClearField("raw_data")
    weight.external_data.add(key="location", value=TEXT)
    return model


class _Own:
    """A class of a hostile name, pickled."""


_Own.__qualname__ = _Own.__name__ = "Own\x1b]0;title"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, of a hostile name, with hostile files of every kind."""
    here = tmp_path / FILE
    here.mkdir()
    monkeypatch.chdir(here)
    _same(hostile(TEXT), here / "m.onnx")
    _same(hostile(TEXT), here / f"{FILE}.onnx")
    _same(_no_rule(), here / "norule.onnx")
    _same(_old(), here / "old.onnx")
    _same(_elsewhere(), here / "elsewhere.onnx")
    arrays = {f"{TEXT}.{name}": np.ones((2, 2), np.float32) for name in ("a", "b")}
    (here / "w.safetensors").write_bytes(serialize.to_bytes(arrays, {TEXT: TEXT}))
    header = json.dumps({TEXT: {"dtype": TEXT, "shape": [TEXT], "data_offsets": TEXT}})
    size = len(header).to_bytes(8, "little")
    (here / "bad.safetensors").write_bytes(size + header.encode() + b"\0" * 8)
    (here / "text.pkl").write_bytes(pickle.dumps({TEXT: TEXT, "a": [TEXT]}))
    name = b"cfoo\nOwn\x1b]0;title\x07\x9b31m\n)\x81."
    (here / "class.pkl").write_bytes(b"\x80\x02" + name)
    for kind, config in {
        "odd": {"model_type": TEXT, "architectures": [TEXT]},
        "gpt": {"model_type": "gpt2", TEXT: TEXT, "activation_function": TEXT},
        "sizes": {"model_type": "gpt2", "n_embd": TEXT, "n_head": -1},
    }.items():
        (here / kind).mkdir()
        (here / kind / "config.json").write_text(json.dumps(config))
        (here / kind / "model.safetensors").write_bytes(serialize.to_bytes(arrays))
    (here / "made.py").write_text(
        f'"""Imported from {FILE!r} (opset 18), sha256\n{"0" * 64};\n"""\n'
    )
    (here / f"{FILE}.py").write_text(
        f'"""Imported from m.onnx (opset 18), sha256\n{"0" * 64};\n"""\n'
    )
    return here


COMMANDS = [
    ["generate", "m.onnx", "--explain", "-o", f"{FILE}out"],
    ["generate", f"{FILE}.onnx", "--explain"],
    ["generate", "m.onnx", "--json"],
    ["generate", "m.onnx", "norule.onnx"],
    ["generate", "norule.onnx", "--json"],
    ["generate", "norule.onnx", "--traceback"],
    ["generate", "elsewhere.onnx"],
    ["generate", "w.safetensors", "--explain"],
    ["generate", "bad.safetensors"],
    ["generate", "text.pkl"],
    ["generate", "class.pkl"],
    ["generate", "odd", "--explain"],
    ["generate", "gpt", "--explain"],
    ["generate", "sizes"],
    ["generate", TEXT],
    ["generate", "m.onnx", "--name", TEXT],
    ["generate", "m.onnx", "--rules", TEXT],
    ["generate", "m.onnx", "--template-dir", TEXT],
    ["verify", "m.onnx"],
    ["verify", "m.onnx", "--json"],
    ["verify", "m.onnx", "--input", f"{TEXT}=x.npy"],
    ["verify", "m.onnx", "--input", f"{TEXT}x={TEXT}.npy"],
    ["verify", "m.onnx", "--dim", f"{TEXT}=2"],
    ["verify", "m.onnx", "--dim", TEXT],
    ["verify", "norule.onnx"],
    ["inspect", "m.onnx"],
    ["inspect", f"{FILE}.onnx", "--json"],
    ["inspect", "norule.onnx"],
    ["inspect", "old.onnx"],
    ["inspect", "w.safetensors"],
    ["inspect", "w.safetensors", "--json"],
    ["inspect", "bad.safetensors"],
    ["inspect", "text.pkl"],
    ["inspect", "class.pkl"],
    ["inspect", "class.pkl", "--inert"],
    ["inspect", "odd"],
    ["inspect", "gpt"],
    ["inspect", "sizes"],
    ["check"],
    ["check", "--json"],
    ["check", TEXT],
    ["upgrade", "old.onnx", "-o", f"{FILE}new.onnx"],
    ["upgrade", "old.onnx", "-o", "new.onnx", "--json"],
    ["upgrade", "m.onnx", "-o", f"{TEXT}/new.onnx"],
    ["report", "odd"],
    ["report", TEXT],
    [TEXT],
    ["generate", "m.onnx", f"--{TEXT}"],
]


@pytest.mark.parametrize("words", COMMANDS, ids=range(len(COMMANDS)))
def test_no_text_of_a_file_is_obeyed(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(words)
    printed = capsys.readouterr()
    assert code in (0, 1, 2)
    assert printed.out + printed.err
    for line in (printed.out + printed.err).split("\n"):
        assert line.isprintable()
        assert not line.lstrip().startswith("FORGED")
    if "--json" in words:
        json.loads(printed.out)


def _on_a_terminal(*words: str) -> str:
    """The bytes that a terminal receives from a command."""
    ours, theirs = pty.openpty()
    environment = {k: v for k, v in os.environ.items() if k != "NO_COLOR"}
    program = subprocess.Popen(
        [sys.executable, "-m", "burnish", *words],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**environment, "TERM": "xterm-256color", "COLUMNS": "200"},
    )
    os.close(theirs)
    received = b""
    try:
        while data := os.read(ours, 4096):
            received += data
    except OSError:  # Linux: the other end is closed
        pass
    program.wait()
    os.close(ours)
    return received.decode("utf-8", "surrogateescape")


@pytest.mark.parametrize(
    "words", [["inspect", "m.onnx"], ["generate", "m.onnx", "--explain"], [TEXT]]
)
def test_a_terminal_receives_colours_of_ours_only(words: list[str]) -> None:
    received = _on_a_terminal(*words)
    ours = re.compile(r"\x1b\[[\d;?]*[mKAhlGJ]|\r")  # rich: styles and its bar
    text = ours.sub("", received)
    assert "title" in text
    for line in text.split("\n"):
        assert line.isprintable(), ascii(line)
        assert not line.lstrip().startswith("FORGED")
    assert "\x1b[31m" not in received


@given(st.text(st.characters(), max_size=50))
def test_shown_is_one_printable_line(text: str) -> None:
    line = shown(text)
    assert line.isprintable()
    assert shown(line) == line
    assert (line == text) == text.isprintable()


@given(st.text(st.characters(), max_size=50), st.sampled_from(["ascii", "utf-8"]))
def test_a_filtered_stream_keeps_its_line_ends_only(text: str, encoding: str) -> None:
    taken = io.StringIO()
    stream = Filtered(io.TextIOWrapper(io.BytesIO(), encoding))
    stream.behind = taken
    assert stream.write(text) == len(text)
    written = taken.getvalue()
    assert written.count("\n") == text.count("\n")
    assert written.replace("\n", "").isprintable()
    written.encode(encoding)
