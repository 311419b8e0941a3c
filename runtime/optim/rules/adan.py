"""Adan: Nesterov's momentum from differences of gradients."""

from __future__ import annotations

from dataclasses import dataclass

from burnish.backend import Array, namespace
from burnish.optim.core.optimizer import State, check
from burnish.optim.rules.elementwise import Elementwise, average, square_average


@dataclass(eq=False, kw_only=True)
class Adan(Elementwise):
    """weight - rate * (mean + beta2 * difference) / (sqrt(square) + eps), all unbiased

    difference is the running average of how the gradient changed from step to step
    (https://arxiv.org/abs/2208.06677).

    no_prox: decay the weight before the step; without it the result is divided.
    """

    betas: tuple[float, float, float] = (0.98, 0.92, 0.99)
    eps: float = 1e-8
    weight_decay: float = 0.0
    no_prox: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        for beta in self.betas:
            check("Adan betas", beta, 0, 1)
        check("Adan eps", self.eps, 0)
        check("Adan weight_decay", self.weight_decay, 0)

    def slots(self) -> tuple[str, ...]:
        return ("mean", "difference", "square", "before")

    def write(
        self, new: Array, weight: Array, grad: Array, state: State, rate: float
    ) -> None:
        step, beta = state["step"], self.betas
        before = state["before"]
        if step == 1:
            before[...] = grad
        changed = grad - before
        before[...] = grad
        ahead = grad + beta[1] * changed
        mean = average(state["mean"], grad, beta[0], new)
        difference = average(state["difference"], changed, beta[1], new)
        square = square_average(state["square"], ahead, beta[2], new)
        spread = namespace(weight).sqrt(square, out=new)
        spread *= (1 - beta[2] ** step) ** -0.5
        spread += self.eps
        change = mean * (rate / (1 - beta[0] ** step))
        change += difference * (rate * beta[1] / (1 - beta[1] ** step))
        change /= spread
        decay = rate * self.weight_decay
        kept = weight * (1 - decay) if self.no_prox and decay else weight
        namespace(weight).subtract(kept, change, out=new)
        if decay and not self.no_prox:
            new /= 1 + decay
