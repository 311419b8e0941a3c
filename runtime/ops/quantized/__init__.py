"""Numbers of few bits: rounding, scales of tensors and of blocks, packing."""
