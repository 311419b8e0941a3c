"""Messages between processes: nested dicts of numbers, texts and arrays as bytes.

A message is a safetensors file whose entry "" is JSON with everything but the arrays.
Nothing that could run is ever sent.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from burnish import serialize


def encode(value: Any) -> bytes:
    """Bytes of a dict with text keys whose leaves are numbers, texts, None, arrays."""
    arrays: dict[str, np.ndarray] = {}

    def plain(item: Any) -> Any:
        if isinstance(item, dict):
            return {"d": {key: plain(each) for key, each in item.items()}}
        if isinstance(item, np.ndarray):
            name = f"{len(arrays)}"
            arrays[name] = item
            return {"a": name}
        return {"v": item.item() if isinstance(item, np.generic) else item}

    text = json.dumps(plain(value)).encode()
    return bytes(serialize.to_bytes(arrays | {"": np.frombuffer(text, np.uint8)}))


def decode(data: bytes) -> Any:
    """The inverse of `encode`."""
    arrays = serialize.from_bytes(data)

    def full(item: Any) -> Any:
        if "d" in item:
            return {key: full(each) for key, each in item["d"].items()}
        return arrays[item["a"]] if "a" in item else item["v"]

    return full(json.loads(arrays[""].tobytes()))
