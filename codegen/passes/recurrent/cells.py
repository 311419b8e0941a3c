"""Recognize a loop body as a recurrent cell by running both on sampled inputs.

A cell is a function of its input and its last state. It is run on random numbers with
the file's own weights, and it is an RNN or a GRU where it gives what theirs gives. The
evidence is empirical: several draws, of several batch sizes and magnitudes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np

Step = Callable[[np.ndarray, np.ndarray], np.ndarray]
_DRAWS = ((3, 1.0), (3, 4.0), (1, 0.25), (8, 1.0))
"""Batch sizes and magnitudes: small draws agree where a bound is not reached."""


@dataclass(frozen=True)
class Cell:
    """Weights as ONNX packs them for one direction, gates in its order (z, r, h).

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


def cell_of(step: Step, weights: Sequence[np.ndarray], size: int) -> Cell | None:
    """The cell that `step(x, h)` is, with these weights; H is `size`."""
    rng = np.random.default_rng(0)
    for kernel, recurrent, biases in _parts(weights, size):
        draws = [
            (
                (scale * rng.normal(size=(batch, len(kernel)))).astype(kernel.dtype),
                (scale * rng.normal(size=(batch, size))).astype(kernel.dtype),
            )
            for batch, scale in _DRAWS
        ]
        wanted = [_result(step, x, h) for x, h in draws]
        if wanted[0] is None or wanted[1] is None:
            continue  # not of this size
        for cell in _cells(kernel, recurrent, biases, size):
            if all(
                want is None or _is_close(_run(cell, x, h, size), want)
                for (x, h), want in zip(draws, wanted, strict=True)
            ):
                return cell
    return None


def _result(step: Step, x: np.ndarray, h: np.ndarray) -> np.ndarray | None:
    """The next state; None where the body has fixed another batch size."""
    try:
        return step(x, h)
    except (ValueError, IndexError, TypeError, RuntimeError):
        return None


def _is_close(found: np.ndarray, wanted: np.ndarray) -> bool:
    return found.shape == wanted.shape and np.allclose(found, wanted, 1e-4, 1e-5)


def _parts(
    weights: Sequence[np.ndarray], size: int
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
            if recurrent.shape != (size, width) or width not in (size, 3 * size):
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


def _run(cell: Cell, x: np.ndarray, h: np.ndarray, size: int) -> np.ndarray:
    """One step, as ONNX's specification has it."""
    W, R = cell.W[0], cell.R[0]
    zeros = np.zeros((2, W.shape[0]), W.dtype)
    forward, back = zeros if cell.B is None else cell.B[0].reshape(2, -1)
    given = x @ W.T + forward
    if cell.kind == "RNN":
        total = given + h @ R.T + back
        return np.tanh(total) if cell.activation == "Tanh" else np.maximum(total, 0)
    kept = h @ R.T + back
    z, r = (
        1 / (1 + np.exp(-(given[:, part] + kept[:, part])))
        for part in (slice(size), slice(size, 2 * size))
    )
    last = slice(2 * size, None)
    linear = r * kept[:, last]
    if not cell.linear_before_reset:
        linear = (r * h) @ R[last].T + back[last]
    return (1 - z) * np.tanh(given[:, last] + linear) + z * h
