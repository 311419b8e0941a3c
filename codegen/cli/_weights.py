"""`burnish inspect` on a weights file: what is in it, none of it read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


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
    bytes: int  #: what is shared counts each time
    metadata: dict[str, str]
    beside: dict[str, str]  #: top-level keys without tensors, and what they hold


def run(path: Path, inert: bool, as_json: bool) -> int:
    """Print the tensors by name. Raises RecordError for a damaged file."""
    from burnish.codegen import console

    found = contents(path, inert)
    if as_json:
        console.emit(found)
        return 0
    print(f"{path.name}: {found.kind}\n")
    console.table(
        ("tensor", "shape", "dtype", "bytes", "shares"),
        [
            (t.name, str(list(t.shape)), t.dtype, t.bytes, t.shares or "")
            for t in found.tensors
        ],
    )
    for title, pairs in (("metadata", found.metadata), ("beside", found.beside)):
        for name, text in pairs.items():
            print(f"{title}: {name} = {text}")
    many = console.count(len(found.tensors), "tensor")
    print(f"\n{many}, {found.parameters:,} values, {found.bytes:,} bytes")
    return 0


def contents(path: Path, inert: bool = False) -> Contents:
    """What the file holds, from its names and sizes alone."""
    from burnish.serialize import open_weights

    weights = open_weights(path, inert)
    owners: dict[int, str] = {}
    held = []
    for name, tensor in weights.items():
        first = owners.setdefault(id(tensor.memory), name)
        shares = None if first == name else first
        held.append(Held(name, tensor.shape, tensor.dtype, tensor.nbytes, shares))
    tops = {name.partition(".")[0] for name in weights}
    tree = weights.tree if isinstance(weights.tree, dict) else {}
    return Contents(
        str(path),
        weights.kind,
        tuple(held),
        sum(tensor.size for tensor in weights.values()),
        weights.nbytes,
        weights.metadata,
        {str(k): repr(v)[:60] for k, v in tree.items() if str(k) not in tops},
    )
