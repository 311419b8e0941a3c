"""Adam and AdamW. One temporary array a parameter; it becomes the new weight."""

from __future__ import annotations

from dataclasses import dataclass

from burnish.backend import Array, namespace
from burnish.optim.optimizer import Optimizer, State, check, count


@dataclass(eq=False)
class Adam(Optimizer):
    """weight - rate * mean / (sqrt(square) + epsilon), both unbiased.

    mean and square are running averages of grad and grad ** 2; with amsgrad the
    largest square so far counts. weight_decay adds to the gradient (L2).
    """

    betas: tuple[float, float] = (0.9, 0.999)
    epsilon: float = 1e-8
    weight_decay: float = 0.0
    amsgrad: bool = False

    def __post_init__(self) -> None:
        name = type(self).__name__
        for beta in self.betas:
            check(f"{name} betas", beta, 0, 1)
        check(f"{name} epsilon", self.epsilon, 0)
        check(f"{name} weight_decay", self.weight_decay, 0)

    def update(self, weight: Array, grad: Array, state: State, rate: float) -> Array:
        if self.weight_decay:
            grad = grad + self.weight_decay * weight
        change = self.change(grad, state, rate)
        return namespace(weight).subtract(weight, change, out=change)

    def change(self, grad: Array, state: State, rate: float) -> Array:
        """What to take from the weight, in an array of its own."""
        xp, step = namespace(grad), count(state)
        beta1, beta2 = self.betas
        if "mean" not in state:
            state["mean"], state["square"] = xp.zeros_like(grad), xp.zeros_like(grad)
        mean, square = state["mean"], state["square"]

        spare = xp.multiply(grad, 1 - beta1, out=xp.empty_like(mean))
        mean *= beta1
        mean += spare

        xp.multiply(grad, grad, out=spare)
        spare *= 1 - beta2
        square *= beta2
        square += spare

        xp.sqrt(self._largest(square, state), out=spare)
        spare /= (1 - beta2**step) ** 0.5
        spare += self.epsilon
        xp.divide(mean, spare, out=spare)
        spare *= rate / (1 - beta1**step)
        return spare

    def _largest(self, square: Array, state: State) -> Array:
        if not self.amsgrad:
            return square
        if "largest" not in state:
            state["largest"] = square.copy()
        largest = state["largest"]
        return namespace(square).maximum(largest, square, out=largest)


@dataclass(eq=False)
class AdamW(Adam):
    """Adam with the weight decayed by itself: weight * (1 - rate * decay)"""

    weight_decay: float = 0.01

    def update(self, weight: Array, grad: Array, state: State, rate: float) -> Array:
        change = self.change(grad, state, rate)
        kept = weight * (1 - rate * self.weight_decay)
        return namespace(weight).subtract(kept, change, out=change)
