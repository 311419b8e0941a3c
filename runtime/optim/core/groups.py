"""One optimizer for a module, another for groups of its parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Self

from burnish._engine.arguments import checked, replaced_by
from burnish.autodiff import Gradients
from burnish.backend import Array
from burnish.errors import RecordError
from burnish.nn import Module, ParamGroup
from burnish.optim.core.gradients import GradientsParams
from burnish.optim.core.optimizer import STEP, Optimizer


class ModuleOptimizer(Optimizer):
    """`default` for a module's parameters, but other optimizers for groups.

        optimizer = ModuleOptimizer(Adam()).with_group(matrices, Muon())

    Where groups overlap the last one counts. clip: applied to all gradients, before
    each optimizer's own.
    """

    @checked
    def __init__(
        self,
        default: Optimizer,
        *,
        clip: Callable[[GradientsParams], GradientsParams] | None = None,
    ):
        super().__init__(clip=clip)
        self.default = default
        self.groups: list[tuple[ParamGroup, Optimizer]] = []

    def with_group(self, group: ParamGroup, optimizer: Optimizer) -> Self:
        """Let `optimizer` step the parameters of `group`; returns this one."""
        self.groups.append((group, optimizer))
        return self

    @replaced_by(STEP)
    def step(
        self,
        learning_rate: float,
        module: Module,
        gradients: Gradients | GradientsParams,
    ) -> None:
        if isinstance(gradients, Gradients):
            gradients = GradientsParams.from_grads(gradients, module)
        if self.clip is not None:
            gradients = self.clip(gradients)
        place = dict.fromkeys(gradients, 0)
        for i, (group, _) in enumerate(self.groups, 1):
            place |= {path: i for path in group.paths(module) if path in place}
        for i, optimizer in enumerate(self._all()):
            part = {path: g for path, g in gradients.items() if place[path] == i}
            if part:
                optimizer.step(learning_rate, module, GradientsParams(part))

    def _all(self) -> list[Optimizer]:
        return [self.default, *(optimizer for _, optimizer in self.groups)]

    @contextmanager
    def _unchanged(self) -> Iterator[None]:
        with ExitStack() as stack:
            for turns in sorted((each.turns for each in self._all()), key=id):
                stack.enter_context(turns)  # in the order that plans take them
            yield

    def _named(self) -> dict[str, Array]:
        return {
            f"{i}.{name}": array
            for i, optimizer in enumerate(self._all())
            for name, array in optimizer._named().items()
        }

    def _recall(self, state: Mapping[str, Array]) -> None:
        parts: list[dict[str, Array]] = [{} for _ in self._all()]
        for name, array in state.items():
            place, _, rest = name.partition(".")
            if not place.isdigit() or int(place) >= len(parts):
                raise RecordError(
                    f"optimizer state: expected names that start with the number of "
                    f"one of {len(parts)} optimizers, got {name!r}"
                )
            parts[int(place)][rest] = array
        for optimizer, part in zip(self._all(), parts, strict=True):
            optimizer._recall(part)

    def __repr__(self) -> str:
        parts = [repr(self.default), *(f"{g!r}: {o!r}" for g, o in self.groups)]
        return f"ModuleOptimizer({', '.join(parts)})"
