"""Blocks of small integers: what is stored, how far off it is."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from burnish import ops
from burnish.errors import InputError
from tests.harness.operators import case

CODES = np.array([[10, -20], [127, 0]], np.int8)
SCALES = np.array([0.5, 2.0], np.float32)


CASES = [
    case(
        ops.quantize_blocks,
        np.array([[1.0, -0.5, 0.0], [127.0, 0.0, 8.0]]),
        bits=8,
        block_size=2,
        expect=lambda x: (
            np.array([[127, -64], [0, 127], [0, 127]], np.int8),
            np.array([1 / 127, 1, 8 / 127], np.float32),
        ),
        grad=False,
    ),
    case(
        ops.quantize_blocks,
        np.array([7.0, -7.0, 1.0, 0.0, 3.5]),
        bits=4,
        block_size=4,
        expect=lambda x: (
            np.array([[15 | 1 << 4, 9 | 8 << 4], [15 | 8 << 4, 8 | 8 << 4]], np.uint8),
            np.array([1, 0.5], np.float32),
        ),
        grad=False,
    ),
    case(
        ops.dequantize_blocks,
        CODES,
        SCALES,
        bits=8,
        shape=(3, 1),
        expect=lambda *_: np.array([[5], [-10], [254]], np.float32),
        dtypes=(np.float32,),
        grad=False,
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_operator(case):
    case.check()


@given(
    shape=st.lists(st.integers(0, 5), max_size=3).map(tuple),
    bits=st.sampled_from([4, 8]),
    block=st.sampled_from([2, 4, 6, 64]),
    dtype=st.sampled_from(["float16", "float32", "float64"]),
    seed=st.integers(0, 99),
)
def test_values_come_back_to_half_a_step(shape, bits, block, dtype, seed):
    x = np.array(np.random.default_rng(seed).normal(size=shape), dtype)
    codes, scales = ops.quantize_blocks(x, bits=bits, block_size=block)
    assert codes.nbytes == len(scales) * block * bits // 8
    back = ops.dequantize_blocks(codes, scales, bits=bits, shape=shape)
    assert back.shape == shape
    each = np.repeat(scales, block)[: x.size].reshape(shape)
    assert (abs(back - x.astype("f4")) <= each * 0.5001).all()


def test_zeros_stay_zeros():
    codes, scales = ops.quantize_blocks(np.zeros(5), bits=4, block_size=2)
    assert (ops.dequantize_blocks(codes, scales, bits=4, shape=(5,)) == 0).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bits": 2}, "expected 4 or 8 bits, got 2"),
        ({"block_size": 0}, "block_size above 0"),
        ({"bits": 4, "block_size": 3}, "even for 4 bits, got 3"),
    ],
)
def test_what_cannot_be_is_refused(options, message):
    with pytest.raises(InputError, match=message):
        ops.quantize_blocks(np.ones(4), **options)
