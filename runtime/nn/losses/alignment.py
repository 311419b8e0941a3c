"""Losses of sequences without aligned labels: CTC and RNN-T.

N batch, T frames, U labels, C classes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from burnish import ops
from burnish.backend import Array, Device, namespace
from burnish.errors import InputError
from burnish.nn.losses.checks import beside, mean, reduced
from burnish.operator import explained
from burnish.steps import step
from burnish.tensor import Tensor


@explained
def ctc_loss(
    log_probs: Tensor,
    targets: Any,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """log_probs (T, N, C), targets (N, U) or one after the other (sum of lengths,)

    Or (T, C) with targets (U,) and two numbers, for one example. Connectionist temporal
    classification: -log of the probability of all ways to tell the targets, with
    blanks between. "mean" divides each loss by its target's length first.
    zero_infinity: 0 for a target that is too long for its frames. The gradient is that
    of log_probs as they are; PyTorch's is what it is behind log_softmax.
    """
    if len(log_probs.shape) == 2:
        lengths = (input_lengths, target_lengths)
        labelled = ops.reshape(beside(log_probs, targets), shape=(-1,))
        frames, labels = (
            ops.reshape(beside(log_probs, v), shape=(1,)) for v in lengths
        )
        options = (blank, reduction, zero_infinity)
        loss = ctc_loss(log_probs[:, None], labelled, frames, labels, *options)
        return loss.reshape(()) if reduction == "none" else loss
    classes = log_probs.shape[2]
    if not 0 <= blank < classes:
        raise InputError(f"ctc_loss: expected blank below {classes}, got {blank}")
    places, skips, frames, labels, shares = _ctc_states(
        targets,
        input_lengths,
        target_lengths,
        shape=tuple(log_probs.shape),
        blank=blank,
        device=log_probs.device,
        dtype=log_probs.dtype,
    )
    scores = ops.take_along_axis(log_probs, places, axis=2)
    losses = ops.ctc_paths(scores, skips, frames, 2 * labels + 1)
    if zero_infinity:
        losses = ops.where(ops.is_inf(losses), 0, losses)
    losses = losses * shares
    if reduction == "mean":
        losses = losses / ops.cast(ops.maximum(labels, 1), dtype=losses.dtype)
    return mean(losses, reduction)


@step
def _ctc_states(
    targets: Any,
    input_lengths: Any,
    target_lengths: Any,
    *,
    shape: tuple[int, ...],
    blank: int,
    device: Device,
    dtype: Any,
) -> tuple[Array, ...]:
    """Every frame's states (T, N, S), which may be skipped (N, S), both lengths, and
    the losses' factors; see `_label_table`."""
    count, n, classes = shape
    given = _together(device, targets, input_lengths, target_lengths)
    told, frames, labels = given[0], *(part.reshape(-1) for part in given[1:])
    _check_lengths("ctc_loss", frames, n, count)
    _check_lengths("ctc_loss", labels, n, None)
    table, fits = _label_table("ctc_loss", _rows(told, labels), labels, classes)
    fits &= (frames >= 0) & (frames <= count)
    xp = namespace(table)
    width = 2 * table.shape[1] + 1
    states = xp.full((n, width), blank, np.int64)
    states[:, 1::2] = table
    skips = xp.zeros((n, width), bool)
    skips[:, 3::2] = states[:, 3::2] != states[:, 1:-2:2]
    shares = _shares(fits, dtype)
    states, *rest = map(device.put, (states, skips, frames, labels, shares))
    return (device.xp.broadcast_to(states, (count, n, width)), *rest)


@explained
def rnnt_loss(
    logits: Tensor,
    targets: Any,
    logit_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    fused_log_softmax: bool = True,
    reduction: str = "mean",
) -> Tensor:
    """logits (N, T, U + 1, C), targets (N, U), lengths (N,)

    The transducer's loss: -log of the probability of all ways to tell the targets,
    where a blank continues to the next frame. blank -1 is the last class.
    fused_log_softmax False: the logits are logarithms of probabilities already.
    """
    if len(logits.shape) != 4:
        raise InputError(
            f"rnnt_loss: expected logits (N, T, U + 1, C), got shape {logits.shape}"
        )
    n, _, width, classes = logits.shape
    if tuple(getattr(targets, "shape", np.shape(targets))) != (n, width - 1):
        raise InputError(
            f"rnnt_loss: expected targets {(n, width - 1)} for logits {logits.shape}, "
            f"got {getattr(targets, 'shape', np.shape(targets))}"
        )
    if not -classes <= blank < classes:
        raise InputError(f"rnnt_loss: expected blank below {classes}, got {blank}")
    places, frames, labels, shares = _rnnt_labels(
        targets,
        logit_lengths,
        target_lengths,
        shape=tuple(logits.shape),
        device=logits.device,
        dtype=logits.dtype,
    )
    scores = ops.log_softmax(logits) if fused_log_softmax else logits
    label = ops.take_along_axis(scores[:, :, :-1], places, axis=3)[..., 0]
    losses = ops.transducer_paths(scores[..., blank], label, frames, labels) * shares
    return reduced(losses, reduction, lambda total: total / n)


@step
def _rnnt_labels(
    targets: Any,
    logit_lengths: Any,
    target_lengths: Any,
    *,
    shape: tuple[int, ...],
    device: Device,
    dtype: Any,
) -> tuple[Array, ...]:
    """Every frame's next labels (N, T, U, 1), both lengths, and the losses' factors."""
    n, count, width, classes = shape
    given = _together(device, targets, logit_lengths, target_lengths)
    told, frames, labels = given[0], *(part.reshape(-1) for part in given[1:])
    _check_lengths("rnnt_loss", frames, n, count)
    _check_lengths("rnnt_loss", labels, n, width - 1)
    table, fits = _label_table("rnnt_loss", told, labels, classes)
    if namespace(frames) is np and (frames < 1).any():
        raise InputError("rnnt_loss: expected at least one frame for each example")
    fits &= (frames > 0) & (frames <= count)
    shares = _shares(fits, dtype)
    table, *rest = map(device.put, (table, frames, labels, shares))
    places = table[:, None, :, None]
    return (device.xp.broadcast_to(places, (n, count, width - 1, 1)), *rest)


def _together(device: Device, *values: Any) -> list[Array]:
    """Arrays of whole numbers: on the host, where all of them are there."""
    arrays = [v if hasattr(v, "dtype") else np.asarray(v) for v in values]
    if any(namespace(array) is not np for array in arrays):
        arrays = [device.put(array) for array in arrays]
    return [array.astype(np.int64, copy=False) for array in arrays]


def _check_lengths(where: str, found: Array, n: int, most: int | None) -> None:
    """Raise InputError unless there are n, and, on the host, from 0 to `most`."""
    fits = len(found) == n
    if fits and n and namespace(found) is np:
        fits = found.min() >= 0 and (most is None or found.max() <= most)
    if not fits:
        top = "" if most is None else f" up to {most}"
        raise InputError(f"{where}: expected {n} lengths{top}, got {found.tolist()}")


def _rows(found: Array, labels: Array) -> Array:
    """Targets as (N, U), whichever form they have.

    Where nobody waits for lengths, a row of a list of all targets is as long as it, and
    of -1, which is no class, unless lengths add up to the list's.
    """
    xp, total = namespace(found), found.size
    most = total if found.ndim == 1 else found.shape[-1]
    if xp is np:
        total, most = int(labels.sum()), int(labels.max(initial=0))
    if found.ndim == 2 and len(found) == len(labels) and found.shape[1] >= most:
        return found
    if found.ndim != 1 or len(found) != total:
        raise InputError(
            f"ctc_loss: expected targets ({len(labels)}, U) or ({total},) for lengths "
            f"{labels.tolist()}, got {found.shape}"
        )
    if not total:
        return xp.zeros((len(labels), most), np.int64)
    starts = (labels.cumsum() - labels)[:, None]
    rows = found[xp.clip(starts + xp.arange(most), 0, total - 1)]
    return xp.where(labels.sum() == total, rows, -1)


def _label_table(
    where: str, table: Array, labels: Array, classes: int
) -> tuple[Array, Array]:
    """The targets, 0 behind an example's end, and whether they and their number fit.

    On the host InputError is raised unless all do. On a GPU, which nobody waits for,
    an example's loss is NaN.
    """
    xp = namespace(table)
    labelled = xp.arange(table.shape[1]) < labels[:, None]
    found = xp.where(labelled, table, 0)
    wrong = (found < 0) | (found >= classes)
    if xp is np and wrong.any():
        raise InputError(
            f"{where}: expected targets from 0 to {classes - 1}, got {found.min()} to "
            f"{found.max()}"
        )
    fits = (labels >= 0) & (labels <= table.shape[1]) & ~wrong.any(axis=1)
    return xp.where(wrong, 0, found), fits


def _shares(fits: Array, dtype: Any) -> Array:
    """What losses are multiplied by: 1, and NaN where targets or lengths do not fit."""
    return namespace(fits).where(fits, 1, np.nan).astype(dtype)
