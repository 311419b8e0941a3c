"""Every command that writes refuses to replace what it reads."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from burnish.codegen.cli import main
from burnish.learner import EventStore, FileLogger
from burnish.learner.events import Entry, write_metrics
from burnish.learner.metric import Loss

Captured = pytest.CaptureFixture[str]


def _inputs() -> None:
    """A model with its data beside it, its weights, and a run."""
    weight = np.arange(12, dtype=np.float32).reshape(3, 4)
    nodes = [onnx.helper.make_node("MatMul", ["x", "w"], ["y"])]
    ends = [
        onnx.helper.make_tensor_value_info(name, 1, ["n", size])
        for name, size in (("x", 3), ("y", 4))
    ]
    for name, opset in (("old", 13), ("new", 20)):
        held = onnx.numpy_helper.from_array(weight, "w")
        graph = onnx.helper.make_graph(nodes, "g", ends[:1], ends[1:], [held])
        sets = [onnx.helper.make_opsetid("", opset)]
        made = onnx.helper.make_model(graph, opset_imports=sets, ir_version=8)
        options = {"save_as_external_data": True, "size_threshold": 0}
        onnx.save(made, f"{name}.onnx", location=f"{name}.onnx.data", **options)
    assert main(["generate", "new.onnx", "-o", "package"]) == 0
    Path("tuned.safetensors").write_bytes(Path("package/new.safetensors").read_bytes())
    run = Path("run", "train", "epoch-1")
    run.mkdir(parents=True)
    store, logger = EventStore([Loss()]), FileLogger(Path("run"))
    write_metrics(store, Path("run"))
    logger.step("train", 1, 1, [Entry("Loss", 1.0, 0.5)])
    logger.close()
    for name in ("old.onnx", "new.onnx", "new.onnx.data", "tuned.safetensors"):
        Path(f"link-{name}").symlink_to(name)


ONTO = ["export", "tuned.safetensors", "--onto", "new.onnx", "-o"]
INPUTS = {
    "upgrade, the model": ["upgrade", "old.onnx", "-o", "old.onnx"],
    "upgrade, its data": ["upgrade", "old.onnx", "-o", "old.onnx.data"],
    "upgrade, data beside": ["upgrade", "old.onnx", "-o", "./old.onnx"],
    "upgrade, a link": ["upgrade", "old.onnx", "-o", "link-old.onnx"],
    "export, the model": [*ONTO, "new.onnx"],
    "export, its data": [*ONTO, "new.onnx.data"],
    "export, the weights": [*ONTO, "tuned.safetensors"],
    "export, a link": [*ONTO, "link-new.onnx"],
    "export, a link to the data": [*ONTO, "link-new.onnx.data"],
    "export, a link to the weights": [*ONTO, "link-tuned.safetensors"],
    "report, the metrics": ["report", "run", "-o", "run/metrics.json"],
    "report, a log": ["report", "run", "-o", "run/train/epoch-1/Loss.log"],
    "generate, the weights": ["generate", "tuned.safetensors", "--half"],
}


@pytest.mark.parametrize("words", INPUTS.values(), ids=INPUTS)
def test_an_input_is_never_replaced(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.chdir(tmp_path)
    _inputs()
    before = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    links = {p: p.is_symlink() for p in before}
    assert main(words) == 2
    assert "expected another" in capsys.readouterr().err
    assert {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()} == before
    assert {p: p.is_symlink() for p in before} == links
