"""The state of generated files: current, edited, stale, weights missing or changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from burnish.codegen.errors import ReadError, UsageError
from burnish.codegen.output.generated import Options
from burnish.codegen.output.ownership import source_in, weights_reason
from burnish.codegen.search import digest, identity, shown_name, walk
from burnish.codegen.signature import Header, header_of, lines_ended, signature_of

State: TypeAlias = Literal[
    "current",
    "unreadable",
    "missing",
    "not generated",
    "stale",
    "edited",
    "weights missing",
    "weights changed",
]


#: Errors of Python's parser for text that is no Python, or that nests too deep.
_UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)


@dataclass(frozen=True)
class Result:
    """One generated file and its state.

    model: the model file's name. states: all that apply, ("current",) alone where
    nothing is the matter; state: the first of them. reason: in words.
    """

    path: Path
    model: str
    state: State
    states: tuple[State, ...]
    reason: str = ""


def check(paths: Sequence[Path], source: Path) -> Iterator[Result]:
    """The state of every generated file among and below `paths`, in their order.

    source: the folder below which model files are looked for when they do not lie
    beside the generated file. Raises UsageError for a path that does not exist.
    """
    for path in (*paths, source):
        if not path.exists():
            raise UsageError(f"{path}: expected a file or folder, there is none")
    found = list(generated(paths))
    models = _locate({h.model for _, h in found if h}, source)
    for path, header in found:
        yield result(path, header, _places(path, header, models) if header else [])


def regenerated(path: Path, source: Path) -> str:
    """The source that a generated file's model gives now, by the file's own options.

    Raises ReadError where its model file is not found.
    """
    from burnish.codegen import pipeline  # heavy, and `check` alone needs none of it

    try:
        header = header_of(path)
    except _UNREADABLE as error:
        raise ReadError(f"{path}: expected valid Python, got {error}") from None
    found = _locate({header.model}, source) if header else {}
    places = _places(path, header, found) if header else []
    if header is None or not places:
        raise ReadError(f"{path}: expected its model file beside it or below {source}")
    same = (place for place in places if identity(place) == header.sha256)
    model = next(same, places[0])
    whole = model.parent if model.name == "config.json" else model
    return pipeline.generate(whole, Options.of(header.options)).text


def generated(paths: Iterable[Path]) -> Iterator[tuple[Path, Header | None]]:
    """Every generated file among and below paths; without a header it is no Python."""
    seen = set()
    for path in _sources(paths):
        if (resolved := path.resolve()) in seen:
            continue
        seen.add(resolved)
        try:
            header = header_of(path)
        except (*_UNREADABLE, OSError):
            yield path, None
            continue
        if header is not None:
            yield path, header


def _sources(paths: Iterable[Path]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            yield from (p for p in walk(path) if p.suffix == ".py")
        else:
            yield path


def _locate(names: set[str], source: Path) -> dict[str, list[Path]]:
    """Paths below `source` of files with these names."""
    places: dict[str, list[Path]] = {}
    if names:
        for path in walk(source):
            if (key := shown_name(path)) in names:
                places.setdefault(key, []).append(path)
    return places


def result(path: Path, header: Header | None, places: list[Path]) -> Result:
    """The state of one generated file; places: where its model file may be."""
    if header is None:
        reason = "no longer valid Python"
        return Result(path, "", "unreadable", ("unreadable",), reason)
    own = path.with_suffix(".safetensors")
    found: dict[State, str] = {}
    found |= _model(header, [p for p in places if p != own] or places)
    found |= _source(path)
    if header.beside and not (own in places and digest(own) == header.sha256):
        found |= _weights(own, path)
    states = tuple(found) or ("current",)
    return Result(
        path, header.model, states[0], states, "; ".join(filter(None, found.values()))
    )


def _places(path: Path, header: Header, models: dict[str, list[Path]]) -> list[Path]:
    """Where the model file may be, beside the source first."""
    beside = (p for p in path.parent.iterdir() if shown_name(p) == header.model)
    return [*(p for p in beside if p.is_file()), *models.get(header.model, ())]


def _model(header: Header, places: list[Path]) -> dict[State, str]:
    if not places:
        return {"missing": f"{header.model} was not found"}
    if any(identity(place) == header.sha256 for place in places):
        return {}
    return {"stale": f"{places[0]} has changed"}


def _source(path: Path) -> dict[State, str]:
    signature = signature_of(lines_ended(path.read_bytes().decode()))
    if signature is None:
        return {"edited": "the header has no digest"}
    return {} if signature.genuine else {"edited": "the source was changed"}


def _weights(own: Path, path: Path) -> dict[State, str]:
    """The state of a source's weights; nothing where they are those written with it."""
    if not own.is_file():
        return {"weights missing": f"{own.name} is not there"}
    if reason := weights_reason(own):
        return {"weights changed": f"{own.name} {reason}"}
    held = signature_of(source_in(own))
    signature = signature_of(path.read_text("utf-8"))
    if held and signature and held.digest != signature.digest:
        return {"weights changed": f"{own.name} belongs to another source"}
    return {}
