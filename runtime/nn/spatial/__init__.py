"""Layers over spatial axes: convolution, pooling, padding, resizing."""
