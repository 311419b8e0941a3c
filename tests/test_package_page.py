"""docs/package.md, followed: files written, wheel built, run beside NumPy alone.

No index is asked: the wheels of the page and of Burnish are built by the setuptools
that is there and unpacked beside a link to NumPy; Python runs without site-packages.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import zipfile
from importlib import resources
from pathlib import Path

import numpy as np
import pytest

from burnish.codegen.cli import main
from tests.test_docs import ROOT, Block, blocks

pytest.importorskip("setuptools", minversion="77")

pytestmark = pytest.mark.slow

PAGE = ROOT / "docs" / "package.md"
BUILD = [sys.executable, "-m", "pip", "wheel", "--no-build-isolation", "--quiet"]


def _run(*words: str | Path, folder: Path, site: Path | None = None) -> str:
    given = {} if site is None else {"PYTHONPATH": str(site)}
    done = subprocess.run(
        words, cwd=folder, capture_output=True, text=True, env={**os.environ, **given}
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def burnish_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("burnish")
    leave = shutil.ignore_patterns(".*", "build", "dist", "*.egg-info", "__pycache__")
    shutil.copytree(ROOT, folder / "source", ignore=leave)
    _run(*BUILD, "--no-deps", "--wheel-dir=.", folder / "source", folder=folder)
    (made,) = folder.glob("*.whl")
    return made


@pytest.fixture
def site(tmp_path: Path, burnish_wheel: Path) -> Path:
    """A folder of packages: Burnish and NumPy."""
    folder = _numpy_alone(tmp_path / "site")
    with zipfile.ZipFile(burnish_wheel) as wheel:
        wheel.extractall(folder)
    return folder


def _numpy_alone(folder: Path) -> Path:
    """A folder of packages with NumPy and nothing else."""
    folder.mkdir()
    numpy = Path(np.__file__).parent
    for place in (numpy, numpy.with_name("numpy.libs")):
        if place.exists():
            (folder / place.name).symlink_to(place)
    return folder


def _steps() -> list[Block]:
    return [b for b in blocks(PAGE) if b.language == "sh" or b.mark.startswith("file:")]


@pytest.mark.parametrize("zipped", [False, True], ids=["installed", "zipped"])
def test_the_page_step_by_step(
    zipped: bool,
    tmp_path: Path,
    burnish_wheel: Path,
    site: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    shipped = resources.files("burnish.models.mnist").joinpath("mnist.onnx")
    (project / "mnist.onnx").write_bytes(shipped.read_bytes())
    printed = ""
    for block in _steps():
        if block.mark:
            file = Path(block.mark.removeprefix("file: "))
            file.parent.mkdir(exist_ok=True)
            file.write_text(block.text, "utf-8")
            continue
        for line in block.text.splitlines():
            match shlex.split(line):
                case ["burnish", *words]:
                    assert main(words) == 0
                case ["python", "-m", "pip", "wheel", *words]:
                    _run(*BUILD, *words, folder=project)
                case ["python", "-m", "pip", "install", wheel]:
                    _install(project / wheel, site, zipped)
                case ["python", "-m", "pip", "install", *_, "-t", app, _, wheel]:
                    for each in (burnish_wheel, project / wheel):
                        _install(each, project / app, zipped=False)
                case ["python", "-m", "zipapp", *words]:
                    _run(sys.executable, "-m", "zipapp", *words, folder=project)
                case ["python", archive]:
                    bare = _numpy_alone(tmp_path / "bare")
                    command = [sys.executable, "-S", "-P", project / archive]
                    assert _run(*command, folder=tmp_path, site=bare) == printed
                case ["python", "-c", code]:
                    # -S: no site-packages; the current folder has no package either
                    command = [sys.executable, "-S", "-P", "-c", code]
                    path = [*sorted(site.glob("*.whl")), site]
                    places = os.pathsep.join(map(str, path))
                    printed = _run(*command, folder=tmp_path, site=Path(places))
                case words:
                    pytest.fail(f"who runs {words}?")
    first, second = map(int, printed.strip("[]\n").split(","))
    assert first == second
    assert first in range(10)


def _install(wheel: Path, site: Path, zipped: bool) -> None:
    if zipped:
        shutil.copy(wheel, site)
    else:
        with zipfile.ZipFile(wheel) as opened:
            opened.extractall(site)
