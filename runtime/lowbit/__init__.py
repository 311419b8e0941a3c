"""Quantized arrays: schemes, and tensors in a few bits.

`burnish.quantization` is the page for users; this is what modules need of it.
"""

from typing import TYPE_CHECKING

from burnish._engine.lazy import Names

with Names(globals()) as _names:
    from burnish.lowbit.calibration import Calibration as Calibration
    from burnish.lowbit.level import Level as Level
    from burnish.lowbit.packed import Packed as Packed
    from burnish.lowbit.scheme import VALUES as VALUES
    from burnish.lowbit.scheme import QParams as QParams
    from burnish.lowbit.scheme import QuantScheme as QuantScheme
    from burnish.lowbit.tensor import QuantizedTensor as QuantizedTensor

if not TYPE_CHECKING:  # checkers read the imports
    __all__ = list(_names)

    def __getattr__(name):
        if name in _names:
            return _names[name]
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
