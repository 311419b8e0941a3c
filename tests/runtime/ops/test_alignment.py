"""Losses over all alignments, against sums over paths that are listed one by one."""

import itertools

import numpy as np
import pytest

from burnish import Tensor, nn, ops
from burnish.errors import GradientError, InputError
from tests.harness.operators import case

FRAMES, LABELS = np.array([4, 2, 3]), np.array([2, 1, 0])
TARGETS = np.array([[1, 1], [2, 0], [0, 0]])
STATES = np.array([[0, 1, 0, 1, 0], [0, 2, 0, 0, 0], [0, 0, 0, 0, 0]])
SKIPS = np.zeros((3, 5), bool)
SKIPS[1, 3] = True


def ctc_by_listing(scores, skips, frames, states):
    """Every sequence of states that moves on by 0, 1, or by 2 where it may."""
    found = []
    for n, (count, width) in enumerate(zip(frames, states, strict=True)):
        total = 0.0
        for path in itertools.product(range(width), repeat=count):
            ends = path[0] < 2 and path[-1] >= width - 2
            steps = [*itertools.pairwise(path)]
            if ends and all(
                b - a in (0, 1) or (b - a == 2 and skips[n, b]) for a, b in steps
            ):
                total += np.exp(sum(scores[t, n, s] for t, s in enumerate(path)))
        found.append(-np.log(total))
    return np.array(found, scores.dtype)


def transducer_by_listing(blank, label, frames, labels):
    """Every order of all the labels and all frames but the last, which ends it."""
    found = []
    for n, (count, emitted) in enumerate(zip(frames, labels, strict=True)):
        total = 0.0
        for chosen in itertools.combinations(range(count - 1 + emitted), emitted):
            t = u = 0
            score = blank[n, count - 1, emitted]
            for step in range(count - 1 + emitted):
                if step in chosen:
                    score, u = score + label[n, t, u], u + 1
                else:
                    score, t = score + blank[n, t, u], t + 1
            total += np.exp(score)
        found.append(-np.log(total))
    return np.array(found, blank.dtype)


def warped_by_listing(cost):
    """The cheapest of all paths, which move on by a row, a column or both."""
    end = tuple(size - 1 for size in cost.shape)
    paths, done = [[(0, 0)]], []
    while paths:
        path = paths.pop()
        i, j = path[-1]
        done += [path] * (path[-1] == end)
        steps = [(i + 1, j), (i, j + 1), (i + 1, j + 1)]
        paths += [[*path, to] for to in steps if to[0] <= end[0] and to[1] <= end[1]]
    best = min(done, key=lambda path: sum(cost[place] for place in path))
    return np.array(best, np.int32).T


CASES = [
    case(ops.dynamic_time_warping, (4, 6), expect=warped_by_listing, grad=False),
    case(ops.dynamic_time_warping, (3, 1), expect=warped_by_listing, grad=False),
    case(
        ops.ctc_paths,
        (4, 3, 5),
        SKIPS,
        FRAMES,
        2 * LABELS + 1,
        expect=ctc_by_listing,
        second=False,
    ),
    case(
        ops.transducer_paths,
        (3, 4, 3),
        (3, 4, 2),
        FRAMES,
        LABELS,
        expect=transducer_by_listing,
        second=False,
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_operator(case):
    case.check()


def test_gradients_of_gradients_are_refused():
    scores = Tensor(np.zeros((4, 3, 5))).require_grad()
    loss = ops.ctc_paths(scores, SKIPS, FRAMES, 2 * LABELS + 1).sum()
    slope = scores.grad(loss.backward(create_graph=True))
    with pytest.raises(GradientError, match="ctc_shares: no gradient"):
        slope.sum().backward()


@pytest.mark.parametrize("blank", [0, 3, -1])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_transducer_loss(blank, reduction):
    x = np.random.default_rng(0).normal(size=(3, 4, 3, 4))
    targets = np.where(blank % 4 == TARGETS, (blank + 1) % 4, TARGETS)
    scores = x - np.log(np.exp(x).sum(axis=-1, keepdims=True))
    emitted = np.stack([scores[n, :, [0, 1], targets[n]].T for n in range(3)])
    want = transducer_by_listing(scores[..., blank], emitted, FRAMES, LABELS)
    want = {"mean": want.mean(), "sum": want.sum(), "none": want}[reduction]
    args = (targets, FRAMES, LABELS)
    loss = nn.RNNTLoss(blank, reduction=reduction)
    np.testing.assert_allclose(loss(Tensor(x), *args).numpy(), want)
    loss = nn.RNNTLoss(blank, False, reduction)
    np.testing.assert_allclose(loss(Tensor(scores), *args).numpy(), want)


def test_the_gradient_of_the_transducer_loss():
    x = np.random.default_rng(0).normal(size=(3, 4, 3, 4))
    leaf = Tensor(x).require_grad()
    loss = nn.rnnt_loss(leaf, TARGETS + (TARGETS == 0), FRAMES, LABELS)
    slope = leaf.grad(loss.backward()).numpy()
    moved = np.random.default_rng(1).normal(size=x.shape)
    ends = [
        nn.rnnt_loss(
            Tensor(x + step * moved), TARGETS + (TARGETS == 0), FRAMES, LABELS
        ).item()
        for step in (1e-6, -1e-6)
    ]
    np.testing.assert_allclose((slope * moved).sum(), (ends[0] - ends[1]) / 2e-6, 1e-6)


CTC = (np.zeros((4, 2, 5)), [[1, 2], [3, 4]], [4, 4], [2, 2])
RNNT = (np.zeros((2, 4, 3, 5)), [[1, 2], [3, 4]], [4, 4], [2, 2])
REFUSED = [
    (nn.ctc_loss, CTC, 1, [[1, 5], [0, 0]], "expected targets from 0 to 4, got"),
    (nn.ctc_loss, CTC, 1, [1, 2, 3], r"expected targets \(2, U\) or \(4,\)"),
    (nn.ctc_loss, CTC, 2, [4, 5], "expected 2 lengths up to 4, got"),
    (nn.ctc_loss, CTC, 3, [2], r"expected 2 lengths, got \[2\]"),
    (nn.rnnt_loss, RNNT, 0, np.zeros((2, 4, 5)), r"expected logits \(N, T, U \+ 1"),
    (nn.rnnt_loss, RNNT, 1, [[1], [2]], r"expected targets \(2, 2\) for logits"),
    (nn.rnnt_loss, RNNT, 2, [0, 4], "expected at least one frame"),
    (nn.rnnt_loss, RNNT, 3, [3, 1], "expected 2 lengths up to 2"),
]


@pytest.mark.parametrize(("loss", "args", "place", "wrong", "message"), REFUSED)
def test_what_does_not_fit_is_refused(loss, args, place, wrong, message):
    args = [*args]
    args[place] = wrong
    with pytest.raises(InputError, match=message):
        loss(Tensor(args[0]), *map(np.asarray, args[1:]))


@pytest.mark.parametrize("dtype", ["int64", "uint8", "float16"])
def test_warping_takes_costs_of_every_dtype(dtype):
    cost = np.random.default_rng(0).integers(0, 9, (6, 8)).astype(dtype)
    want = ops.dynamic_time_warping(cost.astype("float64"))
    assert ops.dynamic_time_warping(cost).tolist() == want.tolist()


def test_warping_refuses_costs_of_other_axes():
    with pytest.raises(InputError, match="cost: expected 2 axes, got shape"):
        ops.dynamic_time_warping(np.ones((1, 3, 4)))
