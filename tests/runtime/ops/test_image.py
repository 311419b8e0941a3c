"""Resizing and sampling: gradients of both orders, and values against formulas."""

import numpy as np
import pytest

from burnish import ops
from burnish.errors import InputError
from tests.harness.operators import case

INDEX = np.array([[0, 1], [2, 2], [1, 3]])
WEIGHT = np.array([[0.2, 0.8], [1.0, 0.5], [-0.3, 1.3]])


def weighted(x):
    return (x[:, INDEX] * WEIGHT[:, :, None].astype(x.dtype)).sum(axis=2)


CASES = [
    case(ops.resize_image, (2, 4), scales=(1, 2), expect=lambda x: x.repeat(2, axis=1)),
    case(
        ops.resize_image,
        (1, 4),
        sizes=(2,),
        axes=(1,),
        mode="linear",
        expect=lambda x: (x[:, ::2] + x[:, 1::2]) / 2,
    ),
    case(ops.resize_image, (1, 1, 3, 4), sizes=(5, 7), axes=(2, 3), mode="cubic"),
    case(
        ops.resize_image,
        (1, 1, 5, 4),
        sizes=(2, 3),
        axes=(2, 3),
        mode="linear",
        antialias=1,
    ),
    case(
        ops.resize_image,
        (1, 5),
        sizes=(4,),
        axes=(1,),
        mode="linear",
        coordinate_transformation_mode="tf_crop_and_resize",
        roi=(-0.2, 1.2),
        extrapolation_value=9.0,
    ),
    case(ops.interpolate, (1, 2, 4), size=7, mode="linear", align_corners=True),
    case(ops.interpolate, (1, 1, 4, 4), scale_factor=0.5, mode="area"),
    case(ops.grid_sample, (2, 2, 4, 3), (2, 3, 2, 2), low=-0.9, high=0.9, grad=(0, 1)),
    case(
        ops.grid_sample, (1, 2, 4, 3), (1, 3, 2, 2), mode="bicubic", low=-0.9, high=0.8
    ),
    case(ops.grid_sample, (1, 2, 5), (1, 3, 1), padding_mode="reflection", low=-1.6),
    case(
        ops.grid_sample,
        (1, 1, 3, 2, 2),
        (1, 2, 1, 2, 3),
        padding_mode="border",
        align_corners=True,
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_operator(case):
    case.check()


@pytest.mark.parametrize("length", [4, 40])
def test_both_ways_of_weighing_agree(length):
    x = np.random.default_rng(0).normal(size=(2, length, 3))
    got = ops.resample(x, INDEX, WEIGHT, axis=1)
    np.testing.assert_allclose(got, weighted(x), rtol=1e-12)
    g = np.random.default_rng(1).normal(size=got.shape)
    back = ops.resample_adjoint(g, INDEX, WEIGHT, axis=1, size=length)
    np.testing.assert_allclose(np.vdot(g, got), np.vdot(back, x))


def test_integers_are_resized_without_weights():
    x = np.array([[1, 2, 3]], np.int32)
    y = ops.resize_image(x, sizes=(1, 6))
    assert y.dtype == np.int32
    assert y.tolist() == [[1, 1, 2, 2, 3, 3]]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sizes": (2,), "mode": "bilinear"}, "expected mode among"),
        ({"sizes": (2,), "coordinate_transformation_mode": "x"}, "coordinate_trans"),
        ({}, "expected sizes or scales"),
        ({"sizes": (2,), "keep_aspect_ratio_policy": "x"}, "keep_aspect_ratio_policy"),
    ],
)
def test_unknown_words_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        ops.resize_image(np.ones(4), **options)


def test_a_grid_that_does_not_fit_is_refused():
    with pytest.raises(InputError, match=r"expected a grid \(1, \.\.\., 2\)"):
        ops.grid_sample(np.ones((1, 1, 3, 3)), np.ones((1, 3, 3, 3)))
