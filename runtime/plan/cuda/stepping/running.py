"""Running: statistics that batch norms keep, moved all at once at the end of a step.

What a norm assigns is computed when somebody asks for it, else in one launch for all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from burnish.autodiff import Variable
from burnish.backend.cuda.norms import moved
from burnish.nn.core.param import Stored
from burnish.nn.norms.batch_norm import counted, moved_towards
from burnish.plan.cuda.stepping.deferred import Deferred
from burnish.tensor import Tensor


class Values:
    """A buffer's next values, which a call computes.

    of: the buffer. move: what `function` computes for plain arguments. away: gives a
    context in which no calls are looked at.
    """

    def __init__(self, of: Stored, move: moved.Move, away: Callable[[], Any]):
        self.of, self.move, self._away = of, move, away
        self._made: Any = None

    def __call__(self, *kind: Any) -> Any:
        old, new, share, scale = self.move
        if self._made is None:
            with self._away():
                self._made = (
                    counted(old)
                    if new is None
                    else moved_towards(old, new, share, scale=scale)
                )
        return self._made


class Moved(Deferred):
    """The next values of a buffer as a tensor."""

    __slots__ = ("values",)

    def __init__(self, values: Values):
        self.values = values

    def whole(self) -> Variable:
        """The values as a plain tensor."""
        return Tensor.wrap(self.values(), self.device)

    @property
    def operand(self) -> Variable:
        return self.values.of

    @property
    def dtype(self) -> Any:
        return self.values.of.dtype


def later(
    function: Any, args: tuple[Any, ...], options: dict[str, Any], away: Any
) -> Moved | None:
    """The next values of a batch norm's buffer; None for any other call."""
    if function not in (counted, moved_towards) or not isinstance(args[0], Stored):
        return None
    old, new, share = (*args, None, 1.0)[:3]
    scale = options.get("scale", 1.0)
    fits = old.dtype.name in (moved.COUNTS if new is None else moved.ELEMENTS)
    if not fits or type(share) is not float:
        return None
    if new is not None and not (isinstance(new, Variable) and new.dtype == old.dtype):
        return None
    with away():
        arrays = old.data, None if new is None else new.data
        return Moved(Values(old, moved.Move(*arrays, share, scale), away))


class Running:
    """Buffers whose values are not computed yet."""

    def __init__(self) -> None:
        self._lent: dict[int, Values] = {}

    def takes(self, stored: Stored, value: Any, dtype: Any) -> bool:
        """Whether a buffer was lent what it is assigned."""
        if type(value) is not Moved or value.values.of is not stored:
            return False
        if dtype is not None and dtype != stored.dtype:
            return False
        stored.lend(value.values)
        self._lent[id(stored)] = value.values
        return True

    def settle(self) -> None:
        """Compute what nobody has asked for."""
        held = [each for each in self._lent.values() if each.of.is_lent(each)]
        self._lent.clear()
        if not held:
            return
        arrays = moved.moved([each.move for each in held])
        for each, array in zip(held, arrays, strict=True):
            each.of.assign(array)
