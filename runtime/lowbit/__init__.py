"""Quantized arrays: schemes, and tensors in a few bits.

`burnish.quantization` is the page for users; this is what modules need of it.
"""

from burnish._engine.lazy import Names

with Names(globals()):
    from burnish.lowbit.calibration import Calibration as Calibration
    from burnish.lowbit.level import Level as Level
    from burnish.lowbit.packed import Packed as Packed
    from burnish.lowbit.scheme import VALUES as VALUES
    from burnish.lowbit.scheme import QParams as QParams
    from burnish.lowbit.scheme import QuantScheme as QuantScheme
    from burnish.lowbit.tensor import QuantizedTensor as QuantizedTensor
