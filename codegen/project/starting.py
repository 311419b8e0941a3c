"""Write tables into a project's pyproject.toml; comments and order stay."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit import TOMLDocument, exceptions

from burnish._files.atomic import atomic_write
from burnish.codegen.errors import UsageError
from burnish.codegen.output.generated import usual_name
from burnish.codegen.project import tables

NEEDED, RUNS_ON = "burnish[codegen]", "burnish"
WRAPPER = "burnish.codegen.project.wrapper"
_SETUPTOOLS = "setuptools.build_meta"

Report = Callable[[str], None]


def start(
    root: Path, models: Iterable[Path], package: str | None, report: Report
) -> bool:
    """Add a table for each model, and what its build needs; whether any was missing.

    package: where the modules go, by default the project's own. tell: called with a
    line for each thing that is done. Raises UsageError where the file would not be
    valid then; nothing is written.
    """
    path = root / tables.FILE
    document = _document(path)
    before = document.as_string()
    project = tables.parsed(path, before)
    place = package or _package(root, project, document)
    for model in models:
        _add_model(document, project, root, model, place, report)
    _wire(document, path, report)
    _add(document, ("project", "dependencies"), RUNS_ON, report, "what it runs on")
    text = document.as_string()
    tables.parsed(path, text)
    if text == before:
        return False
    with atomic_write(path) as file:
        file.write(text.encode())
    return True


def _document(path: Path) -> TOMLDocument:
    try:
        return tomlkit.parse(path.read_bytes().decode())
    except OSError:
        raise UsageError(
            f"{path}: expected a project's pyproject.toml, there is none; uv init, "
            f"hatch new or flit init writes one"
        ) from None
    except (exceptions.ParseError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: expected TOML, got {error}") from None


def _package(root: Path, project: tables.Project, document: TOMLDocument) -> str:
    """The project's one package, that of its name where there are several."""
    if project.models:
        return project.models[0].module.rpartition(".")[0]
    found = [
        entry.name
        for place in (root / "src", root)
        if place.is_dir()
        for entry in sorted(place.iterdir())
        if (entry / "__init__.py").is_file() and entry.name.isidentifier()
    ]
    name = re.sub(r"[-.]+", "_", str(document.get("project", {}).get("name", "")))
    if name in found or len(found) == 1:
        return name if name in found else found[0]
    raise UsageError(
        f"--package: expected the package to write modules into, "
        f"{'none was found' if not found else 'there are ' + ', '.join(found)}"
    )


def _add_model(
    document: TOMLDocument,
    project: tables.Project,
    root: Path,
    model: Path,
    package: str,
    report: Report,
) -> None:
    whole = model.resolve()
    if not model.exists():
        raise UsageError(f"{model}: expected a model file or folder, there is none")
    if not whole.is_relative_to(root.resolve()):
        raise UsageError(f"{model}: expected a model inside {root}, where it is built")
    if any(table.source.resolve() == whole for table in project.models):
        report(f"{model}: has a table already")
        return
    source = whole.relative_to(root.resolve()).as_posix()
    name = usual_name(model)
    table = tomlkit.table()
    table.add("source", source)
    table.add("module", f"{package}.{name}" if package else name)
    every = _at(document, ("tool", "burnish"), is_super=True)
    if "model" not in every:
        every.add("model", tomlkit.aot())
    every["model"].append(table)
    report(f"[[tool.burnish.model]]: {source} -> {table['module']}")


def _wire(document: TOMLDocument, path: Path, report: Report) -> None:
    """Add to the build system what it needs in order to call Burnish."""
    system = _at(document, ("build-system",))
    if "requires" not in system:
        system["requires"] = tomlkit.item(["setuptools>=77"])
        report("[build-system]: setuptools, as there was none")
    backend = str(system.get("build-backend", _SETUPTOOLS))
    if "build-backend" not in system:
        system["build-backend"] = backend
    _add(document, ("build-system", "requires"), NEEDED, report, "what generates")
    if backend.startswith("setuptools.") or backend == WRAPPER:
        return
    if backend.startswith("hatchling."):
        targets = document.get("tool", {}).get("hatch", {}).get("build", {})
        if "burnish" not in targets.get("hooks", {}):
            _at(document, ("tool", "hatch", "build", "hooks", "burnish"))
            report("[tool.hatch.build.hooks.burnish]: the hook")
        return
    if "backend-path" in system:
        raise UsageError(
            f"{path}: [build-system]: backend-path: expected a backend that is "
            f"installed, got one of the project's own: it can call {WRAPPER}"
        )
    system["build-backend"] = WRAPPER
    _at(document, ("tool", "burnish"))["backend"] = backend
    report(f"[build-system]: build-backend = {WRAPPER!r}, around {backend}")


def _at(document: Any, path: tuple[str, ...], is_super: bool = False) -> Any:
    """The table at a path; those that are missing are made."""
    for number, name in enumerate(path):
        if name not in document:
            inner = number < len(path) - 1 or is_super
            document.add(name, tomlkit.table(is_super_table=inner))
        document = document[name]
    return document


def _add(
    document: TOMLDocument, path: tuple[str, str], wanted: str, report: Report, why: str
) -> None:
    """A requirement, where none of that package is in the list yet."""
    table, key = path
    held = document.get(table)
    if held is None or key in held.get("dynamic", ()):
        return
    if key not in held:
        held[key] = tomlkit.array()
    there = [str(each).replace(" ", "") for each in held[key]]
    if any(re.match(rf"{re.escape(wanted)}(?![\w.-])", each) for each in there):
        return
    held[key].append(wanted)
    report(f"[{table}]: {key}: {wanted}, {why}")
