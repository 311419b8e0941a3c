"""Name axes that depend on dynamic dimensions of the inputs.

The model runs once more for each name, with another size; an axis that changes follows
that name. Empirical, with one other size for each name: the page shows these names, and
nothing is computed with them. Products are left out, only their shapes count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from burnish.codegen.tools.model_page.boxes import Flow
from burnish.codegen.tools.model_page.observe import Kind, Pass

Shape: TypeAlias = tuple[int, ...]
Places: TypeAlias = dict[tuple[str, str, int], Kind]
"""Every tensor of a pass, by module, role and number."""


class Sizes:
    """Writes the shapes of one pass with names.

    sizes: what each name was in it; others: the same model with one name's size
    changed: that size, and what flowed.
    """

    def __init__(
        self,
        base: Pass,
        sizes: Mapping[str, int],
        others: Mapping[str, tuple[int, Pass]],
    ):
        self.sizes = {name: sizes[name] for name in others}
        self._others = {
            name: (size, places(seen)) for name, (size, seen) in others.items()
        }
        self._at = places(base)

    def flow(self, at: tuple[str, str, int]) -> Flow:
        """The tensor at a place of the first pass."""
        name, dtype, shape = self._at[at]
        return Flow(
            name, dtype, tuple(self._axis(at, i, n) for i, n in enumerate(shape))
        )

    def _axis(self, at: tuple[str, str, int], axis: int, size: int) -> int | str:
        followed: dict[str, int] = {}
        for name, (_, there) in self._others.items():
            other = there.get(at)
            if other is None or len(other[2]) <= axis:
                continue
            if other[2][axis] != size:
                followed[name] = other[2][axis]
        return self._spelled(size, followed) if followed else size

    def _spelled(self, size: int, followed: Mapping[str, int]) -> int | str:
        """`batch`, `4*batch`, `batch*time`, `height/2`, `time+1`; else the number."""
        pairs = [
            (self.sizes[name], self._others[name][0], after)
            for name, after in followed.items()
        ]
        product = 1
        for before, _, _ in pairs:
            product *= before
        names = "*".join(followed)
        if all(size * new == after * old for old, new, after in pairs):
            if product and size % product == 0:
                times = size // product
                return names if times == 1 else f"{times}*{names}"
            if size and product % size == 0:
                return f"{names}/{product // size}"
        if len(pairs) == 1:
            ((old, new, after),) = pairs
            if after - size == new - old:
                return f"{names}{size - old:+d}"
        return size


def places(seen: Pass) -> Places:
    """Every tensor of a pass: inputs, outputs and results of steps."""
    found: Places = {}
    for path, module in seen.modules.items():
        for role, kinds in (("in", module.inputs), ("out", module.outputs)):
            for number, kind in enumerate(kinds):
                found[path, role, number] = kind
        number = 0
        for _, _, kinds in module.steps:
            for kind in kinds:
                found[path, "step", number] = kind
                number += 1
    return found


def second(size: int, batch: bool) -> Sequence[int]:
    """Other sizes to try for a dimension, one after the other."""
    return (size + 2,) if batch else (size + 32, size * 2, max(size // 2, 1))


def same_steps(one: Pass, other: Pass) -> bool:
    """Whether two passes went the same way."""
    return {path: _way(seen.steps) for path, seen in one.modules.items()} == {
        path: _way(seen.steps) for path, seen in other.modules.items()
    }


def _way(
    steps: Sequence[tuple[str, str, tuple[Kind, ...]]],
) -> list[tuple[str, str, int]]:
    return [(operator, module, len(kinds)) for operator, module, kinds in steps]
