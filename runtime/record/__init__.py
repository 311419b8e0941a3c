"""Records: the state of modules, optimizers, schedules and plain containers, in files.

`CompactRecorder().record(model, "model")` writes model.safetensors in half precision;
`load` gives the arrays by name again, `load_into` gives them to a module. Every file is
written whole or not at all and carries a checksum. Nothing is ever unpickled.
"""

from burnish.record.precision import Precision
from burnish.record.recorder import Recorder
from burnish.record.recorders import (
    BinGzRecorder,
    BinRecorder,
    CompactRecorder,
    DefaultRecorder,
    JsonGzRecorder,
    NamedMpkGzRecorder,
    NamedMpkRecorder,
    NpzRecorder,
    PrettyJsonRecorder,
    SafetensorsRecorder,
)

__all__ = [
    "BinGzRecorder",
    "BinRecorder",
    "CompactRecorder",
    "DefaultRecorder",
    "JsonGzRecorder",
    "NamedMpkGzRecorder",
    "NamedMpkRecorder",
    "NpzRecorder",
    "Precision",
    "PrettyJsonRecorder",
    "Recorder",
    "SafetensorsRecorder",
]
