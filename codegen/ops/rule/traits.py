"""Traits of operators, declared with their rules: effects on shapes, layer twins.

A pass or a phase that treats operators alike asks for a trait; it lists no names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Flag, auto


class Trait(Flag):
    """Properties of operators. Each has exactly one of `SHAPES`.

    ELEMENTWISE: maps each element, in the shape of the first input.
    BROADCAST: elementwise on operands that broadcast.
    SAME_SHAPE: the shape of the first input, whose axes differ: softmax, norms.
    REDUCTION: the axes that an attribute or the second input names are reduced.
    REDUCTION_TO_INDEX: one axis is reduced, to the place of an element.
    VIEW: the same elements in the same order or transposed, in other axes.
    OWN_SHAPE: a shape of its own.
    RESIZE: a shape of its own, an axis of its input longer or shorter by other inputs.
    SELECTION: each element of a result is one of the first input's, as views' are.
    PRODUCT: a matrix product, whose second input is a weight in most models.
    CONVOLUTION: its second input is a weight in most models, too.
    RECURRENT: LSTM, GRU and RNN, whose inputs have the same places.
    ACTIVATION: what people call the nonlinearity of a layer.
    UNBOUNDED: its work is not bounded by the sizes of its inputs and outputs.
    RANDOM: the result changes from run to run.
    COMMUTATIVE: its operands may change places.
    REPARAMETRIZATION: authors read a weight through it: exp of a log, rows of a table.
    """

    ELEMENTWISE = auto()
    BROADCAST = auto()
    SAME_SHAPE = auto()
    REDUCTION = auto()
    REDUCTION_TO_INDEX = auto()
    VIEW = auto()
    OWN_SHAPE = auto()
    RESIZE = auto()
    SELECTION = auto()
    PRODUCT = auto()
    CONVOLUTION = auto()
    RECURRENT = auto()
    ACTIVATION = auto()
    UNBOUNDED = auto()
    RANDOM = auto()
    COMMUTATIVE = auto()
    REPARAMETRIZATION = auto()


NONE = Trait(0)
ANY = ~NONE
ELEMENTWISE = Trait.ELEMENTWISE
BROADCAST = Trait.BROADCAST
SAME_SHAPE = Trait.SAME_SHAPE
REDUCTION = Trait.REDUCTION
REDUCTION_TO_INDEX = Trait.REDUCTION_TO_INDEX
VIEW = Trait.VIEW
OWN_SHAPE = Trait.OWN_SHAPE
RESIZE = Trait.RESIZE
SELECTION = Trait.SELECTION
PRODUCT = Trait.PRODUCT
CONVOLUTION = Trait.CONVOLUTION
RECURRENT = Trait.RECURRENT
ACTIVATION = Trait.ACTIVATION
UNBOUNDED = Trait.UNBOUNDED
RANDOM = Trait.RANDOM
COMMUTATIVE = Trait.COMMUTATIVE
REPARAMETRIZATION = Trait.REPARAMETRIZATION

SHAPES = (
    *(ELEMENTWISE, BROADCAST, SAME_SHAPE, REDUCTION, REDUCTION_TO_INDEX, VIEW),
    OWN_SHAPE,
)


@dataclass(frozen=True)
class Twin:
    """The layer of `burnish.nn` whose forward is one call of a function.

    function: of `burnish.ops`. names: what the function's options are called in the
    layer's constructor; "" for its first argument.
    """

    function: str
    layer: str
    names: Mapping[str, str] = field(default_factory=dict)
