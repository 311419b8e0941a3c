"""Recover the author's modules in files from TensorFlow and Keras.

In: a Graph whose names have TensorFlow's scopes. Out: the same with scopes as PyTorch's
newer exporter writes them, and ONNX's operators for what the exporter left.
Invariant: the numbers stay; names alone never decide what a node computes.
"""

from burnish.codegen.tensorflow.operators import in_onnx_words
from burnish.codegen.tensorflow.scopes import write_scopes

__all__ = ["in_onnx_words", "write_scopes"]
