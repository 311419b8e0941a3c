"""Losses of sequences without aligned labels: CTC and RNN-T.

N batch, T frames, U labels, C classes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from burnish import ops
from burnish.backend import Array, Device
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
    places, skips, frames, labels = _ctc_states(
        targets,
        input_lengths,
        target_lengths,
        shape=tuple(log_probs.shape),
        blank=blank,
        device=log_probs.device,
    )
    scores = ops.take_along_axis(log_probs, places, axis=2)
    losses = ops.ctc_paths(scores, skips, frames, 2 * labels + 1)
    if zero_infinity:
        losses = ops.where(ops.is_inf(losses), 0, losses)
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
) -> tuple[Array, Array, Array, Array]:
    """Every frame's states (T, N, S), which may be skipped (N, S), and both lengths."""
    count, n, classes = shape
    frames = _lengths("ctc_loss", device, input_lengths, n, count)
    labels = _lengths("ctc_loss", device, target_lengths, n, None)
    table = _label_table(
        "ctc_loss", device, _rows(device, targets, labels), labels, classes
    )
    xp = device.xp
    width = 2 * table.shape[1] + 1
    states = xp.full((n, width), blank, np.int64)
    states[:, 1::2] = table
    skips = xp.zeros((n, width), bool)
    skips[:, 3::2] = states[:, 3::2] != states[:, 1:-2:2]
    return xp.broadcast_to(states, (count, n, width)), skips, frames, labels


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
    places, frames, labels = _rnnt_labels(
        targets,
        logit_lengths,
        target_lengths,
        shape=tuple(logits.shape),
        device=logits.device,
    )
    scores = ops.log_softmax(logits) if fused_log_softmax else logits
    label = ops.take_along_axis(scores[:, :, :-1], places, axis=3)[..., 0]
    losses = ops.transducer_paths(scores[..., blank], label, frames, labels)
    return reduced(losses, reduction, lambda total: total / n)


@step
def _rnnt_labels(
    targets: Any,
    logit_lengths: Any,
    target_lengths: Any,
    *,
    shape: tuple[int, ...],
    device: Device,
) -> tuple[Array, Array, Array]:
    """Every frame's next labels (N, T, U, 1), and both lengths."""
    n, count, width, classes = shape
    frames = _lengths("rnnt_loss", device, logit_lengths, n, count)
    labels = _lengths("rnnt_loss", device, target_lengths, n, width - 1)
    table = _label_table("rnnt_loss", device, device.put(targets), labels, classes)
    if (frames < 1).any():
        raise InputError("rnnt_loss: expected at least one frame for each example")
    places = table[:, None, :, None]
    return device.xp.broadcast_to(places, (n, count, width - 1, 1)), frames, labels


def _lengths(where: str, device: Device, value: Any, n: int, most: int | None) -> Array:
    found = device.put(value).reshape(-1)
    high = None if most is None or not len(found) else found.max() > most
    if len(found) != n or (found < 0).any() or high:
        top = "" if most is None else f" up to {most}"
        raise InputError(f"{where}: expected {n} lengths{top}, got {found.tolist()}")
    return found.astype(np.int64)


def _rows(device: Device, targets: Any, labels: Array) -> Array:
    """Targets as (N, U), whichever form they have."""
    found, total = device.put(targets), int(labels.sum())
    most = int(labels.max()) if len(labels) else 0
    if found.ndim == 2 and len(found) == len(labels) and found.shape[1] >= most:
        return found
    if found.ndim != 1 or len(found) != total:
        raise InputError(
            f"ctc_loss: expected targets ({len(labels)}, U) or ({total},) for lengths "
            f"{labels.tolist()}, got {found.shape}"
        )
    xp = device.xp
    starts = (labels.cumsum() - labels)[:, None]
    return found[xp.minimum(starts + xp.arange(most), max(total - 1, 0))]


def _label_table(
    where: str, device: Device, table: Array, labels: Array, classes: int
) -> Array:
    """The targets, 0 behind an example's end; InputError unless all are classes."""
    xp = device.xp
    labelled = xp.arange(table.shape[1]) < labels[:, None]
    found = xp.where(labelled, table, 0).astype(np.int64)
    if found.size and (found.min() < 0 or found.max() >= classes):
        raise InputError(
            f"{where}: expected targets from 0 to {classes - 1}, got {found.min()} to "
            f"{found.max()}"
        )
    return found
