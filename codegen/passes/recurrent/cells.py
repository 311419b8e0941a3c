"""Recognize a loop body as a recurrent cell by running both on sampled inputs.

A cell is a function of its input and its last states. It is run on random numbers with
the file's own weights, and it is an RNN, a GRU or an LSTM where it gives what theirs
gives. The evidence is empirical: several draws, of several batch sizes and magnitudes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np

Step = Callable[..., Sequence[np.ndarray]]
_GATES = {1: (1, 3), 2: (4,)}
"""The gates of cells with so many states: an RNN has none, and counts as one."""
_DRAWS = ((3, 1.0), (3, 4.0), (1, 0.25), (8, 1.0))
"""Batch sizes and magnitudes: small draws agree where a bound is not reached."""


@dataclass(frozen=True)
class Cell:
    """Weights as ONNX packs them for one direction, gates in its order: (z, r, h) of a
    GRU, (i, o, f, c) of an LSTM.

    W (1, gates * H, I), R (1, gates * H, H), B (1, 2 * gates * H) or None.
    """

    kind: str
    W: np.ndarray
    R: np.ndarray
    B: np.ndarray | None
    linear_before_reset: bool = False
    activation: str = "Tanh"

    @property
    def size(self) -> int:
        return int(self.R.shape[2])


def cell_of(
    step: Step, weights: Sequence[np.ndarray], size: int, states: int = 1
) -> Cell | None:
    """The cell that `step(x, h)` or `step(x, h, c)` is, with these weights.

    size: H. The step returns the next states.
    """
    rng = np.random.default_rng(0)
    for kernel, recurrent, biases in _parts(weights, size, _GATES[states]):
        draws = [
            [
                (scale * rng.normal(size=(batch, width))).astype(kernel.dtype)
                for width in (len(kernel), *[size] * states)
            ]
            for batch, scale in _DRAWS
        ]
        wanted = [_result(step, draw) for draw in draws]
        if wanted[0] is None or wanted[1] is None:
            continue  # not of this size
        for cell in _cells(kernel, recurrent, biases, size):
            if all(
                want is None or _are_close(_run(cell, *draw), want)
                for draw, want in zip(draws, wanted, strict=True)
            ):
                return cell
    return None


def _result(step: Step, draw: Sequence[np.ndarray]) -> Sequence[np.ndarray] | None:
    """The next states; None where the body has fixed another batch size."""
    try:
        return step(*draw)
    except (ValueError, IndexError, TypeError, RuntimeError):
        return None


def _are_close(found: Sequence[np.ndarray], wanted: Sequence[np.ndarray]) -> bool:
    return all(
        one.shape == other.shape and np.allclose(one, other, 1e-4, 1e-5)
        for one, other in zip(found, wanted, strict=True)
    )


def _parts(
    weights: Sequence[np.ndarray], size: int, gates: Sequence[int]
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray | None]]:
    """Kernels (I, gates * H) and (H, gates * H), and biases (2, gates * H)."""
    matrices = [w for w in weights if w.ndim == 2 and w.shape[0] != 2]
    pairs = [w for w in weights if w.ndim == 2 and w.shape[0] == 2]
    rows = [w for w in weights if w.ndim == 1]
    for several in (matrices, [*matrices, *pairs]):
        rest = [w for w in pairs if not any(w is m for m in several)]
        if len(several) != 2 or len(rest) + len(rows) > 2 or (rest and rows):
            continue
        for kernel, recurrent in permutations(several):
            width = kernel.shape[1]
            if recurrent.shape != (size, width):
                continue
            if width not in [count * size for count in gates]:
                continue
            if any(w.shape[-1] != width for w in (*rest, *rows)) or len(rest) > 1:
                continue
            if rest:
                yield kernel, recurrent, rest[0]
            elif rows:
                zeros = [np.zeros_like(rows[0])] * (2 - len(rows))
                for both in permutations((*rows, *zeros)):
                    yield kernel, recurrent, np.stack(both)
            else:
                yield kernel, recurrent, None


def _cells(
    kernel: np.ndarray, recurrent: np.ndarray, biases: np.ndarray | None, size: int
) -> Iterator[Cell]:
    """The cells that these weights may be of."""
    if kernel.shape[1] == size:
        for activation in ("Tanh", "Relu"):
            W, R, B = _packed(kernel, recurrent, biases, (0,), size)
            yield Cell("RNN", W, R, B, activation=activation)
        return
    if kernel.shape[1] == 4 * size:
        W, R, B = _packed(kernel, recurrent, biases, (0, 3, 1, 2), size)
        yield Cell("LSTM", W, R, B)
        return
    for order in ((0, 1, 2), (1, 0, 2)):
        W, R, B = _packed(kernel, recurrent, biases, order, size)
        for linear in (True, False):
            yield Cell("GRU", W, R, B, linear)


def _packed(
    kernel: np.ndarray,
    recurrent: np.ndarray,
    biases: np.ndarray | None,
    order: Sequence[int],
    size: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    places = np.concatenate([np.arange(size) + gate * size for gate in order])
    bias = None if biases is None else biases[:, places].reshape(1, -1)
    return kernel[:, places].T[None], recurrent[:, places].T[None], bias


def _run(
    cell: Cell, x: np.ndarray, h: np.ndarray, c: np.ndarray | None = None
) -> list[np.ndarray]:
    """One step, as ONNX's specification has it; the next states."""
    W, R, size = cell.W[0], cell.R[0], cell.size
    zeros = np.zeros((2, W.shape[0]), W.dtype)
    forward, back = zeros if cell.B is None else cell.B[0].reshape(2, -1)
    given, kept = x @ W.T + forward, h @ R.T + back
    if cell.kind == "RNN":
        total = given + kept
        return [np.tanh(total) if cell.activation == "Tanh" else np.maximum(total, 0)]
    if c is not None:
        i, o, f, new = np.split(given + kept, 4, axis=1)
        c = _sigmoid(f) * c + _sigmoid(i) * np.tanh(new)
        return [_sigmoid(o) * np.tanh(c), c]
    z, r = (
        _sigmoid(given[:, part] + kept[:, part])
        for part in (slice(size), slice(size, 2 * size))
    )
    last = slice(2 * size, None)
    linear = r * kept[:, last]
    if not cell.linear_before_reset:
        linear = (r * h) @ R[last].T + back[last]
    return [(1 - z) * np.tanh(given[:, last] + linear) + z * h]


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))
