"""Rules of operators on codes: quantizing, and products of integers.

In: codes, scales and zero points. Out: functions on integers, exact in their sums.
Invariant: results equal the specification's arithmetic bit for bit.
"""

from burnish.codegen.ops.quantized import integer, quantize

__all__ = ["integer", "quantize"]
