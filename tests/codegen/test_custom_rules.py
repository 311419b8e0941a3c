"""Operators that a user teaches or replaces, without touching Burnish."""

from __future__ import annotations

import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from burnish import ops
from burnish.codegen.backend import BurnishBackend
from burnish.codegen.cli import main
from burnish.codegen.errors import UnsupportedError, UsageError
from burnish.codegen.extensions.installed import modules
from burnish.codegen.ops import function, onnx_op
from burnish.codegen.pipeline import generate
from burnish.operator import operator
from tests.harness.rules import own_rules

X = np.array([[-1.0, 2.0], [3.0, -4.0]], np.float32)

RULES = """
from burnish.codegen.ops import call, onnx_op


@onnx_op("Doubled", domain="my.domain")
def doubled(x):
    return call("mul", x, 2.0)
"""


@pytest.fixture(autouse=True)
def _rules_of_this_test_only() -> Iterator[None]:
    with own_rules():
        yield


@pytest.fixture
def softly() -> Iterator[types.ModuleType]:
    """A user's module with an operator of its own."""
    module = types.ModuleType("softly")

    @operator
    def soft_sign(x, *, slope: float = 1.0):  # type: ignore[no-untyped-def]
        return slope * x / (1 + abs(x))

    @soft_sign.vjp
    def _(g, y, x, *, slope):  # type: ignore[no-untyped-def]
        return g * slope / (1 + ops.abs(x)) ** 2

    soft_sign.__module__ = "softly"
    module.soft_sign = soft_sign  # type: ignore[attr-defined]
    sys.modules["softly"] = module
    yield module
    del sys.modules["softly"]


def model_of(op_type: str, domain: str = "", **attributes: float) -> onnx.ModelProto:
    node = helper.make_node(op_type, ["x"], ["y"], domain=domain, **attributes)
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 2])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 2])
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("my.domain", 1)]
    graph = helper.make_graph([node], "g", [x], [y])
    return helper.make_model(graph, opset_imports=opsets)


def test_a_new_operator_is_imported_from_where_it_is(
    softly: types.ModuleType, tmp_path: Path
) -> None:
    @onnx_op("SoftSign", domain="my.domain")
    def soft_sign(x, *, slope: float = 1.0):  # type: ignore[no-untyped-def]
        return function(softly.soft_sign, x, slope=slope)

    model = model_of("SoftSign", "my.domain", slope=2.0)
    onnx.save(model, tmp_path / "m.onnx")
    text = generate(tmp_path / "m.onnx").text
    assert "import softly\nfrom burnish import nn\n" in text
    assert "return softly.soft_sign(x, slope=2.0)" in text
    (y,) = BurnishBackend.prepare(model).run([X])
    np.testing.assert_allclose(y, 2 * X / (1 + abs(X)), rtol=1e-6)


def test_an_operator_that_nobody_taught_is_reported(tmp_path: Path) -> None:
    onnx.save(model_of("SoftSign", "my.domain"), tmp_path / "m.onnx")
    with pytest.raises(UnsupportedError, match=r"my\.domain\.SoftSign"):
        generate(tmp_path / "m.onnx")


def test_a_known_operator_is_replaced() -> None:
    @onnx_op("Relu")
    def relu(X):  # type: ignore[no-untyped-def]
        return function(ops.leaky_relu, X)

    (y,) = BurnishBackend.prepare(model_of("Relu")).run([X])
    np.testing.assert_allclose(y, np.where(X > 0, X, 0.01 * X))


def test_rules_come_from_a_folder_whose_other_files_do_not_run(tmp_path: Path) -> None:
    """The current folder is behind all others: its rich.py and numpy.py stay out."""
    (tmp_path / "my_rules.py").write_text(RULES)
    for name in ("rich", "numpy", "json", "onnx"):
        ran = f"open({str(tmp_path / 'ran')!r}, 'w').close()\n"
        (tmp_path / f"{name}.py").write_text(ran)
    onnx.save(model_of("Doubled", "my.domain"), tmp_path / "m.onnx")
    command = [sys.executable, "-P", "-m", "burnish", "generate", "m.onnx"]
    done = subprocess.run(
        [*command, "--rules", "my_rules", "--explain"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "m.py").exists()
    assert not (tmp_path / "ran").exists()


def test_rules_on_the_command_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    Path("my_rules.py").write_text(RULES)
    onnx.save(model_of("Doubled", "my.domain"), "m.onnx")
    assert main(["generate", "m.onnx"]) == 1
    assert main(["generate", "m.onnx", "--rules", "nowhere"]) == 2
    assert main(["generate", "m.onnx", "--rules", "my_rules"]) == 0
    assert (
        "return x * 2.0" in Path("m.py").read_text()
        or "ops.mul(x, 2.0)" in Path("m.py").read_text()
    )
    assert "'nowhere'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("raise ValueError('odd')", "got ValueError: odd"),
        ("return x.nothing", "got AttributeError"),
        ("return None", "it returned None"),
        ("return 'x', x", "it returned ('x', "),
    ],
)
def test_a_rule_that_fails_is_no_error_of_burnish(
    body: str,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "odd_rules", raising=False)
    Path("odd_rules.py").write_text(RULES.partition("    return")[0] + f"    {body}\n")
    onnx.save(model_of("Doubled", "my.domain"), "m.onnx")
    assert main(["generate", "m.onnx", "--rules", "odd_rules"]) == 1
    printed = capsys.readouterr().err
    assert "m.onnx: node 'node' (Doubled), given FLOAT[" in printed
    assert "expected the rule odd_rules.doubled to return an expression" in printed
    assert message in printed
    assert not Path("m.py").exists()


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of packages, as they are installed; one has an entry point for rules."""
    about = tmp_path / "doubled-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: doubled\nVersion: 1.0\n"
    )
    (about / "entry_points.txt").write_text(
        "[burnish.operators]\nmine = doubled_rules\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    modules.cache_clear()
    yield tmp_path
    modules.cache_clear()
    sys.modules.pop("doubled_rules", None)


def test_rules_of_an_installed_package(installed: Path) -> None:
    (installed / "doubled_rules.py").write_text(RULES)
    onnx.save(model_of("Doubled", "my.domain"), installed / "model.onnx")
    assert "return ops.mul(x, 2.0)" in generate(installed / "model.onnx").text


def test_an_installed_package_that_cannot_be_imported(installed: Path) -> None:
    (installed / "doubled_rules.py").write_text("1 / 0")
    onnx.save(model_of("Relu"), installed / "model.onnx")
    with pytest.raises(
        UsageError, match=r"'doubled_rules'.*ZeroDivisionError.*doubled"
    ):
        generate(installed / "model.onnx")
