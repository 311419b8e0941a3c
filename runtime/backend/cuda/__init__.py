"""Kernels for NVIDIA GPUs: from templates, by NVRTC, and NVIDIA's libraries by ctypes.

In: CuPy arrays, and the options of an operator.
Out: a CuPy array, or None where no kernel takes these arguments; each room has one
family of kernels, `kernels` compiles templates, `layout` holds channels-last arrays.
Invariant: everything is loaded when the first kernel runs; nothing waits for the GPU.
"""
