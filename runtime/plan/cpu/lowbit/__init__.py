"""Rounded values and quantized weights: codes in memory, sums in integers."""
