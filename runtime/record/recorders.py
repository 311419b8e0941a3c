"""The recorders, named as Burn names them."""

from __future__ import annotations

from dataclasses import dataclass

from burnish.record import binary, mpk, npz, safetensors, text
from burnish.record.gzipped import gzipped
from burnish.record.precision import Precision
from burnish.record.recorder import Recorder


class SafetensorsRecorder(Recorder):
    """Safetensors: opens in PyTorch and elsewhere, and is mapped instead of read."""

    format = safetensors.FORMAT


class NamedMpkRecorder(Recorder):
    """MessagePack with every name in it; needs msgspec."""

    format = mpk.FORMAT


class NamedMpkGzRecorder(Recorder):
    """MessagePack in gzip; needs msgspec."""

    format = gzipped(mpk.FORMAT)


class BinRecorder(Recorder):
    """The smallest files without compression, and bytes to embed."""

    format = binary.FORMAT


class BinGzRecorder(Recorder):
    """The binary format in gzip."""

    format = gzipped(binary.FORMAT)


class PrettyJsonRecorder(Recorder):
    """Text, to look at weights."""

    format = text.FORMAT


class JsonGzRecorder(Recorder):
    """The same text in gzip."""

    format = gzipped(text.FORMAT)


class NpzRecorder(Recorder):
    """NumPy's own archive: numpy.load opens it."""

    format = npz.FORMAT


DefaultRecorder = SafetensorsRecorder


@dataclass(frozen=True)
class CompactRecorder(SafetensorsRecorder):
    """Safetensors in half precision."""

    precision: Precision | None = "half"
