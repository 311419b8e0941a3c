"""Tensors whose axes have names: operators check and align them by name.

queries = NamedTensor(q, "batch", "time", "unit")
keys = NamedTensor(k, "batch", "place", "unit")
shares = queries.dot(keys, "unit").map(ops.softmax, "place")
"""

from burnish.named.tensor import NamedTensor

__all__ = ["NamedTensor"]
