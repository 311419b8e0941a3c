"""Key-value caches of attention. N batch, S keys, D their size."""

from __future__ import annotations

from burnish import ops
from burnish.autodiff import recording
from burnish.errors import InputError
from burnish.tensor import Tensor


class TensorCache:
    """A tensor that grows along one axis; empty at first."""

    def __init__(self, axis: int = -2):
        self.axis = axis
        self.value: Tensor | None = None

    def __len__(self) -> int:
        return 0 if self.value is None else int(self.value.shape[self.axis])

    def extend(self, new: Tensor | None) -> Tensor:
        """All so far, with `new` at the end; InputError if there is nothing yet."""
        if recording.tape is not None:
            recording.tape.refuse("a cache grows with every call")
        if self.value is None:
            self.value = new
        elif new is not None:
            self.value = ops.concat([self.value, new], axis=self.axis)
        if self.value is None:
            raise InputError("TensorCache: expected something to remember, got None")
        return self.value

    def clear(self) -> None:
        """Empty again."""
        self.value = None


class MhaCache:
    """Projected keys and values (N, heads, S, D) of one attention layer."""

    def __init__(self) -> None:
        self.keys = TensorCache()
        self.values = TensorCache()

    def __len__(self) -> int:
        return len(self.keys)

    def extend(
        self, keys: Tensor | None, values: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """All keys and values so far, with the new ones, if any, at the end."""
        return self.keys.extend(keys), self.values.extend(values)

    def clear(self) -> None:
        """Empty again."""
        self.keys.clear()
        self.values.clear()


class DecoderCache:
    """One decoder layer's caches: its own keys, and those of the memory."""

    def __init__(self) -> None:
        self.own = MhaCache()
        self.memory = MhaCache()
