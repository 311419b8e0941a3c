"""RMSprop, Adagrad, Adadelta, Rprop: each element has its own rate."""

from __future__ import annotations

from dataclasses import dataclass

from burnish.backend import Array, namespace
from burnish.errors import InputError
from burnish.optim.core.optimizer import State, check
from burnish.optim.rules.elementwise import Elementwise, average, less, square_average


@dataclass(eq=False, kw_only=True)
class RMSprop(Elementwise):
    """weight - rate * grad / (sqrt(square) + eps)

    square is a running average of grad ** 2, less the average gradient's when centered.
    """

    alpha: float = 0.99
    eps: float = 1e-8
    weight_decay: float = 0.0
    momentum: float = 0.0
    centered: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check("RMSprop alpha", self.alpha, 0, 1)
        check("RMSprop eps", self.eps, 0)
        check("RMSprop weight_decay", self.weight_decay, 0)
        check("RMSprop momentum", self.momentum, 0)

    def slots(self) -> tuple[str, ...]:
        mean = ("mean",) if self.centered else ()
        return ("square", *mean, *(("velocity",) if self.momentum else ()))

    def write(
        self, new: Array, weight: Array, grad: Array, state: State, rate: float
    ) -> None:
        if self.weight_decay:
            grad = grad + self.weight_decay * weight
        xp = namespace(weight)
        spread = square_average(state["square"], grad, self.alpha, new)
        if self.centered:
            mean = average(state["mean"], grad, self.alpha, new)
            spread = xp.subtract(spread, xp.square(mean, out=new), out=new)
        change = xp.sqrt(spread, out=new)
        change += self.eps
        xp.divide(grad, change, out=change)
        if self.momentum:
            velocity = state["velocity"]
            velocity *= self.momentum
            velocity += change
            change = velocity
        less(new, weight, change, rate)


@dataclass(eq=False, kw_only=True)
class Adagrad(Elementwise):
    """weight - rate * grad / (sqrt(square) + eps), square the sum of grad ** 2

    lr_decay: the rate of step n is rate / (1 + (n - 1) * lr_decay).
    initial_accumulator_value: what the sum of squares starts from.
    """

    lr_decay: float = 0.0
    weight_decay: float = 0.0
    initial_accumulator_value: float = 0.0
    eps: float = 1e-10

    def __post_init__(self) -> None:
        super().__post_init__()
        check("Adagrad lr_decay", self.lr_decay, 0)
        check("Adagrad weight_decay", self.weight_decay, 0)
        start = self.initial_accumulator_value
        check("Adagrad initial_accumulator_value", start, 0)
        check("Adagrad eps", self.eps, 0)

    def slots(self) -> tuple[str, ...]:
        return ("square",)

    def write(
        self, new: Array, weight: Array, grad: Array, state: State, rate: float
    ) -> None:
        if self.weight_decay:
            grad = grad + self.weight_decay * weight
        square = state["square"]
        if state["step"] == 1:
            square += self.initial_accumulator_value
        xp = namespace(weight)
        square += xp.square(grad, out=new)
        change = xp.sqrt(square, out=new)
        change += self.eps
        xp.divide(grad, change, out=change)
        less(new, weight, change, rate / (1 + (state["step"] - 1) * self.lr_decay))


@dataclass(eq=False, kw_only=True)
class Adadelta(Elementwise):
    """weight - rate * change;  change = grad * sqrt(changes + eps) / sqrt(square + eps)

    square and changes are running averages of grad ** 2 and change ** 2.
    """

    rho: float = 0.9
    eps: float = 1e-6
    weight_decay: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check("Adadelta rho", self.rho, 0, 1)
        check("Adadelta eps", self.eps, 0)
        check("Adadelta weight_decay", self.weight_decay, 0)

    def slots(self) -> tuple[str, ...]:
        return ("square", "changes")

    def write(
        self, new: Array, weight: Array, grad: Array, state: State, rate: float
    ) -> None:
        xp = namespace(weight)
        if self.weight_decay:
            grad = grad + self.weight_decay * weight
        square = square_average(state["square"], grad, self.rho, new)
        change = xp.sqrt(state["changes"] + self.eps)
        change /= xp.sqrt(square + self.eps)
        change *= grad
        square_average(state["changes"], change, self.rho, new)
        less(new, weight, change, rate)


@dataclass(eq=False, kw_only=True)
class Rprop(Elementwise):
    """Steps that grow while the gradient keeps its sign and shrink where it turns.

    The learning rate is the first step's size; etas: how steps shrink and grow;
    step_sizes: the least and the greatest.
    """

    etas: tuple[float, float] = (0.5, 1.2)
    step_sizes: tuple[float, float] = (1e-6, 50.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.etas[0] < 1 < self.etas[1]:
            raise InputError(
                f"Rprop etas: expected one in (0, 1) and one above 1, got {self.etas}"
            )

    def slots(self) -> tuple[str, ...]:
        return ("size", "before")

    def write(
        self, new: Array, weight: Array, grad: Array, state: State, rate: float
    ) -> None:
        xp, size = namespace(weight), state["size"]
        if state["step"] == 1:
            size += rate
        turned = xp.sign(grad * state["before"])
        down, up = self.etas
        size *= xp.where(turned > 0, up, xp.where(turned < 0, down, 1))
        xp.clip(size, *self.step_sizes, out=size)
        grad = xp.where(turned < 0, 0, grad)
        state["before"][...] = grad
        xp.subtract(weight, xp.sign(grad) * size, out=new)
