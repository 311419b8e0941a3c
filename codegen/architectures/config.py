"""Read config.json key by key; a key that would change the model is refused."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from burnish._files import jsontext
from burnish._files.budget import Budget
from burnish._files.shown import shown
from burnish.codegen.architectures.without_effect import WITHOUT_EFFECT
from burnish.codegen.errors import ReadError, UnsupportedError
from burnish.errors import RecordError

_SHARED = 100  # layers that one layer's weights may be used for
_LARGEST = 1 << 53  # sizes are exact in every number type below it
_INFINITE = 1e300
_EMPTY: tuple[Any, ...] = (None, False, [], {}, "")


@dataclass(eq=False)
class Config:
    """The keys of a configuration; every accessor has a default for a missing key.

    null counts as absent. Problems are collected, so that `finish` reports them all.
    stored: the weights by name, which decide what the configuration leaves open.
    """

    values: dict[str, Any]
    where: str
    stored: Mapping[str, Any]
    generation: Mapping[str, Any] = field(default_factory=dict)
    read: set[str] = field(default_factory=set)
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def holds(self, *endings: str) -> bool:
        """Whether a weight's name ends with one of these."""
        return any(name.endswith(endings) for name in self.stored)

    def same(self, one: str, other: str) -> bool:
        """Whether two weights are there and have the same values."""
        if one not in self.stored or other not in self.stored:
            return False
        return np.array_equal(self.stored[one].read(), self.stored[other].read())

    def raw(self, key: str, default: Any = None) -> Any:
        """A value of any kind."""
        self.read.add(key)
        value = self.values.get(key)
        return default if value is None else value

    def token(
        self, key: str, default: int | None = None, generating: bool = False
    ) -> int | None:
        """A token's number, which may be missing.

        generating: what generation_config.json says goes before.
        """
        value = self.raw(key, default)
        if generating:
            value = self.generation.get(key, value)
        if value is None or type(value) is int:
            return value
        self.refuse(key, "a whole number or null", value)
        return default

    def tokens(
        self, key: str, default: int | None = None
    ) -> int | tuple[int, ...] | None:
        """Tokens' numbers; what generation_config.json says goes before."""
        self.read.add(key)
        value = self.generation.get(key)
        value = self.raw(key, default) if value is None else value
        if isinstance(value, list) and all(type(token) is int for token in value):
            return tuple(value)
        if value is None or type(value) is int:
            return value
        self.refuse(key, "a whole number, a list of them or null", value)
        return default

    @property
    def most_layers(self) -> int:
        """How many layers the weights can be for."""
        return max(_SHARED, len(self.stored))

    def depth(self, key: str, default: int | None) -> int:
        """How many layers there are; each has weights, or few layers are shared."""
        value, most = self.size(key, default), self.most_layers
        if value > most:
            self.refuse(key, f"at most {most} layers for these weights", value)
            return 1
        return value

    def size(self, key: str, default: int | None, least: int = 1) -> int:
        """An integer of at least `least`; required where the default is None."""
        value = self.raw(key, default)
        if type(value) is not int or not least <= value < _LARGEST:
            self.refuse(key, f"a whole number from {least}", value)
            return max(least, default or 1)
        return value

    def number(self, key: str, default: float) -> float:
        """A number as float."""
        value = self.raw(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float):
            self.refuse(key, "a number", value)
            return default
        if not abs(value) < _INFINITE:
            self.refuse(key, "a finite number", value)
            return default
        return float(value)

    def rate(self, key: str, default: float) -> float:
        """A probability below 1, such as dropout's."""
        value = self.number(key, default)
        if not 0 <= value < 1:
            self.refuse(key, "a number from 0 up to 1", value)
        return value

    def flag(self, key: str, default: bool) -> bool:
        value = self.raw(key, default)
        if not isinstance(value, bool):
            self.refuse(key, "true or false", value)
            return default
        return value

    def word(self, key: str, default: str, allowed: Iterable[str]) -> str:
        """One of some words."""
        value = self.raw(key, default)
        words = list(allowed)
        if value not in words:
            self.refuse(key, " or ".join(map(json.dumps, words)), value)
            return default
        return str(value)

    def sizes(self, key: str, default: list[int]) -> list[int]:
        """A list of positive whole numbers."""
        value = self.raw(key, default)
        if not isinstance(value, list) or not all(
            type(n) is int and 0 < n < _LARGEST for n in value
        ):
            self.refuse(key, "a list of whole numbers from 1", value)
            return default
        return value

    def fixed(self, **expected: Any) -> None:
        """Keys that must be absent, null, or say this: nothing else is implemented."""
        for key, wanted in expected.items():
            value = self.raw(key, wanted)
            if value != wanted or isinstance(value, bool) != isinstance(wanted, bool):
                self.refuse(key, json.dumps(wanted), value)

    def ignore(self, *keys: str) -> None:
        """Keys that change nothing for this kind of model."""
        self.read.update(keys)

    def training_only(self, *keys: str) -> None:
        """Probabilities that act only in training and are not written: a note each."""
        for key in keys:
            if value := self.rate(key, 0.0):
                self.notes.append(f"{key}={value:g} acts only in training: not written")

    def inner(self, key: str) -> Config:
        """A configuration inside this one; its problems are this one's."""
        value = self.raw(key, {})
        if not isinstance(value, dict):
            self.refuse(key, "an object", value)
            value = {}
        where = f"{self.where}: {key}"
        return Config(value, where, self.stored, problems=self.problems)

    def labels(self) -> int:
        """The number of classes."""
        names = self.raw("id2label")
        if isinstance(names, dict) and names:
            return len(names)
        return self.size("num_labels", 2)

    def multiple(self, key: str, size: int, *divisors: int) -> None:
        """Refuse a size that these do not divide."""
        for divisor in divisors:
            if size % divisor:
                self.refuse(key, f"a multiple of {divisor}", size)

    def refuse(self, key: str, expected: str, got: Any) -> None:
        plain = got is None or type(got) in (bool, str)
        text = json.dumps(got[:80] if isinstance(got, str) else got) if plain else ""
        text = text or shown(got)
        text = text if len(text) <= 80 else f"{text[:77]}..."
        self.problems.append(f"{self.where}: {key}: expected {expected}, got {text}")

    def unread(self) -> None:
        """Refuse keys that were never read, unless they are known to be harmless."""
        for key, value in self.values.items():
            known = key in self.read or key in WITHOUT_EFFECT or key.startswith("_")
            if not known and value not in _EMPTY:
                self.refuse(key, "no such key (remove it if it changes nothing)", value)

    def finish(self) -> None:
        """Raise UnsupportedError with everything that is wrong or was never read."""
        if quantized := self.raw("quantization_config"):
            expected = "weights that are not quantized (save them dequantized)"
            self.refuse("quantization_config", expected, quantized)
        self.unread()
        if self.problems:
            raise UnsupportedError("\n  ".join(dict.fromkeys(self.problems)))


def read_json(path: Path) -> tuple[dict[str, Any], bytes]:
    """The values of a JSON object, and the file's bytes."""
    data = path.read_bytes()
    try:
        values = jsontext.parse(data, Budget(len(data), str(path)))
    except RecordError as error:
        raise ReadError(str(error)) from None
    if not isinstance(values, dict):
        raise ReadError(f"{path}: expected a JSON object, got {type(values).__name__}")
    return values, data
