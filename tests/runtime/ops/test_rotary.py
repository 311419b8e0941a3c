"""Pairs of columns are turned by the angles that are given."""

from __future__ import annotations

import numpy as np
import pytest

from burnish import Tensor, ops
from burnish.errors import InputError
from tests.harness.operators import case


def turned(x, cos, sin, interleaved=False):
    n = cos.shape[-1]
    one, two = np.arange(n // 2), np.arange(n // 2, n)
    if interleaved:
        one, two = np.arange(0, n, 2), np.arange(1, n, 2)
    result = x.copy()
    result[..., one] = x[..., one] * cos[..., one] - x[..., two] * sin[..., one]
    result[..., two] = x[..., two] * cos[..., two] + x[..., one] * sin[..., two]
    return result


CASES = [
    case(ops.rotary_embedding, (2, 3, 4), (3, 4), (3, 4), expect=turned),
    case(ops.rotary_embedding, (2, 3, 6), (3, 4), (1, 3, 4), expect=turned),
    case(
        ops.rotary_embedding,
        (3, 6),
        (3, 4),
        (3, 4),
        interleaved=True,
        expect=lambda *given: turned(*given, interleaved=True),
    ),
    case(
        ops.rotary_embedding,
        (2, 3, 6),
        (3, 2),
        (1, 3, 2),
        per_pair=True,
        expect=lambda x, *tables: turned(x, *(np.tile(t, 2) for t in tables)),
    ),
    case(
        ops.rotary_embedding,
        (3, 4),
        (3, 2),
        (3, 2),
        interleaved=True,
        per_pair=True,
        expect=lambda x, *tables: turned(
            x, *(np.repeat(t, 2, -1) for t in tables), interleaved=True
        ),
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_operator(case):
    case.check()


@pytest.mark.parametrize("interleaved", [False, True])
def test_lengths_stay(interleaved):
    random = np.random.default_rng(0)
    x, angles = random.standard_normal((2, 5, 8)), random.standard_normal((5, 4))
    angles = np.repeat(angles, 2, -1) if interleaved else np.tile(angles, 2)
    given = (Tensor(a) for a in (x, np.cos(angles), np.sin(angles)))
    result = ops.rotary_embedding(*given, interleaved=interleaved)
    lengths = [np.linalg.norm(a, axis=-1) for a in (x, np.asarray(result))]
    np.testing.assert_allclose(*lengths)


@pytest.mark.parametrize(
    ("columns", "per_pair"),
    [((3, 3), False), ((6, 6), False), ((4, 2), False), ((3, 3), True), ((1, 2), True)],
)
def test_columns_that_do_not_fit(columns, per_pair):
    x = Tensor(np.zeros((2, 4)))
    cos, sin = (Tensor(np.zeros((2, n))) for n in columns)
    with pytest.raises(InputError, match="at most the 4 columns"):
        ops.rotary_embedding(x, cos, sin, per_pair=per_pair)
