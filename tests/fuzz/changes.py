"""Changes of bytes, and of the trees that JSON is, that any format may meet."""

from __future__ import annotations

import json
import random
from copy import deepcopy
from typing import Any

_NUMBERS = (0, 1, 2**15, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**63, 2**64 - 1)
_LITERALS = (
    "1e999",
    "-1e999",
    "NaN",
    "-Infinity",
    "9" * 500,
    "-" + "9" * 5000,
    "1e-400",
)
_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 3, 255, 60_000, 10**9, 2**31, 2**63, -(2**63)),
    *(0.5, -0.0, 1e308, "", "x", "0", "é", "a.b", "\x1b]0;t\x07", "\ud800", "n" * 3000),
    *("../x", "/etc/passwd", "..", ".", "a/../../x", "C:\\x", "a\0b", "None", "nan"),
    *([], {}, [[]], [{}], {"": {}}, [0] * 100, [[[[[[]]]]]]),
)
_MARK = "\uf8ff"  # around what is written as it is


def changed_bytes(data: bytes, rng: random.Random, times: int = 3) -> bytes:
    """Some bytes flipped, cut, moved, or made an extreme number."""
    for _ in range(rng.randint(1, times)):
        data = rng.choice(_CHANGES)(data or b"\0", rng)
    return data


def _flipped(data: bytes, rng: random.Random) -> bytes:
    made = bytearray(data)
    for _ in range(rng.randint(1, 6)):
        value = rng.choice((0, 1, 127, 128, 255, rng.randrange(256)))
        made[rng.randrange(len(made))] = value
    return bytes(made)


def _cut(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.randrange(len(data))]


def _moved(data: bytes, rng: random.Random) -> bytes:
    a, b = sorted(rng.randrange(len(data)) for _ in range(2))
    at = rng.randrange(len(data))
    return data[:at] + data[a:b] + data[at + rng.choice((0, b - a)) :]


def _extreme(data: bytes, rng: random.Random) -> bytes:
    """Sizes, offsets, counts, lengths."""
    width, order = rng.choice((2, 4, 8)), rng.choice(("little", "big"))
    raw = (rng.choice(_NUMBERS) % 256**width).to_bytes(width, order)
    at = rng.randrange(len(data))
    return data[:at] + raw + data[at + width :]


_CHANGES = (_flipped, _flipped, _cut, _moved, _extreme, _extreme)


def changed_json(text: bytes, rng: random.Random, times: int = 3) -> bytes:
    """JSON of which values or keys are others; sometimes with bytes changed too."""
    try:
        return _changed_json(text, rng, times)
    except (ValueError, RecursionError):  # it was changed before, and is JSON no more
        return changed_bytes(text, rng)


def _changed_json(text: bytes, rng: random.Random, times: int) -> bytes:
    tree = json.loads(text)
    for _ in range(rng.randint(1, times)):
        tree = _changed_tree(tree, rng)
    made = json.dumps(tree)
    for literal in _LITERALS:
        made = made.replace(json.dumps(_MARK + literal), literal)
    if rng.random() < 0.05:
        made = made.replace("[]", "[" * 10_000, 1)
    data = made.encode("utf-8", "surrogatepass")
    return changed_bytes(data, rng, 1) if rng.random() < 0.1 else data


def _changed_tree(tree: Any, rng: random.Random) -> Any:
    places = _places(tree, [])
    if not places:
        return deepcopy(rng.choice(_VALUES))
    holder, key = rng.choice(places)
    kind = rng.random()
    if kind < 0.12:
        del holder[key]
    elif kind < 0.25:
        other, where = rng.choice(places)
        holder[key] = json.loads(json.dumps(other[where]))
    elif kind < 0.35 and isinstance(holder, dict):
        names = [each for each in _VALUES if isinstance(each, str)]
        holder[rng.choice(names)] = holder.pop(key)
    elif kind < 0.45:
        holder[key] = _MARK + rng.choice(_LITERALS)
    elif kind < 0.55 and isinstance(holder[key], int | float):
        holder[key] = _scaled(holder[key], rng.choice((-1, 2, 0.5, 1000)))
    else:
        holder[key] = deepcopy(rng.choice(_VALUES))
    return tree


def _scaled(number: float, factor: float) -> float:
    """A product; that of an integer which no float can be stays one."""
    try:
        return factor * number
    except OverflowError:
        return number // 2


def _places(tree: Any, found: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Every (holder, key) of a tree; none where it is a number or a text."""
    if not isinstance(tree, dict | list):
        return found
    for key in list(tree) if isinstance(tree, dict) else range(len(tree)):
        found.append((tree, key))
        _places(tree[key], found)
    return found
