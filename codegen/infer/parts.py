"""Data: an inferred module with its constructor and its tensors."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Literal as OneOf
from typing import TypeAlias

import numpy as np

from burnish.codegen.infer.layers.leaves import Leaf
from burnish.codegen.program import Call, Expression, Literal, Weight
from burnish.serialize import LazyTensor

Form: TypeAlias = OneOf["module", "chain", "loose"]

_NARROW = ("float16", "bfloat16")
_BUFFERS = ("running_", "inv_freq", "num_batches_tracked", "position_ids", "mask")
_SEVERAL = {"LSTM": 2, "GRU": 2, "RNN": 2, "MultiheadAttention": 2, "LSTMCell": 2}


@dataclass
class Part:
    """The contents of one attribute.

    form: a module to call, a chain of modules in a list, or things without an order.
    takes, gives: features, None where that is open. leaf: it is a layer of burnish.nn.
    weights: tensors with their paths from here.
    """

    made: Expression
    form: Form
    weights: list[tuple[str, Weight]] = field(default_factory=list)
    takes: int | None = None
    gives: int | None = None
    leaf: Leaf | None = None

    @property
    def inputs(self) -> int:
        """How many tensors a call takes: query, key and value are three."""
        kind = self.leaf.kind if self.leaf else ""
        return {"MultiheadAttention": 3, "Bilinear": 2}.get(kind, 1)

    @property
    def results(self) -> int:
        return _SEVERAL.get(self.leaf.kind, 1) if self.leaf else 1


def layer(leaf: Leaf, tensors: dict[str, LazyTensor]) -> Part:
    """A layer with its tensors, and zeros for those that the file lacks."""
    options = dict(leaf.options)
    if {t.dtype for t in tensors.values() if "float" in t.dtype} == {"float64"}:
        options["dtype"] = "float64"
    kind = leaf.kind if leaf.kind == "Conv1D" else f"nn.{leaf.kind}"
    named = tuple((name, Literal(value)) for name, value in options.items())
    made = Call(kind, tuple(map(Literal, leaf.args)), named)
    weights = [(name, weight(name, tensor)) for name, tensor in tensors.items()]
    for name in leaf.missing:
        zero = partial(np.zeros, (), np.int64)
        weights.append((name, Weight(name, "int64", (), zero, trained=False)))
    return Part(made, "module", weights, leaf.takes, leaf.gives, leaf)


def weight(name: str, tensor: LazyTensor) -> Weight:
    """A tensor of the file; whole numbers, statistics and tables do not train."""
    counted = not tensor.dtype.startswith(("float", "bfloat", "complex"))
    kept = counted or name.startswith(_BUFFERS) or name.endswith(_BUFFERS)
    return Weight(name, tensor.dtype, tensor.shape, tensor.read, trained=not kept)


def computed(held: Weight) -> Weight:
    """The weight in the type that the module computes with: half in single."""
    narrow = held.dtype in _NARROW or held.dtype.startswith("float8")
    dtype = "float32" if narrow else held.dtype
    return Weight(held.path, dtype, held.shape, held.read, held.trained)
