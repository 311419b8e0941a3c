"""`burnish inspect` of a weights file: names, shapes and dtypes; no data is read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from burnish._files.shown import shown
from burnish.serialize import Weights


@dataclass(frozen=True)
class Held:
    """One tensor of the file."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    bytes: int
    shares: str | None  #: the first tensor before it in the same memory


@dataclass(frozen=True)
class Contents:
    """The report; `--json` prints it."""

    model: str
    kind: str
    tensors: tuple[Held, ...]
    parameters: int
    bytes: int  #: shared tensors count each time
    metadata: dict[str, str]
    beside: dict[str, str]  #: top-level keys without tensors, and what they hold
    architecture: Described | None  #: of a folder with config.json


@dataclass(frozen=True)
class Described:
    """The model according to config.json, and why it cannot be written as such."""

    model_type: str
    name: str  #: the class that is written; "" where there is no template
    sizes: dict[str, object]
    notes: tuple[str, ...]
    refused: str  #: "" when the model can be written


def run(path: Path, inert: bool, as_json: bool) -> int:
    """Print the tensors by name; 1 when a folder's configuration is refused.

    Raises RecordError for a damaged file.
    """
    from burnish.codegen.tools import console

    found = contents(path, inert)
    if as_json:
        console.emit(found)
        return _code(found)
    console.line(f"{path.resolve().name}: {found.kind}")
    if described := found.architecture:
        _describe(described)
    print()
    console.table(
        ("tensor", "shape", "dtype", "bytes", "shares"),
        [
            (t.name, str(list(t.shape)), t.dtype, t.bytes, t.shares or "")
            for t in found.tensors
        ],
    )
    for title, pairs in (("metadata", found.metadata), ("beside", found.beside)):
        for name, text in pairs.items():
            console.line(f"{title}: {name} = {text}")
    many = console.count(len(found.tensors), "tensor")
    print(f"\n{many}, {found.parameters:,} values, {found.bytes:,} bytes")
    if described:
        _advise(described, path)
    return _code(found)


def _describe(described: Described) -> None:
    from burnish.codegen.tools.console import line

    if described.name:
        line(f"{described.name}, model_type {described.model_type}")
        line(", ".join(f"{name}={value}" for name, value in described.sizes.items()))


def _advise(described: Described, path: Path) -> None:
    from burnish.codegen.tools.console import say

    for note in described.notes:
        say(f"note: {note}")
    if described.refused:
        say(described.refused)
    else:
        say(f"next: burnish generate {path}")


def _code(found: Contents) -> int:
    return 1 if found.architecture and found.architecture.refused else 0


def contents(path: Path, inert: bool = False) -> Contents:
    """The contents of a weights file, from its names and sizes alone."""
    from burnish.serialize import open_weights

    weights = open_weights(path, inert)
    owners: dict[int, str] = {}
    held = []
    for name, tensor in weights.items():
        first = owners.setdefault(id(tensor.memory), name)
        shares = None if first == name else first
        held.append(Held(name, tensor.shape, tensor.dtype, tensor.nbytes, shares))
    return Contents(
        str(path),
        weights.kind,
        tuple(held),
        sum(tensor.size for tensor in weights.values()),
        weights.nbytes,
        weights.metadata,
        _beside(weights),
        _described(path),
    )


def _beside(weights: Weights) -> dict[str, str]:
    """The contents of a file below top-level keys that have no tensors."""
    tree = weights.tree if isinstance(weights.tree, dict) else {}
    named = {k if isinstance(k, str) else shown(k): value for k, value in tree.items()}
    lengths = {len(key) for key in named}
    for name in weights:
        for end in lengths.intersection(_ends(name)):
            named.pop(name[:end], None)
    return {key: shown(value, 60) for key, value in named.items()}


def _ends(name: str) -> list[int]:
    """Where a name may be cut: before each dot, and at its end."""
    return [at for at, letter in enumerate(name) if letter == "."] + [len(name)]


def _described(path: Path) -> Described | None:
    from burnish.codegen import architectures
    from burnish.codegen.errors import ReadError, UnsupportedError, silent
    from burnish.errors import RecordError

    if not architectures.is_model_folder(path):
        return None
    try:
        if reason := architectures.unknown(path):
            note = f"{reason}; weights alone decide what is written"
            return Described("", "", {}, (note,), "")
        made = architectures.build(path, explain=silent)
    except (ReadError, RecordError, UnsupportedError) as error:
        return Described("", "", {}, (), str(error))
    return Described(made.model_type, made.name, made.sizes, made.notes, "")
