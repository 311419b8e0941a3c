"""Write the folder of a web page: the files that a browser fetches."""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import BinaryIO

from burnish._files.atomic import atomic_write
from burnish.codegen.errors import OwnershipError
from burnish.codegen.extensions.environment import filled
from burnish.codegen.output.ownership import keeping
from burnish.codegen.search import digest
from burnish.codegen.web.inputs import Input, model_in

APP = "app.py"
"""The file that belongs to the user once it is there."""

_FILES = "files.json"
"""The digests of the others, as they were written."""

_APART = ("codegen", "templates", "models")
"""Packages that a generated module never imports."""
_DATE = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True)
class Page:
    """A page before it is written.

    model: the class that it runs. loader: its class method that loads the weights.
    taken: files that may not be replaced, with the reason.
    """

    folder: Path
    module: str
    model: str
    loader: str
    inputs: list[Input]
    taken: dict[Path, str]


def planned(module: str, text: str, folder: Path, *, loader: str, force: bool) -> Page:
    """The page of a source, beside it in `folder`; nothing is written.

    loader: the class method that loads the weights. Raises UsageError for
    inputs that a page has no field for, OwnershipError where a file of the page was
    edited or is not ours, unless forced.
    """
    model, inputs = model_in(text)
    place = folder / f"{module}_web"
    taken = _taken(place)
    if taken and not force:
        raise OwnershipError(taken, mergeable=False, diff=False)
    return Page(place, module, model, loader, inputs, taken)


def write(page: Page, files: list[Path]) -> tuple[list[Path], list[Path]]:
    """Write a page for the module of these files; files written, and kept as .bak.

    app.py stays as it is where there is one.
    """
    page.folder.mkdir(parents=True, exist_ok=True)
    static = {
        "index.html": _index(page).encode(),
        "worker.js": _template("worker.js").read_bytes(),
    }
    if not (page.folder / APP).exists():
        static[APP] = app(page).encode()
    with keeping(page.taken) as kept:
        for name, data in static.items():
            with atomic_write(page.folder / name) as out:
                out.write(data)
        with atomic_write(page.folder / "model.zip") as out:
            _archive(out, files)
        written = [page.folder / name for name in (*static, "model.zip")]
        digests = {path.name: digest(path) for path in written if path.name != APP}
        with atomic_write(page.folder / _FILES) as out:
            out.write(json.dumps(digests, indent=1).encode())
    return written, kept


def app(page: Page) -> str:
    """The text of app.py."""
    return filled(
        "web/app.py.jinja",
        None,
        module=page.module,
        model=page.model,
        loader=page.loader,
        names=[each["name"] for each in page.inputs],
        pictures=[each["name"] for each in page.inputs if each["kind"] == "picture"],
    )


def _index(page: Page) -> str:
    # "<" would end the script element that holds the text
    inputs = json.dumps(page.inputs).replace("<", "\\u003c")
    return filled("web/index.html.jinja", None, title=page.module, inputs=inputs)


def _archive(out: BinaryIO, files: Sequence[Path]) -> None:
    """The runtime, the module with its weights, and what reads the page's inputs.

    The same files give the same bytes.
    """
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in _runtime(resources.files("burnish"), "burnish"):
            _add(archive, name, data.read_bytes())
        _add(archive, "page.py", _template("page.py").read_bytes())
        for path in sorted(files):
            with path.open("rb") as read, archive.open(_entry(path.name), "w") as entry:
                shutil.copyfileobj(read, entry)


def _runtime(folder: Traversable, name: str) -> Iterator[tuple[str, Traversable]]:
    """The Python files that a generated module may import."""
    for each in sorted(folder.iterdir(), key=lambda each: each.name):
        if each.name.endswith(".py"):
            yield f"{name}/{each.name}", each
        elif each.is_dir() and not (name == "burnish" and each.name in _APART):
            yield from _runtime(each, f"{name}/{each.name}")


def _add(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    archive.writestr(_entry(name), data, compresslevel=9)


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, _DATE)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    return entry


def _template(name: str) -> Traversable:
    return resources.files("burnish.templates") / "web" / name


# --- existing files ---


def _taken(folder: Path) -> dict[Path, str]:
    """Files in the way that Burnish did not write, or that were changed since."""
    try:
        known = json.loads((folder / _FILES).read_bytes())
    except (OSError, ValueError):
        known = {}
    known = known if isinstance(known, dict) else {}
    there = [folder / name for name in ("index.html", "worker.js", "model.zip")]
    return {
        path: "was changed since Burnish wrote it"
        if path.name in known
        else "was not written by Burnish"
        for path in there
        if path.exists() and known.get(path.name) != digest(path)
    }
