"""Generate and update the modules of a project.

What a user changed is never replaced, and nothing is written where nothing changed.
The generator is imported where a module is generated: most hooks of a build need none.
"""

from __future__ import annotations

import filecmp
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from burnish.codegen.errors import (
    ConversionError,
    Explain,
    OwnershipError,
    ReadError,
    about,
    already,
    noting,
)
from burnish.codegen.output.generated import Existing, Generated
from burnish.codegen.output.ownership import Settled, settle, weights_reason
from burnish.codegen.project.tables import FILE, Project, Table, options
from burnish.codegen.search import digest, walk
from burnish.codegen.signature import is_untouched, lines_ended
from burnish.codegen.weights.entries import Progress


@dataclass(frozen=True)
class Module:
    """One module of a project as it ought to be; nothing of it is written yet."""

    table: Table
    settled: Settled

    @property
    def inputs(self) -> tuple[Path, ...]:
        """All files that it is made of."""
        own = self.table.template_dir
        templates = tuple(walk(own)) if own else ()
        return (*self.settled.generated.inputs, *templates)

    @property
    def outputs(self) -> tuple[Path, ...]:
        """The files that belong to it, in the source tree."""
        settled = self.settled
        return (settled.source, *([settled.stored] if settled.has_weights else []))


@dataclass(frozen=True)
class Updated:
    """The outcome for one module: the files that were written and those that were kept.

    written: empty where nothing changed.
    """

    module: Module
    written: tuple[Path, ...]
    kept: tuple[Path, ...] = ()


def modules(
    project: Project,
    *,
    existing: Existing = "keep",
    progress: Progress | None = None,
    explain: Explain | None = None,
) -> list[Module]:
    """Every module of a project; nothing is written.

    Raises ConversionError for a model that is missing, is another than its pin says or
    cannot be converted, and OwnershipError for source that its user has edited.
    """
    made = [_generated(project, t, progress, explain) for t in project.models]
    return [
        Module(table, _settled(table, generated, existing))
        for table, generated in zip(project.models, made, strict=True)
    ]


def up_to_date(
    project: Project, every: Iterable[Module], into: Path | None = None
) -> list[Updated]:
    """Write what changed.

    into: the folder of the packages, instead of that of the source tree.
    """
    done: list[Updated] = []
    with noting(lambda: already([path for each in done for path in each.written])):
        for module in every:
            done.append(_put(project, module, into))
    return done


def cleaned(project: Project) -> list[Path]:
    """Remove unedited generated files; returns their paths.

    Edited source stays, with its weights, and so do weights that a model is read from.
    """
    gone: list[Path] = []
    for table in project.models:
        stored = table.target.with_suffix(".safetensors")
        if not is_untouched(table.target):
            continue
        gone.append(table.target)
        read = table.source in (stored, stored.parent)
        if stored.is_file() and not read and not weights_reason(stored, table.name):
            gone.append(stored)
    for path in gone:
        path.unlink()
    return gone


def inputs_of(every: Iterable[Module]) -> list[Path]:
    """All files that modules are made of, each once."""
    return list(dict.fromkeys(path for module in every for path in module.inputs))


def outputs(every: Iterable[Module]) -> list[Path]:
    """All files that belong to modules, those that make their folders packages too."""
    paths = [path for module in every for path in module.outputs]
    for module in every:
        above = module.settled.folder
        for _ in module.table.module.split(".")[1:]:
            begins = above / "__init__.py"  # a new folder gets one
            paths += [begins] if begins.exists() or not above.exists() else []
            above = above.parent
    return list(dict.fromkeys(paths))


def generated_alone(every: Iterable[Module]) -> list[Path]:
    """Files that a build makes: none that it is made of, such as weights in place."""
    made_of = {path.resolve() for path in inputs_of(every)}
    paths = (path for module in every for path in module.outputs)
    return [path for path in paths if path.resolve() not in made_of]


def within(project: Project, path: Path) -> str:
    """A path of the project from its folder, as archives have it."""
    return path.resolve().relative_to(project.root.resolve()).as_posix()


def inputs(table: Table) -> tuple[Path, ...]:
    """The files of a model without converting it."""
    from burnish.codegen.readers import read
    from burnish.serialize import is_weights

    source = _existing(table)
    if source.is_dir():
        return tuple(walk(source))
    if source.name.endswith(".index.json"):
        return tuple(
            path for path in walk(source.parent) if path.parent == source.parent
        )
    return (source,) if is_weights(source) else read(source).files


def _generated(
    project: Project, table: Table, progress: Progress | None, explain: Explain | None
) -> Generated:
    from burnish.codegen import pipeline
    from burnish.codegen.project import rules

    source = _existing(table)
    if table.sha256 and source.is_file() and list(table.sha256) == [""]:
        _check_pin(table, (source,))
    rules.load(table.rules, project.root)
    with _about(table):
        made = pipeline.generate(
            source,
            options(table),
            template_dir=table.template_dir,
            progress=progress,
            explain=explain,
        )
    _check_dtype(table, made)
    if table.sha256:
        _check_pin(table, made.inputs)
    return made


def _existing(table: Table) -> Path:
    if not table.source.exists():
        raise ReadError(
            f"{table.label}: source: expected a model, there is no {table.source}"
        )
    if table.template_dir and not table.template_dir.is_dir():
        raise ReadError(
            f"{table.label}: template-dir: expected a folder, there is no "
            f"{table.template_dir}"
        )
    return table.source


@contextmanager
def _about(table: Table) -> Iterator[None]:
    """Errors inside say which table they are about."""
    try:
        with about(table.source):
            yield
    except Exception as error:
        error.add_note(table.label)
        raise


def _check_dtype(table: Table, made: Generated) -> None:
    if table.dtype != "float32":
        return
    for entry in made.weights:
        if "float" in entry.dtype and entry.dtype != "float32":
            raise ConversionError(
                f"{table.label}: dtype: expected weights in float32, got "
                f"{entry.dtype} ({entry.path}); without dtype they stay as they are"
            )


def _check_pin(table: Table, files: Iterable[Path]) -> None:
    """Raise ReadError for files whose digest differs from the pinned one."""
    found = {path.name: digest(path) for path in files}
    expected = dict(table.sha256 or {})
    if list(expected) == [""]:
        if len(found) > 1:
            line = ", ".join(f'"{name}" = "{value}"' for name, value in found.items())
            raise ReadError(
                f"{table.label}: sha256: expected a digest for each file of the model; "
                f"write sha256 = {{ {line} }}"
            )
        expected = dict.fromkeys(found, expected[""])
    for name in {**expected, **found}:
        if expected.get(name) != found.get(name):
            raise ReadError(
                f"{table.label}: sha256: {name}: expected "
                f"{expected.get(name, 'no such file')}, got "
                f"{found.get(name, 'no such file')}: the model has changed; if it is "
                f"meant to, write the new digest"
            )


def _settled(table: Table, made: Generated, existing: Existing) -> Settled:
    """The files to write. Raises ConversionError rather than replace others' work."""
    try:
        return settle(made, table.target.parent, existing)
    except OwnershipError as error:
        found = "; ".join(f"{path} {reason}" for path, reason in error.taken.items())
        merge = "`burnish generate --merge` brings the changes into the new source, "
        raise ConversionError(
            f"{table.label}: module: {found}. Nothing was written. In the project's "
            f"folder `burnish generate --diff` shows what would change, "
            f"{merge if error.mergeable else ''}`burnish generate --force` replaces "
            f"what is there and keeps it as .bak; or take the table out of {FILE}, and "
            f"the file is source like any other"
        ) from None


def _put(project: Project, module: Module, into: Path | None) -> Updated:
    from burnish.codegen import pipeline

    settled = module.settled
    if into is not None:
        folder = into / settled.folder.relative_to(project.packages)
        whole = settled.has_weights  # also those that are in the source tree already
        settled = replace(settled, folder=folder, weights=whole, kept=())
    if not settled.kept and _is_there(settled):
        return Updated(module, ())
    written, kept = pipeline.put(settled)
    return Updated(module, tuple(written), tuple(kept))


def _is_there(settled: Settled) -> bool:
    """Whether the files equal the outputs, byte by byte."""
    if not settled.source.is_file():
        return False
    held = settled.source.read_bytes().decode(errors="replace")
    if lines_ended(held) != lines_ended(settled.text):
        return False
    if not settled.weights:
        return True
    if not settled.stored.is_file():
        return False
    from burnish.codegen import pipeline

    with tempfile.TemporaryDirectory() as folder:
        again = replace(settled, folder=Path(folder))
        pipeline.put(again)
        return filecmp.cmp(again.stored, settled.stored, shallow=False)
