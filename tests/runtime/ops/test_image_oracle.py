"""Resizing and sampling against ONNX's reference and torch."""

import itertools

import numpy as np
import pytest

from burnish import ops

RNG = np.random.default_rng(0)
COORDINATES = [
    "half_pixel",
    "half_pixel_symmetric",
    "pytorch_half_pixel",
    "align_corners",
    "asymmetric",
    "tf_crop_and_resize",
]
SIZES = [((5, 6), (8, 3)), ((4, 7), (2, 7)), ((3, 5), (1, 9))]


def reference(x, inputs, **attributes):
    onnx = pytest.importorskip("onnx")
    from tests.harness.reference import judged

    names = ["X", "roi", "scales", "sizes"]
    values = dict(zip(names, [x, *inputs], strict=False))
    given = {k: v for k, v in values.items() if v is not None}
    node = onnx.helper.make_node(
        "Resize", [n if n in given else "" for n in values], ["Y"], **attributes
    )
    graph = onnx.helper.make_graph(
        [node],
        "g",
        [
            onnx.helper.make_tensor_value_info(
                k, onnx.helper.np_dtype_to_tensor_dtype(v.dtype), v.shape
            )
            for k, v in given.items()
        ],
        [onnx.helper.make_tensor_value_info("Y", 11, None)],
    )
    opsets = [onnx.helper.make_opsetid("", 19)]
    model = onnx.helper.make_model(graph, opset_imports=opsets)
    return judged(model, given)[0]


@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize(("old", "new"), SIZES)
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_resize_to_sizes(mode, old, new, coordinates):
    if coordinates == "pytorch_half_pixel":  # the reference takes -0.5 for one pixel
        new = tuple(max(size, 2) for size in new)
    x = RNG.normal(size=old)
    roi = np.array([0.1, -0.2, 0.7, 1.1])
    options = {"mode": mode, "coordinate_transformation_mode": coordinates}
    got = ops.resize_image(x, sizes=new, roi=roi, extrapolation_value=3.0, **options)
    want = reference(
        x,
        (roi, None, np.array(new, np.int64)),
        extrapolation_value=3.0,
        **options,
    )
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "given", [{"sizes": (1, 1)}, {"scales": np.float32([0.3, 0.39])}]
)
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_one_pixel_of_pytorch_half_pixel_is_the_first(mode, given):
    x = RNG.normal(size=(4, 5))
    options = {"mode": mode, "coordinate_transformation_mode": "pytorch_half_pixel"}
    np.testing.assert_allclose(
        ops.resize_image(x, **given, **options), x[:1, :1], rtol=1e-12
    )


@pytest.mark.parametrize("coordinates", COORDINATES[:5])
@pytest.mark.parametrize("scales", [(0.6, 1.7), (2.0, 0.8)])
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_resize_by_scales(mode, scales, coordinates):
    x = RNG.normal(size=(5, 6))
    options = {"mode": mode, "coordinate_transformation_mode": coordinates}
    got = ops.resize_image(x, scales=np.float32(scales), **options)
    want = reference(x, (None, np.float32(scales)), **options)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("scale", [0.3, 0.6, 1.7])
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_crops_are_of_whole_elements(mode, scale):
    """Scales move no element from where the sizes that they give have it."""
    x = RNG.normal(size=(6,))
    options = {"coordinate_transformation_mode": "tf_crop_and_resize"}
    options |= {"mode": mode, "roi": (0.1, 0.9)}
    got = ops.resize_image(x, scales=np.float32([scale]), **options)
    want = ops.resize_image(x, sizes=(int(scale * 6),), **options)
    np.testing.assert_allclose(got, want, rtol=1e-12)


@pytest.mark.parametrize(
    ("mode", "antialias", "exclude_outside", "a"),
    [
        *itertools.product(["linear", "cubic"], [1], [0, 1], [-0.75]),
        ("cubic", 0, 1, -0.5),
        ("cubic", 1, 1, -0.5),
    ],
)
def test_antialias_and_exclude_outside(mode, antialias, exclude_outside, a):
    x = RNG.normal(size=(9, 6))
    options = {
        "mode": mode,
        "antialias": antialias,
        "exclude_outside": exclude_outside,
        "cubic_coeff_a": a,
    }
    got = ops.resize_image(x, sizes=(4, 8), **options)
    want = reference(x, (None, None, np.array([4, 8], np.int64)), **options)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("policy", ["not_larger", "not_smaller"])
def test_keeping_the_aspect_ratio(policy):
    x = RNG.normal(size=(1, 4, 7))
    options = {"mode": "linear", "keep_aspect_ratio_policy": policy, "axes": [1, 2]}
    got = ops.resize_image(x, sizes=(6, 6), **options)
    want = reference(x, (None, None, np.array([6, 6], np.int64)), **options)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "nearest_mode", ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]
)
@pytest.mark.parametrize("new", [3, 4, 11])
def test_nearest_modes(nearest_mode, new):
    x = RNG.normal(size=(6,))
    options = {"mode": "nearest", "nearest_mode": nearest_mode}
    got = ops.resize_image(x, sizes=(new,), **options)
    want = reference(x, (None, None, np.array([new], np.int64)), **options)
    np.testing.assert_array_equal(got, want)


INTERPOLATIONS = [
    ((1, 2, 7), {"size": 4}),
    ((1, 2, 7), {"size": 12, "mode": "linear"}),
    ((1, 2, 5, 6), {"size": (8, 3), "mode": "nearest-exact"}),
    ((1, 2, 5, 6), {"scale_factor": 1.7}),
    ((1, 2, 5, 6), {"scale_factor": (1.7, 0.6), "mode": "bilinear"}),
    (
        (1, 2, 5, 6),
        {"scale_factor": 1.7, "mode": "bilinear", "recompute_scale_factor": True},
    ),
    ((1, 2, 5, 6), {"size": (8, 3), "mode": "bilinear", "align_corners": True}),
    ((1, 2, 5, 6), {"size": (1, 9), "mode": "bilinear", "align_corners": True}),
    ((1, 2, 9, 6), {"size": (4, 8), "mode": "bilinear", "antialias": True}),
    ((1, 2, 9, 6), {"size": (4, 8), "mode": "bicubic", "antialias": True}),
    ((1, 2, 5, 6), {"size": (8, 3), "mode": "bicubic"}),
    ((1, 2, 5, 6), {"size": (8, 3), "mode": "bicubic", "align_corners": True}),
    ((1, 2, 3, 5, 6), {"size": (4, 3, 9), "mode": "trilinear"}),
    ((1, 2, 5, 6), {"size": (2, 4), "mode": "area"}),
]


@pytest.mark.oracle
@pytest.mark.parametrize(("shape", "options"), INTERPOLATIONS)
def test_interpolate(shape, options):
    torch = pytest.importorskip("torch")
    x = RNG.normal(size=shape)
    want = torch.nn.functional.interpolate(torch.tensor(x), **options).numpy()
    got = ops.interpolate(x, **options)
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=1e-7, atol=1e-9)


@pytest.mark.oracle
@pytest.mark.parametrize("corners", [False, True])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
def test_grid_sample(mode, padding, corners):
    torch = pytest.importorskip("torch")
    options = {"mode": mode, "padding_mode": padding, "align_corners": corners}
    for shape, places in (((2, 3, 5, 4), (6, 7)), ((2, 3, 4, 5, 3), (2, 3, 4))):
        if mode == "bicubic" and len(places) == 3:
            continue
        x = RNG.normal(size=shape)
        grid = RNG.uniform(-2.3, 2.3, (2, *places, len(places)))
        want = torch.nn.functional.grid_sample(
            torch.tensor(x), torch.tensor(grid), **options
        )
        got = ops.grid_sample(x, grid, **options)
        np.testing.assert_allclose(got, want.numpy(), rtol=1e-7, atol=1e-9)


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_a_grid_of_halves_is_placed_in_single_precision(dtype):
    torch = pytest.importorskip("torch")
    x = RNG.normal(size=(1, 2, 30, 300)).astype(dtype)
    grid = RNG.uniform(-1.1, 1.1, (1, 6, 7, 2)).astype(np.float16)
    want = torch.nn.functional.grid_sample(
        torch.tensor(x, dtype=torch.float64),
        torch.tensor(grid, dtype=torch.float64),
        align_corners=False,
    )
    got = ops.grid_sample(x, grid)
    assert got.dtype == dtype
    bound = {"float32": 1e-4, "float16": 4e-3}[dtype]
    np.testing.assert_allclose(got, want.numpy(), rtol=bound, atol=bound)
