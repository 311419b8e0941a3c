"""Recover the author's modules in files from TensorFlow and Keras.

names      the path of scopes in a name
blocks     blocks in a row of layers whose names count
tree       paths as modules: blocks, lists, classes
settle     operators without weights or names, by what is around them
scopes     all of it for one model, written as PyTorch's newer exporter writes scopes
operators  what the exporter leaves of TensorFlow's, in ONNX's words
"""

from burnish.codegen.tensorflow.operators import in_onnx_words
from burnish.codegen.tensorflow.scopes import write_scopes

__all__ = ["in_onnx_words", "write_scopes"]
