"""Gradients by parameter path, and their sum over several batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Self

from burnish.autodiff import Gradients
from burnish.backend import Array
from burnish.nn import Module


class GradientsParams(Mapping[str, Array]):
    """The gradient arrays of a module's parameters, by path ("fc1.weight").

    Paths mean the same in every copy of the module, so gradients from one device may
    be used on another. Parameters that the loss does not depend on are absent.
    """

    def __init__(self, found: Mapping[str, Array]):
        self._found = dict(found)

    @classmethod
    def from_grads(cls, gradients: Gradients, module: Module) -> Self:
        """What `backward()` returned, for the parameters of `module`."""
        found = {}
        for path, param in module.named_parameters():
            gradient = gradients.get(param)
            if gradient is not None:
                found[path] = gradient.data
        return cls(found)

    def __getitem__(self, path: str) -> Array:
        return self._found[path]

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)


class GradientsAccumulator:
    """Adds gradients up, to step once for several batches."""

    def __init__(self) -> None:
        self._sum: dict[str, Array] = {}

    def accumulate(self, gradients: GradientsParams) -> None:
        """Add `gradients` to the sum."""
        for path, gradient in gradients.items():
            seen = self._sum.get(path)
            self._sum[path] = gradient if seen is None else seen + gradient

    def grads(self) -> GradientsParams:
        """The sum so far; the accumulator starts again from nothing."""
        found, self._sum = GradientsParams(self._sum), {}
        return found
