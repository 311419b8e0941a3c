"""Templates and architectures that an installed package brings."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest

import burnish.templates
from burnish import nn
from burnish.codegen import Options, generate
from burnish.codegen.architectures import families, unknown
from burnish.codegen.errors import UnsupportedError, UsageError
from burnish.codegen.extensions.environment import environment
from burnish.codegen.extensions.installed import modules
from burnish.codegen.pipeline import write
from burnish.store import save_pretrained
from tests.harness.imported import load_module

FAMILY = """
from burnish.codegen.architectures import family


@family("tower.py.jinja", {"tower": "Tower"}, ["Model"], base="tower")
def tower(config, head):
    width = config.size("width", 8)
    depth = config.depth("depth", 2)
    return {
        "sizes": {"width": width, "depth": depth},
        "act": config.word("act", "relu", ("relu", "tanh")),
        "contract": "(batch, width) -> (batch, width)",
    }
"""
TEMPLATE = '''
class {{ name }}(nn.Module):
    """{{ contract }}"""

    def __init__(self, width={{ sizes.width }}, depth={{ sizes.depth }}):
        self.layers = nn.Sequential(*[nn.Linear(width, width) for _ in range(depth)])

    def forward(self, x):
        for layer in self.layers:
            x = ops.{{ act }}(layer(x))
        return x
'''


class Tower(nn.Module):
    def __init__(self) -> None:
        self.layers = [nn.Linear(4, 4) for _ in range(3)]


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of a package with an entry point for templates."""
    about = tmp_path / "towers-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: towers\nVersion: 1.0\n"
    )
    (about / "entry_points.txt").write_text("[burnish.templates]\nmine = towers\n")
    (made := tmp_path / "towers").mkdir()
    (made / "__init__.py").write_text(FAMILY)
    (made / "architectures").mkdir()
    (made / "architectures" / "tower.py.jinja").write_text(TEMPLATE.lstrip())
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(families, "_FAMILIES", dict(families._FAMILIES))
    for cached in (modules, environment):
        cached.cache_clear()
    yield made
    for cached in (modules, environment):
        cached.cache_clear()
    sys.modules.pop("towers", None)


def folder_of_weights(place: Path, **config: object) -> Path:
    (model := Tower()).map(lambda path, x: x.data + 0.1)
    values = {"model_type": "tower", "architectures": ["TowerModel"], **config}
    save_pretrained(model, place / "saved", values)
    return place / "saved"


def test_an_architecture_of_a_package(package: Path, tmp_path: Path) -> None:
    folder = folder_of_weights(tmp_path, width=4, depth=3, act="tanh")
    made = generate(folder, Options(name="tower"))
    assert "class TowerModel(nn.Module):" in made.text
    assert "x = ops.tanh(layer(x))" in made.text
    source, weights = write(made, tmp_path)
    model = load_module(source).Model.from_file(weights)
    assert model(np.ones((2, 4), np.float32)).shape == (2, 4)


def test_its_configuration_is_read_as_ours_is(package: Path, tmp_path: Path) -> None:
    folder = folder_of_weights(tmp_path, width=4, depth=3, act="gelu", odd=1)
    with pytest.raises(UnsupportedError, match=r"(?s)act: .*got .gelu.*odd: "):
        generate(folder)
    (folder / "config.json").write_text(json.dumps({"model_type": "steeple"}))
    assert "tower, umt5" in unknown(folder)


@pytest.fixture
def relu(tmp_path: Path) -> Path:
    x = onnx.helper.make_tensor_value_info("x", 1, [2])
    y = onnx.helper.make_tensor_value_info("y", 1, [2])
    node = onnx.helper.make_node("Relu", ["x"], ["y"])
    graph = onnx.helper.make_graph([node], "g", [x], [y])
    opset = onnx.helper.make_opsetid("", 18)
    onnx.save(onnx.helper.make_model(graph, opset_imports=[opset]), tmp_path / "m.onnx")
    return tmp_path / "m.onnx"


def test_a_page_of_a_package_takes_the_place_of_ours(
    package: Path, relu: Path, tmp_path: Path
) -> None:
    ours = Path(burnish.templates.__file__).with_name("module.py.jinja").read_text()
    (package / "module.py.jinja").write_text(f"# Theirs.\n{ours}")
    assert generate(relu).text.startswith("# Theirs.\n")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "module.py.jinja").write_text(f"# Mine.\n{ours}")
    assert generate(relu, template_dir=tmp_path / "mine").text.startswith("# Mine.\n")


def test_what_is_no_package_is_reported(package: Path, relu: Path) -> None:
    (package / "__init__.py").write_text("1 / 0")
    with pytest.raises(UsageError, match=r"templates.*'towers'.*ZeroDivisionError"):
        generate(relu)
    package.rename(package.with_name("gone"))
    package.with_suffix(".py").write_text("")
    with pytest.raises(UsageError, match=r"expected packages, .*'towers'"):
        generate(relu)
