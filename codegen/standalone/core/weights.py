"""Weights in safetensors bytes: those beside the file, and whether they changed."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from burnish.errors import RecordError

QUANTIZED = False  # set where the file is written


_DTYPES = {
    **{f"{sign}{8 * n}": f"<{sign.lower()}{n}" for sign in "IF" for n in (1, 2, 4, 8)},
    **{f"U{8 * n}": f"<u{n}" for n in (1, 2, 4, 8)},
    "BOOL": "?",
    "C64": "<c8",
    "C128": "<c16",
}
"""Safetensors' names of dtypes, and NumPy's."""


def tensors(data: Any) -> tuple[dict[str, Any], dict[str, str]]:
    """The arrays that safetensors bytes hold, by name, and their metadata."""
    try:
        begin = 8 + int.from_bytes(data[:8], "little")
        header = json.loads(bytes(data[8:begin]))
        metadata = header.pop("__metadata__", {})
        state = {
            name: np.frombuffer(
                data[begin + item["data_offsets"][0] : begin + item["data_offsets"][1]],
                _DTYPES[item["dtype"]],
            ).reshape(item["shape"])
            for name, item in header.items()
        }
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise RecordError(
            f"weights: expected safetensors, got damaged ones: {error}"
        ) from None
    if QUANTIZED:
        state = joined(state)
    return state, metadata


def beside() -> bytes:
    """The weights file next to this one, also inside a zip."""
    path = __file__.removesuffix("c").removesuffix(".py") + ".safetensors"
    loader = globals().get("__loader__")
    try:
        if loader is None:
            with open(path, "rb") as file:
                return file.read()
        found: bytes = loader.get_data(path)
        return found
    except OSError:
        raise RecordError(
            f"from_file: expected weights beside the source, found no file {path}"
        ) from None


def refuse_changed(data: bytes) -> None:
    """Raise RecordError for weights that changed after they were generated."""
    import hashlib

    stop = 8 + int.from_bytes(data[:8], "little")
    try:
        digest = json.loads(data[8:stop])["__metadata__"]["burnish.sha256"]
    except (KeyError, ValueError):
        return  # of no file that was generated
    place = data[:stop].find(b'"burnish.sha256":"' + digest.encode() + b'"')
    start = place + len(b'"burnish.sha256":"')
    blank = data[:start] + b"0" * 64 + data[start + 64 :]
    if hashlib.sha256(blank).hexdigest() != digest:
        raise RecordError(
            "weights: expected those that were generated, got others: their sha256 has "
            "changed; generate them again, or load them with from_file"
        )


def joined(state: dict[str, Any]) -> dict[str, Any]:
    """Arrays by name, with those of a quantized one computed from its parts."""
    from burnish.lowbit import QuantScheme

    for name in [name for name in state if name.endswith(".scheme")]:
        path = name.removesuffix(".scheme")
        names = [
            f"{path}.{part}" for part in ("codes", "scales", "zero_points", "scheme")
        ]
        parts = {n.rpartition(".")[2]: state.pop(n) for n in names if n in state}
        state[path] = QuantScheme.packed(parts).unpack()
    return state
