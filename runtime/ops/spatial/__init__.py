"""Operators over spatial axes: convolution, pooling, resizing, sampling."""
