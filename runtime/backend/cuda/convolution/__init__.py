"""Convolutions, pools and windows: by cuDNN, as one product, or by own kernels.

In: (N, C, *S) arrays, weights, and a window.
Out: channels-last arrays, and the gradients of input and weights.
Invariant: without cuDNN a convolution is a product of patches; numbers agree.
"""
