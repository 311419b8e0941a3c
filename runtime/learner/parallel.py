"""Data parallelism: split each batch over processes, and reduce the results."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from burnish import rng
from burnish.backend import Array
from burnish.distributed import Group
from burnish.errors import InputError
from burnish.learner.checkpoint import Checkpoint, RunState
from burnish.learner.interrupter import Interrupter
from burnish.learner.tracker import Measured
from burnish.nn import Module
from burnish.optim import GradientsAccumulator, GradientsParams


class Together:
    """The processes of a run with one model; a process alone is the whole."""

    def __init__(self, workers: Group, model: Module):
        self.workers = workers
        self.model = model
        self._held: list[str] | None = None  # the paths that have gradients

    @property
    def is_first(self) -> bool:
        """Whether this process is the first one."""
        return self.workers.is_first

    def part(self, batches: Iterable[Any]) -> Iterable[Any]:
        """This process's part of every batch, where the batches can be parted."""
        if self.workers.size > 1 and hasattr(batches, "part"):
            parted: Iterable[Any] = batches.part(self.workers.rank, self.workers.size)
            return parted
        return batches

    def share(self, count: int, measured: Measured) -> tuple[float, list[Measured]]:
        """This part's weight in the batch, and all parts' statistics."""
        if self.workers.size == 1:
            return 1.0, [measured]
        gathered = self.workers.gather({"n": count, "measured": measured})
        total = sum(each["n"] for each in gathered)
        return count / total if total else 0.0, [each["measured"] for each in gathered]

    def summed(self, sums: GradientsAccumulator, scale: float) -> GradientsParams:
        """The gradients of all parts, times `scale`."""
        own: dict[str, Array] = dict(sums.grads())
        if self.workers.size > 1:
            params = dict(self.model.named_parameters())
            held = np.array([path in own for path in params], np.uint8)
            anywhere = self.workers.sum({"held": held})["held"]
            for (path, param), some in zip(params.items(), anywhere, strict=True):
                if some and path not in own:
                    own[path] = param.device.xp.zeros_like(param.data)
            own = self.workers.sum(own)
        if scale != 1:
            own = {path: gradient * scale for path, gradient in own.items()}
        return GradientsParams(own)

    def mean(self, gradients: GradientsParams, count: int) -> GradientsParams:
        """The gradients of the whole batch; count: the items of this part.

        Which parameters have gradients is agreed on in the first step of a run, whose
        steps are all alike. Raises InputError for a gradient that came later.
        """
        if self.workers.size == 1:
            return gradients
        params = dict(self.model.named_parameters())
        if self._held is None:
            held = np.array([path in gradients for path in params], np.uint8)
            anywhere = self.workers.sum({"held": held})["held"]
            self._held = [p for p, some in zip(params, anywhere, strict=True) if some]
        if unknown := sorted(set(gradients) - set(self._held)):
            raise InputError(
                f"training on {self.workers.size} GPUs with compile=: expected the "
                f"parameters that had gradients in the first step, got one for "
                f"{unknown[0]!r}; leave compile= out"
            )
        own = {
            path: gradients.half(path)
            if path in gradients
            else params[path].device.xp.zeros_like(params[path].data)
            for path in self._held
        }
        return GradientsParams(self.workers.mean(own, count))

    def begin(self, start: Checkpoint | None) -> Checkpoint:
        """The first process's checkpoint and weights for all of them."""
        if self.workers.size > 1:
            gathered = None if start is None else start.as_dict()
            gathered = self.workers.gather(gathered)[0]
            start = None if gathered is None else Checkpoint.from_dict(gathered)
        if start is None:
            if self.workers.size > 1:
                state = self.model.state_dict()
                self.model.load_state_dict(self.workers.from_first(state))
            if self.workers.rank:
                rng.jump(self.workers.rank)
            start = Checkpoint(RunState(0), {}, {}, {})
        return start

    def settle(self) -> None:
        """Give all processes the first one's buffers, as of running statistics."""
        buffers = {path: item.data for path, item in self.model.named_buffers()}
        if self.workers.size > 1 and buffers:
            self.model.load_state_dict(self.workers.from_first(buffers), strict=False)

    def stops(self, interrupter: Interrupter) -> bool:
        """Whether all stop now, because any one of them was asked to."""
        reasons = [each for each in self.workers.gather(interrupter.reason) if each]
        if reasons:
            interrupter.stop(reasons[0])
        return bool(reasons)

    def random(self) -> list[Any]:
        """Where every process's random numbers are."""
        return self.workers.gather(rng.state())

    def restore(self, states: list[Any] | None) -> None:
        """Keep this process's random state; new processes get their own."""
        if states is None:
            return
        rng.restore(states[min(self.workers.rank, len(states) - 1)])
        if self.workers.rank >= len(states):
            rng.jump(self.workers.rank)
