"""Kernels for NVIDIA GPUs: from templates, by NVRTC, and products by cublasLt.

Everything here is loaded when the first kernel runs; nothing waits for the GPU.
"""
