"""Training and validation steps on one batch, and their outputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from burnish.autodiff import Gradients
from burnish.errors import InputError
from burnish.nn import Module
from burnish.optim import GradientsParams

Step: TypeAlias = Callable[[Any, Any], Any]
"""Called with the model and a batch; gives an item with `.loss`, or a TrainOutput."""


@dataclass(frozen=True, slots=True)
class StepOutput:
    """The output of a step that most metrics need.

    loss: one element; output: (batch, ...) whatever the model gave, classes last;
    targets: (batch, ...).
    """

    loss: Any
    output: Any
    targets: Any


@dataclass(frozen=True, slots=True)
class TrainOutput:
    """A training step's item with gradients that the step itself worked out."""

    gradients: Gradients | GradientsParams
    item: Any


@dataclass(frozen=True, slots=True)
class Supervised:
    """The step of a model of inputs and a loss of its output and the targets.

    A batch is `(*inputs, targets)`.
    """

    loss: Callable[[Any, Any], Any]

    def __call__(self, model: Module, batch: Any) -> StepOutput:
        if not isinstance(batch, tuple | list) or len(batch) < 2:
            raise InputError(
                f"Supervised: expected a batch (*inputs, targets), got "
                f"{type(batch).__name__}"
            )
        *inputs, targets = batch
        output = model(*inputs)
        return StepOutput(self.loss(output, targets), output, targets)


def own_step(model: Module, name: str) -> Step:
    """The step that a model has as its method `name`, called with a batch.

    Raises InputError where it has none.
    """
    if not callable(getattr(model, name, None)):
        raise InputError(
            f"expected a step, or a method {name} of {type(model).__name__}; "
            f"Supervised(loss) is the step of inputs, targets and a loss"
        )
    return lambda model, batch: getattr(model, name)(batch)
