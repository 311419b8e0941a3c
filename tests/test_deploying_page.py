"""docs/deploying.md, followed: every recipe runs where NumPy is all there is.

No index is asked: NumPy is a link to the one that is there. No container runtime is
needed: the instructions of the Dockerfile are done in a folder.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from burnish.codegen.cli import main
from tests.test_docs import ROOT, Reader, blocks

pytest.importorskip("setuptools", minversion="77")

pytestmark = pytest.mark.slow

PAGE = ROOT / "docs" / "deploying.md"
PASSED = "selftest passed"


def bare(folder: Path) -> None:
    """NumPy and nothing else, as `pip install --target` leaves it."""
    folder.mkdir()
    numpy = Path(np.__file__).parent
    for place in (numpy, numpy.with_name("numpy.libs")):
        if place.exists():
            (folder / place.name).symlink_to(place)


def shell(script: str, folder: Path, **more: str) -> str:
    """The output of a script; it runs with this Python, and pip asks nobody."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    given = {"PATH": path, "PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0", **more}
    done = subprocess.run(
        ["bash", "-euc", script],
        cwd=folder,
        capture_output=True,
        text=True,
        env={**os.environ, **given},
    )
    assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What each recipe printed at its end, by its heading's last word."""
    folder = tmp_path_factory.mktemp("deploying")
    shutil.copy(ROOT / "models" / "mnist" / "mnist.onnx", folder)
    found: dict[str, str] = {}
    text = PAGE.read_text("utf-8").splitlines()
    before = Path.cwd()
    os.chdir(folder)
    try:
        for block in blocks(PAGE):
            headings = [line for line in text[: block.line] if line.startswith("## ")]
            if block.mark.startswith("file: "):
                Reader(PAGE).follow(block)
            elif block.language == "sh":
                found[headings[-1].removeprefix("## ")] = _followed(block.text, folder)
    finally:
        os.chdir(before)
    return found


def _followed(text: str, folder: Path) -> str:
    lines = []
    for line in text.splitlines():
        match shlex.split(line):
            case ["burnish", *words]:
                assert main(words) == 0
            case ["python", "-m", "pip", "install", "--target", place, "numpy"]:
                lines.append(f"test -d {place}")
            case ["docker", "build", *_]:
                return _built(folder)
            case _:
                lines.append(line)
    if not (folder / "bare").exists():
        bare(folder / "bare")
    return shell("\n".join(lines), folder)


def _built(folder: Path) -> str:
    """The Dockerfile's instructions, done in a folder; what its command prints."""
    root, place = folder / "image", folder / "image"
    site = folder / "image-site"
    bare(site)
    printed = ""
    for line in (folder / "Dockerfile").read_text().splitlines():
        word, _, rest = line.partition(" ")
        if word == "COPY":
            source, target = rest.split()
            shutil.copytree(folder / source, root / target.lstrip("/"))
        elif word == "WORKDIR":
            place = root / rest.lstrip("/")
        elif word in ("RUN", "CMD") and "pip install" not in rest:
            command = json.loads(rest) if word == "CMD" else shlex.split(rest)
            alone = shlex.join([command[0], "-S", *command[1:]])
            printed = shell(alone, place, PYTHONPATH=str(site))
        else:
            assert word == "FROM" or rest.endswith("pip install --no-cache-dir numpy")
    return printed


def test_the_self_test_passes(printed: dict[str, str]) -> None:
    assert PASSED in printed["A self-test"]


def test_the_wheel_proves_itself_beside_numpy_alone(printed: dict[str, str]) -> None:
    assert PASSED in printed["A wheel with the model in it"]


def test_the_zipapp_reads_its_weights(printed: dict[str, str]) -> None:
    assert printed["A zipapp"].strip().isdigit()


def test_the_container_proves_itself(printed: dict[str, str]) -> None:
    assert PASSED in printed["A container with NumPy alone"]


def test_the_function_answers_as_the_zipapp_does(printed: dict[str, str]) -> None:
    answer = printed["A zipapp"].strip()
    assert printed["A serverless function"].strip() == f"{{'digits': [{answer}]}}"
