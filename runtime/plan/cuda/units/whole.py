"""Composite operators that are one launch on a GPU."""

from __future__ import annotations

from typing import Any

from burnish.capture.tape import Tape
from burnish.ops.sequences.attention import scaled_dot_product_attention


class WholeTape(Tape):
    """Writes attention down as one call, which has kernels of its own."""

    def keeps(self, function: Any) -> bool:
        return function is scaled_dot_product_attention
