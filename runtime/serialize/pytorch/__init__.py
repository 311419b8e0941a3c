"""PyTorch's own files, read and written without PyTorch.

What torch.load would return, tensors lazily; nothing in the file is run. Formats:
torch/serialization.py in PyTorch's sources.
"""

from burnish.serialize.pytorch.reader import is_tar, read
from burnish.serialize.pytorch.special import QuantizedTensor, SparseTensor
from burnish.serialize.pytorch.write import write

__all__ = ["QuantizedTensor", "SparseTensor", "is_tar", "read", "write"]
