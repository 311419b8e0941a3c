"""Gradients by parameter path, and their sum over several batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Self

from burnish.autodiff import Gradients, Variable, recording
from burnish.backend import Array, Device
from burnish.errors import InputError
from burnish.nn import Module, ParamGroup
from burnish.optim.core.rounded import Rounded


class GradientsParams(Mapping[str, Array]):
    """The gradient arrays of a module's parameters, by path ("fc1.weight").

    Paths mean the same in every copy of the module, so gradients from one device may
    be used on another. Parameters that the loss does not depend on are absent.
    """

    def __init__(self, found: Mapping[str, Array]):
        self._found: dict[str, Any] = dict(found)

    @classmethod
    def from_grads(
        cls, gradients: Gradients, module: Module, group: ParamGroup | None = None
    ) -> Self:
        """The gradients of `backward()` for the parameters of `module` (in `group`)."""
        params = dict(module.named_parameters())
        if group is not None:
            params = {path: params[path] for path in group.paths(module)}
        return cls.of(gradients, params)

    @classmethod
    def of(cls, gradients: Gradients, params: Mapping[str, Variable]) -> Self:
        """The gradients of `backward()`, by the given paths."""
        found = {path: gradients.get(param) for path, param in params.items()}
        is_captured = recording.tape is not None and recording.tape.is_step
        return cls(
            {
                path: g if is_captured or type(g) is Rounded else g.data
                for path, g in found.items()
                if g is not None
            }
        )

    def to(self, device: Device | str) -> Self:
        """The same gradients on another device, to be added to those there."""
        place = Device(device)
        return type(self)({path: place.put(g) for path, g in self.items()})

    def half(self, path: str) -> Array:
        """The gradient as a step in half precision left it; others as they are."""
        found = self._found[path]
        return found.rounded if type(found) is Rounded else found

    def __getitem__(self, path: str) -> Array:
        found = self._found[path]
        return found.data if type(found) is Rounded else found

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)


class GradientsAccumulator:
    """Adds gradients up, to step once for several batches."""

    def __init__(self) -> None:
        self._sum: dict[str, Array] = {}
        self._own: set[str] = set()
        self._tape = recording.tape

    def accumulate(self, gradients: GradientsParams) -> None:
        """Add `gradients` to the sum; they stay as they are."""
        if recording.tape is not self._tape and recording.tape is not None:
            recording.tape.refuse("gradients are added up over several calls")
        for path, gradient in gradients.items():
            if path not in self._sum:
                self._sum[path] = gradient
            elif self._sum[path].shape != gradient.shape:
                raise InputError(
                    f"accumulate: expected a gradient of shape "
                    f"{self._sum[path].shape} for {path}, got {gradient.shape}"
                )
            else:
                with Device.of(gradient).computing():
                    self._add(path, gradient)

    def _add(self, path: str, gradient: Array) -> None:
        if path in self._own:
            self._sum[path] += gradient
        else:
            self._sum[path] = self._sum[path] + gradient
            self._own.add(path)

    def grads(self) -> GradientsParams:
        """The sum so far; the accumulator starts again from nothing."""
        found = GradientsParams(self._sum)
        self._sum, self._own = {}, set()
        return found
