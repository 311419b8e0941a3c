"""The plain training loop, as a generator that the caller's loop drives.

for step in train(model, loss, batches, optim.Adam(), 1e-3):
    if step.index % 100 == 0:
        print(step.index, step.loss)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from burnish.autodiff import Variable
from burnish.backend import on_host
from burnish.errors import InputError
from burnish.nn import Module
from burnish.optim import Optimizer, Schedule


@dataclass(frozen=True, slots=True)
class Step:
    """The result of one training step."""

    index: int
    loss: float
    output: Any
    batch: tuple[Any, ...]
    learning_rate: float


def train(
    model: Module,
    loss: Callable[[Any, Any], Any],
    batches: Iterable[tuple[Any, ...]],
    optimizer: Optimizer,
    learning_rate: float | Schedule,
) -> Iterator[Step]:
    """One optimizer step for every batch `(*inputs, target)`, as it is asked for.

    loss: called with the model's output and the target, gives one element. The model
    is moved to its autodiff device and stays there; `model.valid()` is for inference.
    """
    model.to(model.device.autodiff())
    for index, batch in enumerate(batches):
        *inputs, target = batch
        output = model(*inputs)
        value = loss(output, target)
        rate = (
            learning_rate.step()
            if isinstance(learning_rate, Schedule)
            else learning_rate
        )
        optimizer.step(rate, model, value.backward())
        yield Step(index, value.item(), output, batch, rate)


def accuracy(output: Any, target: Any) -> float:
    """The share of rows whose largest value is where `target` says.

    output: (..., classes), target: (...) whole numbers; tensors or arrays.
    """
    scores, wanted = _array(output), _array(target)
    if scores.shape[:-1] != wanted.shape or not wanted.size:
        raise InputError(
            f"accuracy: expected output (..., classes) for target {wanted.shape}, "
            f"got {scores.shape}"
        )
    return float((scores.argmax(-1) == wanted).mean())


def _array(values: Any) -> Any:
    return on_host(values.data if isinstance(values, Variable) else values)
