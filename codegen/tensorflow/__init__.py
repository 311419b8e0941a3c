"""Recover the author's modules in files from TensorFlow and Keras.

In: a Graph whose names have TensorFlow's scopes. Out: the same with scopes as PyTorch's
newer exporter writes them, and ONNX's operators for what the exporter left.
Invariant: the numbers stay; names alone never decide what a node computes.
"""

from burnish.codegen.tensorflow.operators import rewrite_operators
from burnish.codegen.tensorflow.scopes import write_scopes

__all__ = ["rewrite_operators", "write_scopes"]
