"""A wheel, installed in an environment of its own, works from any folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
Run = Callable[..., "subprocess.CompletedProcess[str]"]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project as it would be published."""
    folder = tmp_path_factory.mktemp("wheel")
    leave = shutil.ignore_patterns(".*", "build", "dist", "*.egg-info", "__pycache__")
    shutil.copytree(ROOT, folder / "source", ignore=leave)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
    target = f"--wheel-dir={folder}"
    subprocess.run([*command, target, folder / "source"], check=True)
    (made,) = folder.glob("*.whl")
    return made


@pytest.fixture(scope="module")
def bare(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Runs a program of an environment that holds the wheel and NumPy only."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=True)
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    programs = folder / ("Scripts" if os.name == "nt" else "bin")

    def run(
        program: str, *arguments: str, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [programs / program, *arguments],
            cwd=elsewhere,
            capture_output=True,
            text=True,
            check=check,
        )

    run("python", "-m", "pip", "install", "--quiet", str(wheel))
    return run


def test_the_runtime_needs_numpy_only(bare: Run) -> None:
    listed = bare("python", "-m", "pip", "list", "--format=freeze").stdout
    names = {line.partition("==")[0].lower() for line in listed.splitlines()}
    assert names - {"pip", "setuptools"} == {"burnish", "numpy"}
    code = "import burnish; print(burnish.Tensor([1.0, 2.0]).sum().item())"
    assert bare("python", "-c", code).stdout == "3.0\n"


def test_the_command_says_what_it_needs(bare: Run) -> None:
    for command in (["demo"], ["generate", "x.onnx"], ["inspect", "x.onnx"]):
        done = bare("burnish", *command, check=False)
        assert done.returncode == 1
        assert "pip install 'burnish[codegen]'" in done.stderr
        assert "Traceback" not in done.stderr
    assert bare("burnish", "check").returncode == 0
    assert bare("burnish", "--help").stdout.startswith("usage: burnish ")


def test_the_demo_with_the_extra(bare: Run, wheel: Path) -> None:
    """Last: it installs more into the environment that the others find bare."""
    bare("python", "-m", "pip", "install", "--quiet", f"{wheel}[codegen]")
    done = bare("burnish", "demo", check=False)
    assert done.returncode == 0, done.stderr
    assert "class Model(nn.Module):" in done.stdout
    assert "after: 9" in done.stdout
    assert done.stderr == ""
    assert "\x1b" not in done.stdout
