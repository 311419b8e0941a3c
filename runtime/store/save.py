"""Values out of a module: to another one, or to a file in another form."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

from burnish import serialize
from burnish.errors import RecordError
from burnish.nn.core import record, tables
from burnish.nn.core.module import Module
from burnish.store.filter import Filter
from burnish.store.frameworks import PYTORCH
from burnish.store.layout import Layout
from burnish.store.names import Renaming, renamer, unique
from burnish.store.places import Place, places
from burnish.store.precision import Precision
from burnish.store.precision import precision as precision_of


def collect(
    module: Module,
    *,
    only: Filter | None = None,
    rename: Renaming = (),
    layout: Layout = PYTORCH,
    precision: Any = None,
    every_name: bool = False,
) -> dict[str, Any]:
    """The module's arrays by name, in the layout that is asked for; nothing is copied.

    With `load` it moves parts of one module to another. Quantized parameters stay so in
    PyTorch's layout, and are plain numbers in others. only: a Filter. rename: applied
    last. precision: a dtype or Precision for floating-point values. every_name: a
    shared parameter comes under all its paths, else under the first.
    """
    change, want = renamer(rename), precision_of(precision)
    names: list[tuple[str, str]] = []
    state: dict[str, Any] = {}
    arrays: dict[int, dict[str, Any]] = {}  # a shared parameter stays one array
    for place in places(module):
        path, key = place.path, id(place.item)
        if not place.item.persistent or (only and not only(path, place.item)):
            continue
        if key in arrays and not every_name:
            continue
        if key not in arrays:
            arrays[key] = dict(_parts(place, layout, want))
        theirs = layout.name(place.layer, place.attribute)
        for end, array in arrays[key].items():
            new = path.removesuffix(place.attribute) + theirs + end
            names.append((path + end, change(new)))
            state[path + end] = array
    found = unique(names, type(module).__name__)
    return {new: state[old] for new, old in found.items()}


def _parts(
    place: Place, layout: Layout, want: Precision | None
) -> Iterator[tuple[str, Any]]:
    """The stored arrays of a tensor, by the suffix of its name."""
    if place.item.scheme is not None and layout is PYTORCH:
        for part, array in place.item.arrays().items():
            yield f".{part}", array
        return
    dtype = want.of(place.layer) if want else None
    array = record.cast({place.path: place.item.data}, dtype)[place.path]
    yield "", layout.write(array, place.layer, place.attribute)


def save(
    module: Module,
    path: str | os.PathLike[str],
    *,
    only: Filter | None = None,
    rename: Renaming = (),
    layout: Layout = PYTORCH,
    precision: Any = None,
    every_name: bool | None = None,
    metadata: Mapping[str, str] | None = None,
    overwrite: bool = True,
) -> None:
    """Write what `collect` gives to a file, atomically: safetensors, or PyTorch's own.

    path: with the ending .pt, .pth, .bin or .ckpt a file that torch.load reads.
    every_name: None is yes for those, where it costs nothing; for safetensors, which
    would hold the values twice, no. With it, PyTorch loads tied models with
    strict=True. overwrite: whether a file may be replaced.

    Raises RecordError when one may not and is there.
    """
    where = os.fspath(path)
    if not overwrite and os.path.exists(where):
        raise RecordError(f"{where}: expected no file there; pass overwrite=True")
    if every_name is None:
        every_name = serialize.is_pytorch_name(where)
    state = collect(
        module,
        only=only,
        rename=rename,
        layout=layout,
        precision=precision,
        every_name=every_name,
    )
    if not serialize.is_pytorch_name(where):
        metadata = {**tables.metadata(module), **(metadata or {})}
    serialize.save_file(state, where, metadata)
