"""The command: see the package."""

from __future__ import annotations

import argparse
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from pathlib import Path

from tests.corpus.digests import of_folder
from tests.corpus.graphs import write_cases

ROOT = Path(__file__).parents[2]
FILE = Path(__file__).with_name("digests.txt")


def main() -> int:
    """Print which cases differ, and how many there are; 1 when any differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.corpus")
    parser.add_argument("--folder", type=Path, help="a recorded corpus")
    parser.add_argument("--against", metavar="REV", help="compare with this commit's")
    parser.add_argument("--only", default="", help="cases whose names start with this")
    parser.add_argument("--write", action="store_true", help="write digests.txt")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.folder or Path(scratch, "cases")
        if not options.folder:
            write_cases(folder, options.only)
        found = of_folder(folder, options.only)
        if options.write:
            every = _recorded().items()
            pages = {k: v for k, v in every if not k.startswith(options.only)} | found
            FILE.write_text("".join(f"{k}: {pages[k]}\n" for k in sorted(pages)))
            return 0
        if options.against:
            place = Path(scratch, "before")
            before = of_commit(options.against, folder, options.only, place)
        else:
            before = _recorded()
            before = {k: v for k, v in before.items() if k.startswith(options.only)}
    absent = {name for name in before.keys() - found if name.startswith("gallery/")}
    names = sorted((before.keys() | found.keys()) - absent)
    differing = [name for name in names if before.get(name) != found.get(name)]
    for name in differing:
        print(f"{name}: {before.get(name, 'none')} -> {found.get(name, 'none')}")
    print(f"{len(differing)} of {len(names)} cases differ")
    if absent:
        print(f"originals that are not in the cache: {', '.join(sorted(absent))}")
    return int(bool(differing))


def _recorded() -> dict[str, str]:
    return dict(line.split(": ") for line in FILE.read_text().splitlines())


def of_commit(commit: str, folder: Path, only: str, place: Path) -> dict[str, str]:
    """The digests that the generator of a commit gives.

    Its packages are laid out as installed, in `place`.
    """
    archive = subprocess.run(
        ["git", "archive", commit], cwd=ROOT, capture_output=True, check=True
    )
    checkout = place / "checkout"
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as tar:
        tar.extractall(checkout, filter="data")
    project = tomllib.loads((checkout / "pyproject.toml").read_text())
    for package, name in sorted(project["tool"]["setuptools"]["package-dir"].items()):
        target = place / package.replace(".", "/")
        (checkout / name).rename(target)
    paths = os.pathsep.join([str(place), str(ROOT)])
    done = subprocess.run(
        [sys.executable, "-m", "tests.corpus.digests", str(folder.resolve()), only],
        cwd=place,
        env=os.environ | {"PYTHONPATH": paths},
        stdout=subprocess.PIPE,
        check=True,
    )
    found: dict[str, str] = json.loads(done.stdout)
    return found


if __name__ == "__main__":
    sys.exit(main())
