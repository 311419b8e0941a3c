"""Convolutions: against sums written out, and every gradient of both orders."""

import itertools

import numpy as np
import pytest

from burnish import Tensor, ops
from burnish.errors import InputError
from tests.harness.operators import case


def plain_conv(x, weight, bias=None, *, stride=1, pads=None, dilation=1, groups=1):
    """The definition, place by place."""
    rank = weight.ndim - 2
    pads = pads or ((0, 0),) * rank
    x = np.pad(x, ((0, 0), (0, 0), *pads))
    kernel = weight.shape[2:]
    out = [
        (n - dilation * (k - 1) - 1) // stride + 1
        for n, k in zip(x.shape[2:], kernel, strict=True)
    ]
    y = np.zeros((x.shape[0], weight.shape[0], *out), x.dtype)
    width = weight.shape[0] // groups
    for o, place in itertools.product(range(weight.shape[0]), np.ndindex(*out)):
        group = slice(o // width * weight.shape[1], (o // width + 1) * weight.shape[1])
        window = tuple(
            slice(p * stride, p * stride + dilation * (k - 1) + 1, dilation)
            for p, k in zip(place, kernel, strict=True)
        )
        seen = x[(slice(None), group, *window)] * weight[o]
        y[(slice(None), o, *place)] = seen.reshape(len(x), -1).sum(axis=1)
    return y if bias is None else y + bias.reshape(-1, *[1] * rank)


def expected(**options):
    return lambda *arrays: plain_conv(*arrays, **options)


SAME_2 = ((1, 1), (1, 1))
UNEVEN = ((0, 1), (2, 0))
CASES = [
    case(ops.conv, (2, 3, 7), (4, 3, 3), (4,), expect=expected()),
    case(ops.conv, (2, 2, 5, 4), (3, 2, 1, 1), expect=expected()),
    case(ops.conv, (1, 2, 5, 4), (2, 2, 1, 1), stride=2, expect=expected(stride=2)),
    case(
        ops.conv,
        (2, 2, 5, 4),
        (3, 2, 3, 3),
        (3,),
        padding=1,
        expect=expected(pads=SAME_2),
    ),
    case(
        ops.conv,
        (1, 2, 6, 5),
        (2, 2, 3, 2),
        stride=2,
        padding=UNEVEN,
        expect=expected(stride=2, pads=UNEVEN),
    ),
    case(
        ops.conv,
        (1, 4, 5, 4),
        (4, 2, 3, 3),
        groups=2,
        padding=1,
        expect=expected(groups=2, pads=SAME_2),
    ),
    case(
        ops.conv,
        (2, 2, 5, 5),
        (4, 1, 3, 3),
        groups=2,
        dilation=2,
        expect=expected(groups=2, dilation=2),
    ),
    case(
        ops.conv,
        (1, 2, 3, 4, 3),
        (2, 2, 2, 2, 2),
        stride=2,
        expect=expected(stride=2),
    ),
    case(
        ops.conv,
        (1, 1, 5, 6),
        (2, 1, 2, 3),
        padding="same",
        expect=expected(pads=((0, 1), (1, 1))),
    ),
    case(
        ops.conv,
        (1, 1, 5, 6),
        (2, 1, 2, 3),
        stride=2,
        padding="same_lower",
        expect=expected(stride=2, pads=((1, 0), (1, 0))),
    ),
    case(
        ops.deform_conv,
        (1, 2, 4, 3),
        (2, 1, 2, 2),
        (1, 2 * 4 * 2, 4, 3),
        (2,),
        (1, 2 * 4, 4, 3),
        padding=((1, 0), (0, 1)),
        groups=2,
        offset_groups=2,
        low=-0.4,
        high=0.45,
    ),
    case(ops.conv_transpose, (1, 2, 4), (2, 3, 3), (3,)),
    case(ops.conv_transpose, (2, 2, 3, 3), (2, 2, 3, 2), stride=2, padding=1),
    case(
        ops.conv_transpose,
        (1, 2, 3, 2),
        (2, 1, 2, 2),
        stride=2,
        padding=UNEVEN,
        output_padding=1,
    ),
    case(
        ops.conv_transpose, (1, 4, 3, 2), (4, 1, 3, 3), groups=2, padding=1, dilation=2
    ),
    case(ops.conv_transpose, (1, 2, 3, 3), (2, 1, 2, 2), groups=2, stride=2),
    case(ops.conv_transpose, (1, 1, 2, 2), (1, 1, 2, 2), dilation=3, output_padding=1),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_operator(case):
    case.check()


def test_transposed_convolution_is_the_adjoint():
    rng = np.random.default_rng(0)
    weight = rng.normal(size=(4, 2, 3, 3))
    y = rng.normal(size=(2, 4, 4, 3))
    options = {"stride": 2, "padding": ((1, 0), (0, 2)), "groups": 2}
    x = ops.conv_transpose(y, weight, output_padding=1, **options)
    z = rng.normal(size=x.shape)
    got = np.vdot(ops.conv(z, weight, **options)[:, :, :4, :3], y)
    np.testing.assert_allclose(got, np.vdot(x, z))


def test_wrong_channels_say_what_was_expected():
    x, weight = np.zeros((1, 3, 8, 8)), np.zeros((8, 4, 3, 3))
    with pytest.raises(InputError) as caught:
        ops.conv(Tensor(x), Tensor(weight))
    assert str(caught.value) == (
        "conv: x has 3 channels, but weight (8, 4, 3, 3) with groups=1 takes 4"
    )


def test_a_kernel_larger_than_the_input_is_refused():
    with pytest.raises(InputError, match=r"conv: a kernel that spans \(3, 3\)"):
        ops.conv(np.zeros((1, 1, 2, 5)), np.zeros((1, 1, 3, 3)))


def test_padding_of_the_wrong_length_is_refused():
    with pytest.raises(InputError, match="padding for 2 axes"):
        ops.conv(np.zeros((1, 1, 5, 5)), np.zeros((1, 1, 3, 3)), padding=(1, 1, 1))


def test_an_empty_batch_stays_empty():
    assert ops.conv(np.zeros((0, 1, 5, 5)), np.zeros((2, 1, 3, 3))).shape == (
        0,
        2,
        3,
        3,
    )


def test_shifted_places_without_shifts_are_a_convolution():
    rng = np.random.default_rng(0)
    x, weight = rng.normal(size=(2, 4, 6, 5)), rng.normal(size=(6, 2, 3, 2))
    options = {"stride": 2, "padding": ((1, 0), (2, 1)), "groups": 2}
    want = ops.conv(x, weight, **options)
    offset = np.zeros((2, 2 * 6 * 2, *want.shape[2:]))
    got = ops.deform_conv(x, weight, offset, offset_groups=2, **options)
    np.testing.assert_allclose(got, want)
    offset[:, ::2] = 1  # one row further down
    down = np.concatenate([x[:, :, 1:], np.zeros((2, 4, 1, 5))], axis=2)
    inner = {"stride": 2, "groups": 2}
    offset = offset[:, :, : ops.conv(x, weight, **inner).shape[2], :2]
    got = ops.deform_conv(x, weight, offset, offset_groups=2, **inner)
    np.testing.assert_allclose(got, ops.conv(down, weight, **inner))


@pytest.mark.parametrize(
    "padding", [np.int64(1), [1, 1], np.array([1, 1]), [(1, 1), [1, 1]]], ids=str
)
def test_pads_may_be_numbers_of_numpy_and_lists(padding):
    x, weight = np.ones((1, 2, 5, 4)), np.ones((3, 2, 3, 3))
    expected = ops.conv(x, weight, padding=1)
    np.testing.assert_array_equal(ops.conv(x, weight, padding=padding), expected)
