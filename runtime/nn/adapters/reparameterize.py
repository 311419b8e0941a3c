"""A parameter that is computed from others: weights with adapters, norms, low ranks.

A module reads its attribute `weight` and knows nothing of it. A
`Reparameterized` takes the place of a `Param`: reading it gives the value that a
`Reparameterizer` makes from the parts, and gradients go to the parts.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Iterator
from typing import Any, NoReturn, Self

from burnish.autodiff import Node, recording
from burnish.backend import Array, Device
from burnish.errors import InputError
from burnish.nn.core.param import Param, Stored
from burnish.tensor import Tensor


class Reparameterizer:
    """How a parameter becomes parts, and parts become its value again.

    Weight normalization, for example:

        class WeightNorm(Reparameterizer):
            def split(self, param):
                size = np.linalg.norm(param.data, axis=1, keepdims=True)
                return {"g": Param(size), "v": Param(param.data)}

            def value(self, g, v):
                return g * v / (v * v).sum(axis=1, keepdims=True).sqrt()
    """

    def fits(self, path: str, param: Param) -> bool:
        """Whether a parameter can be split; others of a group stay as they are."""
        return True

    def split(self, param: Param) -> dict[str, Stored]:
        """The parts by name; one called "base" keeps the parameter's own path."""
        raise TypeError(f"{type(self).__name__} does not say how to split a parameter")

    def value(self, **parts: Any) -> Any:
        """The value, computed with operators; it is given the parameter's shape."""
        raise TypeError(f"{type(self).__name__} does not say what the value is")

    def product(self, x: Any, transposed: bool, **parts: Any) -> Any:
        """x @ value.T, of `transposed` x @ value, without the value's own gradient.

        None where there is no such way: the value is computed then.
        """
        return None

    def base(self, **parts: Any) -> Any:
        """The value without what was added: the part "base", else the value."""
        return parts["base"] if "base" in parts else self.value(**parts)


class Reparameterized(Param):
    """The value of `method` on its parts, where a parameter was."""

    __slots__ = ("_last", "_named", "method", "trained")
    derived = True

    method: Reparameterizer
    trained: bool  # whether the parameter took part in training

    def __init__(self, param: Param, method: Reparameterizer):
        trained = param.trainable
        parts = method.split(param)
        for part in parts.values():
            part.place(param.device)
        self._set(method, parts, param.shape, param.dtype, trained, None)

    def _set(
        self,
        method: Reparameterizer,
        parts: dict[str, Stored],
        shape: tuple[int, ...],
        dtype: Any,
        trained: bool,
        merged: Array | None,
    ) -> None:
        self.method, self._named = method, parts
        self._value = merged  # what `version` sees: computed anew where it is None
        self._shape, self._dtype, self.trained = shape, dtype, trained
        self._last: tuple[Any, int, list[Any]] | None = None

    def parts(self) -> Iterator[tuple[str, Stored]]:
        for name, part in self._named.items():
            yield ("" if name == "base" else name), part

    # --- its value ---

    def resolve(self) -> Tensor:
        """The value on its device, recorded where a part is."""
        if self._value is not None:
            return Tensor.wrap(self.device.put(self._value), self.device)
        key = [
            thing for part in self._named.values() for thing in (part.data, part.node)
        ]
        if self._last is not None:
            reference, index, made_of = self._last
            node = reference()
            same = all(a is b for a, b in zip(key, made_of, strict=True))
            if node is not None and same:  # one recurrent network's steps share it
                return Tensor.wrap(node.outputs(), self.device, node, index)
        made = self.computed()
        if made.node is not None:
            self._last = weakref.ref(made.node), made.index, key
        return made

    def computed(self) -> Tensor:
        """The value from its parts as they are now, also where they were merged."""
        return self._like_the_parameter(self.method.value(**self._named))

    def product(self, x: Any, transposed: bool) -> Any:
        """x @ value.T, of `transposed` x @ value, where parts train; else None.

        Without gradients the value is as good, and one that a plan computes once.
        """
        is_trained = any(part.node is not None for part in self._named.values())
        if self._value is not None or recording.paused or not is_trained:
            return None
        if recording.tape is not None:
            recording.tape.note_formula(self)
        return self.method.product(x, transposed, **self._named)

    @property
    def is_merged(self) -> bool:
        """Whether the value is one that `merge` has computed."""
        return self._value is not None

    @property
    def base(self) -> Tensor:
        """The value without what was added."""
        return self._like_the_parameter(self.method.base(**self._named))

    def _like_the_parameter(self, value: Any) -> Tensor:
        if math.prod(value.shape) != self.size:
            raise InputError(
                f"{type(self.method).__name__}: expected a value of shape "
                f"{self._shape}, got {tuple(value.shape)}"
            )
        if value.shape != self._shape:
            value = value.reshape(self._shape)
        made: Tensor = value.astype(self._dtype)
        return made

    def merge(self) -> None:
        """Compute the value once and for all; the parts do not train any more."""
        self._value = self.resolve().data

    def unmerge(self) -> None:
        """Compute the value from the parts again; they are what they were."""
        self._value = None

    # --- what a parameter has ---

    @property
    def data(self) -> Array:
        if recording.tape is not None:
            recording.tape.read(self)
        return self.resolve().data

    @data.setter
    def data(self, values: Any) -> None:
        self.assign(values)

    @property
    def node(self) -> Node | None:  # type: ignore[override]
        return self.resolve().node

    @property
    def index(self) -> int:  # type: ignore[override]
        return self.resolve().index

    @property
    def device(self) -> Device:  # type: ignore[override]
        return next(iter(self._named.values())).device

    @property
    def trainable(self) -> bool:  # type: ignore[override]
        return any(part.trainable for part in self._named.values())

    @property
    def is_lazy(self) -> bool:
        return False

    @property
    def held(self) -> Array:
        return self.data

    @property
    def scheme(self) -> None:
        return None

    @property
    def nbytes(self) -> int:
        return sum(part.nbytes for part in self._named.values())

    def assign(self, value: Any, dtype: Any = None) -> None:
        self.check_assignment(value, "assign")

    def check_assignment(self, value: Any, where: str) -> NoReturn:
        raise InputError(
            f"{where}: this value is computed by {type(self.method).__name__}; assign "
            f"to its parts, or take them away with remove_adapters() first"
        )

    def place(self, device: Device) -> None:
        for part in self._named.values():
            part.place(device)

    def freeze(self, frozen: bool = True) -> None:
        for part in self._named.values():
            part.freeze(frozen)

    def copy(self) -> Self:
        parts = {name: part.copy() for name, part in self._named.items()}
        made = object.__new__(type(self))
        state = self._shape, self._dtype, self.trained, self._value
        made._set(self.method, parts, *state)
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        state = self._shape, self._dtype, self.trained, self._value
        return _restored, (self.method, self._named, *state)


def _restored(*state: Any) -> Reparameterized:
    made = object.__new__(Reparameterized)
    made._set(*state)
    return made


def plain(item: Reparameterized, merged: bool) -> Param:
    """A parameter with the value, or with the base alone; it trains as it once did."""
    base = dict(item.parts()).get("")
    if isinstance(base, Param) and not merged:
        made = base.copy()
    else:
        made = Param((item.resolve() if merged else item.base).data)
    made.place(item.device)
    made.freeze(not item.trained)
    return made
