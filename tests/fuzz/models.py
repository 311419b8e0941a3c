"""ONNX models: small good ones of which fields were changed.

The messages are walked by their descriptors, so most still parse.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from onnx import ModelProto, load

import burnish.models.mnist
from burnish.codegen import pipeline
from burnish.codegen.errors import ConversionError
from burnish.codegen.tools import inspect_model
from burnish.codegen.tools.upgrade import upgrade
from burnish.errors import BurnishError
from tests.codegen.readers.hostile import CASES
from tests.fuzz.harness import Files as Held
from tests.harness.onnx_cases import cases

LARGEST = 20_000  # bytes of a model to start from
NUMBERS = (0, 1, -1, 2, 3, 7, 64, 65, 127, 128, 2**31 - 1, -(2**31), 2**63 - 1, 10**9)
FLOATS = (0.0, -0.0, 1.0, -1.0, float("nan"), float("inf"), 1e-45, 3e38)
TEXTS = ("", "x", "y", "value", "é", "a.b", "/a/b", "\x1b]0;t\x07", "None", "n" * 3000)


def seeds() -> list[bytes]:
    """Small good models of every kind, and the hostile ones."""
    good = [load(str(Path(burnish.models.mnist.__file__).with_name("mnist.onnx")))]
    good += [case.model for case in cases().values()]
    made = [m.SerializeToString() for m in good]
    for build in CASES.values():
        hostile = build()
        if isinstance(hostile, ModelProto):
            made.append(hostile.SerializeToString())
    return [data for data in made if len(data) < LARGEST] or made


def messages(message: Any, found: list[Any]) -> list[Any]:
    """The message and those inside it."""
    found.append(message)
    for field, value in message.ListFields():
        if field.message_type is not None and not _is_map(field):
            for inner in value if field.is_repeated else [value]:
                messages(inner, found)
    return found


def _is_map(field: Any) -> bool:
    return bool(field.message_type.GetOptions().map_entry)


def change(model: ModelProto, rng: random.Random) -> None:
    """One field of one message: dropped, repeated, moved, or another value."""
    held = messages(model, [])
    message = rng.choice(held)
    fields = message.DESCRIPTOR.fields
    present = [field for field, _ in message.ListFields()]
    field = rng.choice(present if present and rng.random() < 0.75 else fields)
    kind = rng.random()
    if kind < 0.15:
        message.ClearField(field.name)
    elif field.is_repeated:
        _change_list(message, field, getattr(message, field.name), rng, held)
    elif field.message_type is not None:
        _copy(getattr(message, field.name), rng, held)
    else:
        setattr(message, field.name, _value(field, rng, held))


def _change_list(
    message: Any, field: Any, values: Any, rng: random.Random, held: list[Any]
) -> None:
    kind = rng.random()
    if len(values) and kind < 0.25:
        del values[rng.randrange(len(values))]
    elif len(values) and kind < 0.45:
        again = values[rng.randrange(len(values))]
        for _ in range(rng.choice((1, 1, 1, 2, 70))):
            values.append(again)
    elif len(values) > 1 and kind < 0.6:
        items = list(values)
        rng.shuffle(items)
        del values[:]
        values.extend(items)
    elif field.message_type is not None:
        _copy(rng.choice(values) if values else values.add(), rng, held)
    elif len(values) and kind < 0.9:
        values[rng.randrange(len(values))] = _value(field, rng, held)
    else:
        values.append(_value(field, rng, held))


def _copy(into: Any, rng: random.Random, held: list[Any]) -> None:
    """Another message of this type in its place, if there is one that is no parent."""
    others = [m for m in held if m.DESCRIPTOR is into.DESCRIPTOR]
    if others:
        other = rng.choice(others).SerializeToString()
        if len(other) < LARGEST:
            into.ParseFromString(other)


def _value(field: Any, rng: random.Random, held: list[Any]) -> Any:
    if field.enum_type is not None:
        return rng.choice(field.enum_type.values).number
    if field.cpp_type in (field.CPPTYPE_FLOAT, field.CPPTYPE_DOUBLE):
        return rng.choice(FLOATS)
    if field.cpp_type != field.CPPTYPE_STRING:
        number = rng.choice(NUMBERS)
        if field.cpp_type in (field.CPPTYPE_UINT32, field.CPPTYPE_UINT64):
            return number & (2**32 - 1)
        bits = 31 if field.cpp_type == field.CPPTYPE_INT32 else 63
        return max(-(2**bits), min(number, 2**bits - 1))
    if field.type == field.TYPE_BYTES:
        return rng.choice((b"", b"\0", b"\xff" * 8, bytes(4), b"abc", bytes(4096)))
    return rng.choice((*TEXTS, _name(rng, held)))


def _name(rng: random.Random, held: list[Any]) -> str:
    """A name that some other message has."""
    message = rng.choice(held)
    for field in ("name", "op_type", "key", "dim_param"):
        if text := getattr(message, field, ""):
            return str(text)
    return "x"


#: What else looks at a model: one of these, its number's choice.
LOOKS: tuple[Callable[[Path, Path], Any], ...] = (
    lambda path, _: inspect_model.inspect(path),
    lambda path, new: upgrade(path, new, 22),
)


class Files:
    """One model."""

    def seeds(self) -> list[Any]:
        return seeds()

    def case(self, rng: random.Random, seeds: list[Any]) -> Held:
        model = ModelProto.FromString(rng.choice(seeds))
        for _ in range(rng.choice((1, 1, 2, 3, 6))):
            change(model, rng)
        data = model.SerializeToString()
        if rng.random() < 0.1:
            at = rng.randrange(len(data) or 1)
            data = data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]
        return {"model.onnx": data or b"\x08"}

    def attempt(self, folder: Path, out: Path) -> str:
        """Source, or the kind of error; `inspect` or `upgrade` fails alike."""
        path, went = folder / "model.onnx", "source"
        try:
            made = pipeline.generate(path)
            compile(made.text, "made", "exec", dont_inherit=True)
            pipeline.write(made, out)
        except (ConversionError, BurnishError) as error:
            went = type(error).__name__
            if "ONNX's checker says" in str(error):
                went = "refused by the checker"
        look = LOOKS[zlib.crc32(path.read_bytes()) % len(LOOKS)]
        with suppress(ConversionError, BurnishError):
            look(path, out / "new.onnx")
        return went
