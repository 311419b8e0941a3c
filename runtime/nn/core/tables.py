"""Tables: constants in a weights file that are neither parameters nor state.

A buffer that is not persistent is in no `state_dict`. Where its initializer is
`init.loaded`, no rule makes its numbers: they travel in the metadata of safetensors
files, as safetensors bytes in zlib and base64. PyTorch does not look there, so such a
file loads with `strict=True`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from burnish import serialize
from burnish.errors import RecordError
from burnish.nn.core import record

if TYPE_CHECKING:
    from burnish.nn.core.module import Module
    from burnish.nn.core.param import Stored

KEY = "burnish.tables"
"""Where the metadata has them."""

_HEADERS = 1 << 20
"""Bytes of names and shapes that tables may take, beside their values."""


def packed(arrays: Mapping[str, Any]) -> dict[str, str]:
    """Metadata that holds these arrays, empty where there are none."""
    if not arrays:
        return {}
    import base64
    import zlib

    data = zlib.compress(serialize.to_bytes(arrays), 6)
    return {KEY: base64.b64encode(data).decode()}


def metadata(module: Module) -> dict[str, str]:
    """The module's tables as metadata of a file."""
    found = _tables(module)
    return packed({p: t.held for p, t in found if not t.is_lazy})


def restore(module: Module, weights: Any) -> None:
    """Give the module the tables that a file brings; another has them as they were.

    weights: what `open_weights` gives, or any other mapping, which brings none.
    Raises RecordError where they do not fit.
    """
    text = getattr(weights, "metadata", {}).get(KEY)
    tables = _tables(module)
    if text is None or not tables:
        return
    size = sum(table.nbytes for _, table in tables)
    held = serialize.from_bytes(_unpacked(text, size + _HEADERS, weights.where))
    kind = f"the tables of {type(module).__name__}"
    for table, array in record.fitted(kind, tables, held, strict=False):
        table.assign(array)


def complete(module: Module) -> None:
    """Take tables that are still missing from the file beside the module's source."""
    if not any(table.is_lazy for _, table in _tables(module)):
        return
    try:
        path = record.beside(type(module))
    except RecordError:
        return
    with path.open("rb") as file:
        restore(module, serialize.open_weights(file.read()))


def _tables(module: Module) -> list[tuple[str, Stored]]:
    return [(p, t) for p, t in module.named_tensors() if t.is_loaded]


def _unpacked(text: str, most: int, where: str) -> bytes:
    import base64
    import zlib

    try:
        reader = zlib.decompressobj()
        data = reader.decompress(base64.b64decode(text, validate=True), most)
    except (ValueError, zlib.error) as error:
        raise RecordError(
            f"{where}: expected tables in its metadata, got other text: {error}"
        ) from None
    if reader.unconsumed_tail or not reader.eof:
        raise RecordError(
            f"{where}: expected tables of {most} bytes at most in its metadata, "
            f"got more, or not all of them"
        )
    return data
