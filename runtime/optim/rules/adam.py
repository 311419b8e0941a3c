"""Adam and its relatives: running averages of the gradient and of its square."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from burnish.backend import Array, namespace
from burnish.optim.core.optimizer import State, check
from burnish.optim.rules.elementwise import Elementwise, average, less, square_average


@dataclass(eq=False, kw_only=True)
class _Averages(Elementwise):
    """Shared base: two moving averages, and weight decay that adds to grad."""

    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        name = type(self).__name__
        for beta in self.betas:
            check(f"{name} betas", beta, 0, 1)
        check(f"{name} eps", self.eps, 0)
        check(f"{name} weight_decay", self.weight_decay, 0)

    def slots(self) -> tuple[str, ...]:
        return ("mean", "square")

    def _averaged(self, grad: Array, state: State, spare: Array) -> tuple[Array, Array]:
        """The averages with this gradient in them, and still too small at first."""
        mean = average(state["mean"], grad, self.betas[0], spare)
        return mean, square_average(state["square"], grad, self.betas[1], spare)

    def _unbiased(self, state: State) -> tuple[float, float]:
        """The shares of the averages that are not their zeros of the start."""
        return 1 - self.betas[0] ** state["step"], 1 - self.betas[1] ** state["step"]

    def _decayed(
        self, weight: Array, grad: Array, rate: float, decoupled: bool
    ) -> tuple[Array, Array]:
        """Weight and gradient after the decay, which goes to one of them."""
        if not self.weight_decay:
            return weight, grad
        if decoupled:
            return weight * (1 - rate * self.weight_decay), grad
        return weight, grad + self.weight_decay * weight


@dataclass(eq=False, kw_only=True)
class Adam(_Averages):
    """weight - rate * mean / (sqrt(square) + eps), both unbiased.

    mean and square are running averages of grad and grad ** 2; with amsgrad the
    largest square so far counts. weight_decay adds to the gradient (L2).
    """

    amsgrad: bool = False

    def slots(self) -> tuple[str, ...]:
        return (*super().slots(), "largest") if self.amsgrad else super().slots()

    def kernel(self, state: State, rate: float) -> tuple[str, dict[str, Any]]:
        decays = "grad" if self.weight_decay else "none"
        return "adam", self._numbers(state, rate, decays, self.weight_decay)

    def _numbers(
        self, state: State, rate: float, decays: str, decay: float
    ) -> dict[str, Any]:
        """The kernel's numbers: the kind of weight decay and its factor among them."""
        from burnish.kernels.records import DECAYS  # late: most need no kernels

        share, square_share = self._unbiased(state)
        numbers = {
            "decays": DECAYS[decays],
            "rate": rate / share,
            "beta1": self.betas[0],
            "beta2": self.betas[1],
            "unbias": square_share**-0.5,
            "eps": self.eps,
            "decay": decay,
        }
        return numbers if self.amsgrad else {**numbers, "largest": None}

    def write(
        self, new: Array, weight: Array, grad: Array, state: State, rate: float
    ) -> None:
        weight, grad = self._decayed(weight, grad, rate, decoupled=False)
        change = self._change(grad, state, rate, new)
        namespace(weight).subtract(weight, change, out=new)

    def _change(self, grad: Array, state: State, rate: float, new: Array) -> Array:
        """The amount to subtract from the weight, written to `new`."""
        xp = namespace(grad)
        mean, square = self._averaged(grad, state, new)
        share, square_share = self._unbiased(state)
        if self.amsgrad:
            square = xp.maximum(state["largest"], square, out=state["largest"])
        change = xp.sqrt(square, out=new)
        change *= square_share**-0.5
        change += self.eps
        xp.divide(mean, change, out=change)
        change *= rate / share
        return change


@dataclass(eq=False, kw_only=True)
class AdamW(Adam):
    """Adam with the weight decayed by itself: weight * (1 - rate * decay)

    cautious_weight_decay: only where the update does not go against the weight's sign
    (https://arxiv.org/abs/2510.12402).
    """

    weight_decay: float = 0.01
    cautious_weight_decay: bool = False

    def kernel(self, state: State, rate: float) -> tuple[str, dict[str, Any]]:
        decays = "cautious" if self.cautious_weight_decay else "weight"
        return "adam", self._numbers(state, rate, decays, 1 - rate * self.weight_decay)

    def write(
        self, new: Array, weight: Array, grad: Array, state: State, rate: float
    ) -> None:
        xp = namespace(weight)
        change = self._change(grad, state, rate, new)
        kept = weight * (1 - rate * self.weight_decay)
        if self.cautious_weight_decay:
            kept = xp.where(state["mean"] * weight >= 0, kept, weight)
        xp.subtract(kept, change, out=new)


@dataclass(eq=False, kw_only=True)
class Adamax(_Averages):
    """weight - rate * mean / largest;  largest <- max(beta2 * largest, |grad| + eps)"""

    def slots(self) -> tuple[str, ...]:
        return ("mean", "largest")

    def write(
        self, new: Array, weight: Array, grad: Array, state: State, rate: float
    ) -> None:
        xp = namespace(weight)
        weight, grad = self._decayed(weight, grad, rate, decoupled=False)
        mean = average(state["mean"], grad, self.betas[0], new)
        largest = state["largest"]
        largest *= self.betas[1]
        xp.abs(grad, out=new)
        new += self.eps
        xp.maximum(largest, new, out=largest)
        xp.divide(mean, largest, out=new)
        less(new, weight, new, rate / self._unbiased(state)[0])


@dataclass(eq=False, kw_only=True)
class NAdam(_Averages):
    """Adam that looks one step ahead along its mean, as Nesterov's momentum does.

    decoupled_weight_decay: decay the weight by itself, as AdamW does.
    """

    momentum_decay: float = 4e-3
    decoupled_weight_decay: bool = False
    _products: list[float] = field(
        default_factory=lambda: [1.0], init=False, repr=False
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check("NAdam momentum_decay", self.momentum_decay, 0)

    def write(
        self, new: Array, weight: Array, grad: Array, state: State, rate: float
    ) -> None:
        step, xp = state["step"], namespace(weight)
        weight, grad = self._decayed(weight, grad, rate, self.decoupled_weight_decay)
        mean, square = self._averaged(grad, state, new)
        spread = xp.sqrt(square, out=new)
        spread *= self._unbiased(state)[1] ** -0.5
        spread += self.eps
        now, ahead = self._momentum(step), self._momentum(step + 1)
        part = rate * (1 - now) / (1 - self._product(step))
        rest = rate * ahead / (1 - self._product(step + 1))
        xp.divide(part * grad + rest * mean, spread, out=new)
        xp.subtract(weight, new, out=new)

    def _momentum(self, step: int) -> float:
        return self.betas[0] * (1 - 0.5 * 0.96 ** (step * self.momentum_decay))

    def _product(self, step: int) -> float:
        """The momenta of all steps up to this one, multiplied."""
        known = self._products
        while len(known) <= step:
            known.append(known[-1] * self._momentum(len(known)))
        return known[step]


@dataclass(eq=False, kw_only=True)
class RAdam(_Averages):
    """Adam that goes by its mean alone while too few squares were seen.

    decoupled_weight_decay: decay the weight by itself, as AdamW does.
    """

    decoupled_weight_decay: bool = False

    def write(
        self, new: Array, weight: Array, grad: Array, state: State, rate: float
    ) -> None:
        step, beta = state["step"], self.betas[1]
        weight, grad = self._decayed(weight, grad, rate, self.decoupled_weight_decay)
        mean, square = self._averaged(grad, state, new)
        share, square_share = self._unbiased(state)
        most = 2 / (1 - beta) - 1
        seen = most - 2 * step * beta**step / square_share
        if seen <= 5:
            less(new, weight, mean, rate / share)
            return
        rectified = (seen - 4) * (seen - 2) * most / ((most - 4) * (most - 2) * seen)
        xp = namespace(weight)
        spread = xp.sqrt(square, out=new)
        spread += self.eps
        change = xp.divide(mean, spread, out=new)
        less(new, weight, change, rate / share * (rectified * square_share) ** 0.5)
