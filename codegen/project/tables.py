"""[[tool.burnish.model]] in pyproject.toml, read and checked.

Needs NumPy alone, as `burnish check` does.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

from burnish.codegen.errors import UsageError
from burnish.codegen.names.identifier import Identifier
from burnish.codegen.output.generated import SWITCHES, Options, usual_name

FILE = "pyproject.toml"

WEIGHTS = ("file", "embed", "none")
QUANTIZED = ("q8", "q4")
DTYPES = ("float16", "float32")

_SWITCHES = {
    word: word.replace("_", "-")
    for word in SWITCHES
    if word not in ("half", "embed", "weights")
}
"""Options that a table has as they are, and their keys."""
_OPTIONAL = (
    *("weights", "dtype", "sha256", "quantize", "template-dir", "rules"),
    *_SWITCHES.values(),
)
_TOP = ("model", "package-dir", "backend")
_MODULE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*", re.ASCII)
_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Table:
    """One model of a project.

    label: its place in the file, for messages. source, template_dir: absolute.
    settings: its options but for the name. sha256: the digest that the model has to
    have, by file name; "" is the only file.
    """

    label: str
    source: Path
    module: str
    target: Path
    settings: Options
    dtype: str | None = None
    sha256: Mapping[str, str] | None = None
    template_dir: Path | None = None
    rules: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.target.stem


@dataclass(frozen=True)
class Project:
    """A folder with a pyproject.toml, and the models that it names.

    packages: the folder of the packages' source. backend: what the wrapper wraps.
    """

    root: Path
    packages: Path
    models: tuple[Table, ...]
    backend: str | None = None


def found(folder: Path) -> Project | None:
    """The project that a folder is in, if it has models."""
    folder = folder.resolve()
    for place in (folder, *folder.parents):
        if (place / FILE).is_file():
            project = read(place)
            return project if project.models else None
    return None


def read(root: Path) -> Project:
    """The project in this folder; without tables it has no models.

    Raises UsageError that names the wrong table and key.
    """
    path = root.resolve() / FILE
    try:
        return parsed(path, path.read_text("utf-8"))
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: expected TOML, got {error}") from None


def parsed(path: Path, text: str) -> Project:
    """The project whose pyproject.toml has this text; raises as `read` does."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path}: expected TOML, got {error}") from None
    tool = document.get("tool", {}).get("burnish", {})
    top = _Keys(f"{path}: [tool.burnish]", tool)
    top.refuse_unknown(_TOP)
    tables = top.get("model", list, [])
    packages = _packages(path.parent, top, tables)
    models = tuple(_table(path, number, t, packages) for number, t in enumerate(tables))
    _refuse_twice(models)
    return Project(path.parent, packages, models, top.get("backend", str, None))


def options(table: Table) -> Options:
    """A table's options, as `generate` takes them."""
    is_usual = table.name == usual_name(table.source)
    return replace(table.settings, name=None if is_usual else table.name)


def _packages(root: Path, top: _Keys, tables: Iterable[Any]) -> Path:
    """The folder of the packages: as configured, else found, else src/."""
    if (folder := top.get("package-dir", str, None)) is not None:
        return _inside(root, top, "package-dir", folder)
    names = (str(t.get("module", "")) for t in tables if isinstance(t, Mapping))
    first = [name.partition(".")[0] for name in names]
    for place in (root / "src", root):
        if any((place / name).is_dir() for name in first if name):
            return place
    return root / "src" if (root / "src").is_dir() else root


def _table(path: Path, number: int, entry: Any, packages: Path) -> Table:
    label = f"{path}: [[tool.burnish.model]] number {number + 1}"
    if not isinstance(entry, Mapping):
        raise UsageError(f"{label}: expected a table, got {entry!r}")
    keys = _Keys(label, entry)
    keys.refuse_unknown(("source", "module", *_OPTIONAL))
    module = _module(keys)
    keys.label = label = f"{label} ({module})"
    template = keys.get("template-dir", str, None)
    dtype = keys.one_of("dtype", DTYPES, None)
    return Table(
        label=label,
        source=_inside(path.parent, keys, "source", keys.need("source", str)),
        module=module,
        target=packages.joinpath(*module.split(".")).with_suffix(".py"),
        settings=_settings(keys, dtype),
        dtype=dtype,
        sha256=_digests(keys),
        template_dir=template and _inside(path.parent, keys, "template-dir", template),
        rules=tuple(keys.texts("rules")),
    )


def _settings(keys: _Keys, dtype: str | None) -> Options:
    weights = keys.one_of("weights", WEIGHTS, "file")
    switches = {
        word: keys.get(key, bool, SWITCHES[word]) for word, key in _SWITCHES.items()
    }
    return Options(
        half=dtype == "float16",
        embed=weights == "embed",
        weights=weights != "none",
        quantize=keys.one_of("quantize", QUANTIZED, None),
        **switches,
    )


def _module(keys: _Keys) -> str:
    module: str = keys.need("module", str)
    if not _MODULE.fullmatch(module):
        raise keys.wrong("module", "a dotted name such as my_app.mnist", module)
    name = module.rpartition(".")[2]
    if (legal := Identifier.module(name)) != name:
        raise keys.wrong("module", f"a module's name such as {legal} at the end", name)
    return module


def _digests(keys: _Keys) -> Mapping[str, str] | None:
    written = keys.get("sha256", str | dict, None)
    if written is None:
        return None
    digests = {"": written} if isinstance(written, str) else written
    for digest in digests.values():
        if not isinstance(digest, str) or not _DIGEST.fullmatch(digest.lower()):
            raise keys.wrong("sha256", "64 hexadecimal digits", digest)
    return {name: digest.lower() for name, digest in digests.items()}


def _inside(root: Path, keys: _Keys, key: str, text: str) -> Path:
    """A path inside the project; files outside do not exist where it is built."""
    pure = PurePosixPath(text)
    if pure.is_absolute() or Path(text).is_absolute() or ".." in pure.parts:
        raise keys.wrong(key, "a path inside the project, relative to its folder", text)
    return root / text


def _refuse_twice(models: Iterable[Table]) -> None:
    seen: dict[Path, Table] = {}
    for table in models:
        if table.target in seen:
            raise UsageError(
                f"{table.label}: module: expected a module of its own, got that of "
                f"number {list(seen).index(table.target) + 1}"
            )
        seen[table.target] = table


class _Keys:
    """The keys of one table, read by name and type."""

    def __init__(self, label: str, entries: Any):
        self.label = label
        if not isinstance(entries, Mapping):
            raise UsageError(f"{label}: expected a table, got {entries!r}")
        self.entries = entries

    def refuse_unknown(self, known: Iterable[str]) -> None:
        names = list(known)
        for key in self.entries:
            if key not in names:
                near = difflib.get_close_matches(key, names, 1)
                meant = f" (did you mean {near[0]}?)" if near else ""
                raise UsageError(
                    f"{self.label}: {key}{meant}: expected one of {', '.join(names)}"
                )

    def need(self, key: str, kind: Any) -> Any:
        if key not in self.entries:
            raise UsageError(f"{self.label}: {key}: expected a value, there is none")
        return self.get(key, kind, None)

    def get(self, key: str, kind: Any, default: Any) -> Any:
        if key not in self.entries:
            return default
        value = self.entries[key]
        if not isinstance(value, kind):
            raise self.wrong(key, _KINDS[kind], value)
        return value

    def one_of(self, key: str, choices: tuple[str, ...], default: Any) -> Any:
        value = self.get(key, str, default)
        if value is not default and value not in choices:
            raise self.wrong(key, f"one of {', '.join(choices)}", value)
        return value

    def texts(self, key: str) -> Iterator[str]:
        for value in self.get(key, list, []):
            if not isinstance(value, str):
                raise self.wrong(key, "a list of texts", value)
            yield value

    def wrong(self, key: str, expected: str, got: Any) -> UsageError:
        return UsageError(f"{self.label}: {key}: expected {expected}, got {got!r}")


_KINDS = {
    str: "a text",
    bool: "true or false",
    list: "a list",
    str | dict: "a text, or a table of digests by file name",
}
