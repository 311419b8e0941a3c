"""Origins: the model file's tensors that weights are computed from, replaceable.

What a generated weight was made of shows when it is read again while the file's tensors
hold other numbers: `burnish export --onto` inverts that. Passes say here what reading
alone does not show: copies, and tensors that another one took the place of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir

How = Callable[[np.ndarray], np.ndarray]
Use = tuple[str, int]
"""A node, by the name of its first output, and which of its inputs."""


class Origin(ir.LazyTensor):
    """A tensor of the model file, or a pass' replacement.

    held: its values. uses: who read it before all passes; of a copy, who reads that.
    copies: tensors that passes made of it, which train apart. made_by: the tensor from
    which it is computed now, and how.
    """

    def __init__(self, name: str, held: ir.TensorProtocol, uses: Iterable[Use] = ()):
        super().__init__(self._now, held.dtype, ir.Shape(held.shape.numpy()), name=name)
        self.origin, self.held, self.uses = name, held, tuple(uses)
        self.copies: list[Origin] = []
        self.made_by: tuple[Origin, How] | None = None

    def _now(self) -> ir.TensorProtocol:
        reading = _reading.get()
        if reading is None:
            return self.held
        reading.read[self] = None
        if self not in reading.values:
            return self.held
        return ir.tensor(reading.values[self], dtype=self.dtype)


@dataclass
class Reading:
    """The current values of origins, and which of them were read."""

    values: Mapping[Origin, np.ndarray]
    read: dict[Origin, None] = field(default_factory=dict)


_reading: ContextVar[Reading | None] = ContextVar("reading", default=None)


@contextmanager
def exchanged(values: Mapping[Origin, np.ndarray]) -> Iterator[Reading]:
    """In the `with` block these origins hold other values."""
    reading = Reading(values)
    token = _reading.set(reading)
    try:
        yield reading
    finally:
        _reading.reset(token)


def track(*models: ir.Model) -> list[Origin]:
    """Make the models' initializers origins, in place; a tensor of several is one."""
    origins: dict[tuple[int, str], Origin] = {}
    for value in (v for model in models for v in model.graph.initializers.values()):
        tensor = value.const_value
        if tensor is None or tensor.dtype == ir.DataType.STRING:
            continue
        uses = tuple(use(node, index) for node, index in value.uses())
        name = value.name or ""
        origin = origins.setdefault((id(tensor), name), Origin(name, tensor))
        origin.uses += uses
        value.const_value = origin
    return [*origins.values()]


def use(node: ir.Node, index: int) -> Use:
    """One input of a node."""
    return node.outputs[0].name or "", index


def copied(tensor: ir.TensorProtocol, uses: Iterable[Use]) -> ir.LazyTensor:
    """The same values, read where they are, for those uses; it trains apart."""
    if not isinstance(tensor, Origin):
        return ir.LazyTensor(
            lambda: tensor, tensor.dtype, ir.Shape(tensor.shape.numpy())
        )
    copy = Origin(tensor.origin, tensor.held, uses)
    tensor.copies.append(copy)
    return copy


def replaced(
    old: ir.TensorProtocol | None, new: ir.TensorProtocol | None, how: How
) -> ir.TensorProtocol | None:
    """Replace the tensor `old`, which becomes the function `how` of the new one."""
    if not isinstance(old, Origin) or new is None:
        return new
    made = new if isinstance(new, Origin) else Origin(old.origin, new)
    old.made_by = made, how
    return made


def is_exchanged() -> bool:
    """Whether values may differ from the model file's."""
    return _reading.get() is not None


def computed(
    now: ir.TensorProtocol, again: Callable[[], ir.TensorProtocol]
) -> ir.LazyTensor:
    """A tensor computed from weights; `again` where those have other values."""
    return ir.LazyTensor(
        lambda: again() if is_exchanged() else now,
        now.dtype,
        ir.Shape(now.shape.numpy()),
        name=now.name,
    )
