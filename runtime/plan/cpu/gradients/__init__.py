"""Gradients of operators whose values have kernels too."""
