"""Choosing the next tokens on a GPU, where the next step reads them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from burnish.backend.cuda.kernels import kernel

_NOTHING = np.uint64(0)


class Choice(NamedTuple):
    """How tokens are chosen; see `burnish.generation.follow`."""

    drawn: bool
    temperature: float
    top_k: int | None
    top_p: float
    rest: int


class Tokens:
    """The tokens (N, room) that a run of steps chooses, and what goes with them.

    given (N, 1), position (1,), places (N, 1) or None: what the next step reads.
    ends: tokens that end a row; chances (steps, N): float64 in [0, 1).
    """

    def __init__(
        self,
        choice: Choice,
        room: int,
        read: tuple[Any, Any, Any],
        ends: list[int],
        chances: Any,
    ):
        import cupy

        self._choice, self._read = choice, read
        self.made = cupy.zeros((len(read[0]), room), np.int64)
        self.running = cupy.ones(len(read[0]), bool)
        self._ends = cupy.asarray(ends or [0], np.int64)
        self._count = len(ends)
        self._chances = None if chances is None else cupy.asarray(chances)
        self._kernel = kernel("next_token", wide="float", drawn=choice.drawn)

    def choose(self, logits: Any, at: int, known: int, banned: Any) -> None:
        """Token number `at` of each row of logits (N, V).

        known: positions that there are before it. banned (V,): tokens that may not be.
        """
        given, position, places = self._read
        choice, vocab = self._choice, logits.shape[1]
        numbers = (
            np.float32(choice.temperature),
            np.int64(min(choice.top_k or vocab, vocab)),
            np.float64(choice.top_p),
        )
        arguments = (
            *(logits, np.int64(logits.strides[0] // 4), np.int64(vocab)),
            _NOTHING if banned is None else banned,
            _NOTHING if self._chances is None else self._chances[at],
            *(*numbers, self._ends, np.int64(self._count), np.int64(choice.rest)),
            *(self.running, self.made, np.int64(self.made.shape[1]), np.int64(at)),
            *(given, position, _NOTHING if places is None else places),
            np.int64(known),
        )
        self._kernel((len(logits),), (1024,), arguments)


def banned(tokens: list[int], vocab: int) -> Any:
    """Tokens as an array (V,) of booleans; None where there are none."""
    import cupy

    if not tokens:
        return None
    made = np.zeros(vocab, bool)
    made[tokens] = True
    return cupy.asarray(made)
