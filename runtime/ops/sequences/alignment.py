"""Ways to align two sequences: losses over all of them, and the cheapest one.

N batch, T frames, U labels. Losses take one loop over time for the whole batch; what
cannot happen has the logarithm -inf.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from burnish.backend import Array, namespace, on_host
from burnish.operator import operator
from burnish.ops._shapes import plain, ranked

_NEVER = float("-inf")
_FEW = 128


@operator
def ctc_paths(scores, skips, frames, states) -> Array:
    """-log of the summed probability of all paths: (N,); Graves and others, 2006

    scores (T, N, S): the logarithm of each state's label at each frame, the states
    being the labels with blanks around them, S = 2 U + 1; skips (N, S): booleans,
    whether a state may follow the last but one before it; frames (N,) and states (N,):
    how many of each an example has. inf where no path exists.
    """
    return -_totals(_ctc_forward(scores, skips, frames)[-1], states)


@ctc_paths.vjp("scores")
def _(g, y, scores, skips, frames, states):
    shares = ctc_shares(scores, plain(skips), plain(frames), plain(states))
    return -g[None, :, None] * shares


@operator
def ctc_shares(scores, skips, frames, states) -> Array:
    """The probability that a path is in a state at a frame: (T, N, S); see `ctc_paths`

    0 behind an example's end, and where no path exists.
    """
    xp = namespace(scores)
    ahead = _ctc_forward(scores, skips, frames)
    total = _totals(ahead[-1], states)
    total = xp.where(xp.isfinite(total), total, 0)[:, None]
    behind = _ctc_backward(scores, skips, frames, states)
    live = xp.arange(len(scores))[:, None] < frames
    return xp.where(live[..., None], xp.exp(ahead + behind - total), 0)


def _ctc_forward(scores: Array, skips: Array, frames: Array) -> Array:
    """(T, N, S): of all beginnings that end in a state; it stays behind the end."""
    xp = namespace(scores)
    count, n, width = scores.shape
    # two states that are never reached, before the first
    ahead = xp.full((max(count, 1), n, width + 2), _NEVER, scores.dtype)
    ahead[0, :, 2] = 0  # the path of no label, where an example has no frame
    if count:
        begun = (frames > 0)[:, None]
        ahead[0, :, 2:4] = xp.where(begun, scores[0, :, :2], ahead[0, :, 2:4])
    barred = xp.where(skips, 0, _NEVER).astype(scores.dtype)
    shortest = _shortest(frames, count)
    stay, step, skip = ahead[:, :, 2:], ahead[:, :, 1:-1], ahead[:, :, :-2]
    for t in range(1, count):
        new = _log_sum(stay[t - 1], step[t - 1], skip[t - 1] + barred)
        new += scores[t]
        if t >= shortest:
            new = xp.where((frames > t)[:, None], new, stay[t - 1])
        stay[t] = new
    return stay


def _ctc_backward(scores: Array, skips: Array, frames: Array, states: Array) -> Array:
    """(T, N, S): of all paths from a state to the end, without the state itself."""
    xp = namespace(scores)
    count, n, width = scores.shape
    behind = xp.full((count, n, width), _NEVER, scores.dtype)
    place, last = xp.arange(width), states[:, None] - 1
    end = xp.where((place == last) | (place == last - 1), 0, _NEVER)
    barred = xp.full((n, width), _NEVER, scores.dtype)
    barred[:, :-2] = xp.where(skips[:, 2:], 0, _NEVER)
    after = xp.full((n, width + 2), _NEVER, scores.dtype)  # two more, as above
    stay, step, skip = after[:, :-2], after[:, 1:-1], after[:, 2:]
    behind[-1:] = end
    shortest = _shortest(frames, count)
    for t in reversed(range(count - 1)):
        xp.add(behind[t + 1], scores[t + 1], out=stay)
        new = _log_sum(stay, step, skip + barred)
        if t + 1 >= shortest:
            new = xp.where((frames > t + 1)[:, None], new, end)
        behind[t] = new
    return behind


def _shortest(frames: Array, count: int) -> int:
    """The fewest frames of an example; 0 on a GPU, which nobody waits for."""
    if namespace(frames) is not np:
        return 0
    return int(frames.min()) if len(frames) else count


def _log_sum(a: Array, b: Array, c: Array) -> Array:
    """log(exp(a) + exp(b) + exp(c)), where all may be -inf."""
    xp = namespace(a)
    if xp is np and a.size < _FEW:  # calls cost more than exponentials
        return np.logaddexp(np.logaddexp(a, b), c)
    top = xp.maximum(xp.maximum(a, b), c)
    top = xp.maximum(top, xp.finfo(top.dtype).min)
    with np.errstate(divide="ignore"):
        return xp.log(xp.exp(a - top) + xp.exp(b - top) + xp.exp(c - top)) + top


def _totals(ends: Array, states: Array) -> Array:
    """Paths end in the last label or in the blank behind it."""
    xp = namespace(ends)
    last = (states - 1)[:, None]
    ends_last = xp.take_along_axis(ends, last, axis=1)
    before = xp.take_along_axis(ends, xp.maximum(last - 1, 0), axis=1)
    before = xp.where(last > 0, before, _NEVER)
    return xp.logaddexp(ends_last, before)[:, 0].astype(ends.dtype)


@operator
def transducer_paths(blank, label, frames, labels) -> Array:
    """-log of the summed probability of all paths: (N,); Graves, 2012

    blank (N, T, U + 1) and label (N, T, U): the logarithms of going on to the next
    frame, and of telling the next label, when so many frames and labels have been.
    frames (N,), labels (N,): how many an example has.
    """
    ahead = _transducer_forward(*_diagonals(blank, label))
    return -_transducer_totals(ahead, blank, frames, labels)


@transducer_paths.vjp("blank", "label")
def _(g, y, blank, label, frames, labels):
    shares = transducer_shares(blank, label, plain(frames), plain(labels))
    return tuple(-g[:, None, None] * share for share in shares)


@operator
def transducer_shares(blank, label, frames, labels) -> tuple[Array, Array]:
    """The probabilities that a path takes a step: (N, T, U + 1) and (N, T, U)

    The steps are those of `transducer_paths`.
    """
    xp = namespace(blank, label)
    n, count, width = blank.shape
    blanks, emits = _diagonals(blank, label)
    ahead = _transducer_forward(blanks, emits)
    total = _transducer_totals(ahead, blank, frames, labels)[:, None]
    place = xp.arange(width)
    behind = xp.full((n, width), _NEVER, blank.dtype)
    ways = xp.empty((2, *ahead.shape), blank.dtype)
    for d in reversed(range(len(ahead))):
        t = d - place
        is_end = (t == frames[:, None] - 1) & (place == labels[:, None])
        on = xp.where(is_end, 0, behind) + blanks[d]
        emitting = _shifted(behind, -1, _NEVER) + emits[d]
        ways[0, d], ways[1, d] = ahead[d] + on - total, ahead[d] + emitting - total
        behind = xp.logaddexp(on, emitting)
        beyond = (t >= frames[:, None]) | (place > labels[:, None])
        behind = xp.where(beyond, _NEVER, behind).astype(blank.dtype)
    diagonal = xp.arange(count)[:, None] + place
    on, emitting = (xp.exp(way[diagonal, :, place]).transpose(2, 0, 1) for way in ways)
    return on, emitting[..., :-1]


def _diagonals(blank: Array, label: Array) -> tuple[Array, Array]:
    """Both as (T + U, N, U + 1): what happens when t + u is the first index."""
    xp = namespace(blank, label)
    _, count, width = blank.shape
    place = xp.arange(width)
    t = xp.arange(count + width - 1)[:, None] - place
    inside = ((t >= 0) & (t < count))[:, None]
    t = xp.clip(t, 0, count - 1)
    end = xp.full((*label.shape[:2], 1), _NEVER, label.dtype)
    both = (blank, xp.concatenate([label, end], axis=2))
    made = (xp.moveaxis(each[:, t, place], 0, 1) for each in both)
    blanks, emits = (xp.where(inside, each, _NEVER) for each in made)
    return blanks, emits


def _transducer_forward(blanks: Array, emits: Array) -> Array:
    """(T + U, N, U + 1): of all beginnings, along the diagonals."""
    xp = namespace(blanks, emits)
    ahead = xp.full(blanks.shape, _NEVER, blanks.dtype)
    ahead[0, :, 0] = 0
    for d in range(1, len(ahead)):
        on = ahead[d - 1] + blanks[d - 1]
        emitting = _shifted(ahead[d - 1] + emits[d - 1], 1, _NEVER)
        ahead[d] = xp.logaddexp(on, emitting)
    return ahead


def _transducer_totals(
    ahead: Array, blank: Array, frames: Array, labels: Array
) -> Array:
    rows = namespace(ahead).arange(len(frames))
    ends = ahead[frames - 1 + labels, rows, labels]
    return ends + blank[rows, frames - 1, labels]


def _shifted(x: Array, by: int, fill: Any) -> Array:
    """x moved along its last axis by `by` places, `fill` where it was."""
    y = namespace(x).full_like(x, fill)
    if by > 0:
        y[..., by:] = x[..., :-by]
    else:
        y[..., :by] = x[..., -by:]
    return y


@operator
def dynamic_time_warping(cost) -> Array:
    """The cheapest path from the first to the last corner of cost (M, N): (2, steps)

    Row and column of each step, int32; a step goes on by one row, one column or both.
    Of equal costs a step along the row is taken. Runs on the host.
    """
    ranked("dynamic_time_warping: cost", cost, 2)
    xp = namespace(cost)
    steps = _steps(on_host(cost))
    i, j = (size - 1 for size in steps.shape)
    path = []
    while i >= 0 and j >= 0:
        path.append((i, j))
        step = steps[i, j]
        i, j = i - (step != _ALONG), j - (step != _DOWN)
    return xp.asarray(np.array(path[::-1], np.int32).reshape(-1, 2).T)


_BOTH, _DOWN, _ALONG = range(3)


def _steps(cost: Array) -> Array:
    """(M, N): the step that leads to each place on the cheapest path to it.

    A diagonal of the table depends on the two before it alone.
    """
    rows, columns = cost.shape
    steps = np.empty(cost.shape, np.int8)
    old = np.full(rows + 1, np.inf, np.result_type(cost, np.float32))
    last = old.copy()
    old[0] = 0
    for d in range(rows + columns - 1):
        i = np.arange(max(0, d - columns + 1), min(rows, d + 1))
        both, down, along = old[i], last[i], last[i + 1]
        step = np.full(len(i), _ALONG, np.int8)
        step[(down < both) & (down < along)] = _DOWN
        step[(both < down) & (both < along)] = _BOTH
        least = np.choose(step, (both, down, along))
        steps[i, d - i] = step
        new = np.full_like(last, np.inf)
        new[i + 1] = least + cost[i, d - i]
        old, last = last, new
    return steps
