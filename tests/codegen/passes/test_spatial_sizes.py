"""Resizing by sizes is interpolation of height and width alone."""

from __future__ import annotations

import pytest

from tests.codegen.passes.forms import becomes, form, stays

#: `F.interpolate(x, size=...)` as PyTorch's older exporter writes it.
RESIZED = """n = Shape(x) a = Constant<value_ints=[0]>() b = Constant<value_ints=[2]>()
    front = Slice(n, a, b, a) s = Constant<value_ints=[9,4]>()
    sizes = Concat<axis=0>(front, s)
    y = Resize<{how}>(x, , , sizes)"""
LINEAR = 'mode="linear", coordinate_transformation_mode='


@pytest.mark.parametrize(
    ("how", "written"),
    [
        (f'{LINEAR}"half_pixel"', 'size=(9, 4), mode="bilinear"'),
        (f'{LINEAR}"pytorch_half_pixel"', 'size=(9, 4), mode="bilinear"'),
        (
            f'{LINEAR}"align_corners"',
            'size=(9, 4), mode="bilinear", align_corners=True',
        ),
        (
            'coordinate_transformation_mode="asymmetric", nearest_mode="floor"',
            "size=(9, 4)",
        ),
    ],
)
def test_batch_and_channels_are_not_written(how, written):
    model = form(RESIZED.format(how=how), x="batch,3,5,7")
    becomes(model, f"return ops.interpolate(x, {written})")


def test_sizes_of_another_image():
    text = RESIZED.format(how=f'{LINEAR}"half_pixel"').replace(
        "s = Constant<value_ints=[9,4]>()",
        "m = Shape(z) c = Constant<value_ints=[4]>() s = Slice(m, b, c, a)",
    )
    model = form(text, x="batch,3,5,7", z="batch,2,h,w")
    becomes(
        model,
        'return ops.interpolate(x, size=(z.shape[2], z.shape[3]), mode="bilinear")',
    )


HEIGHT = """s = Constant<value_ints=[9]>()
    y = Resize<axes=[2], {how}>(x, , , s)"""
TALLER = """s = Constant<value_floats=[2.0]>()
    y = Resize<axes=[2], {how}>(x, , s)"""
CHANNELS = RESIZED.replace("[2]", "[1]").replace("[9,4]", "[4,9,4]")


@pytest.mark.parametrize(
    ("text", "how"),
    [
        (CHANNELS, f'{LINEAR}"half_pixel"'),
        (HEIGHT, f'{LINEAR}"half_pixel"'),
        (TALLER, f'{LINEAR}"half_pixel"'),
        (RESIZED, 'mode="cubic", cubic_coeff_a=-0.5'),
        (RESIZED, 'nearest_mode="ceil"'),
        (RESIZED, 'coordinate_transformation_mode="align_corners"'),
    ],
    ids=[
        "channels too",
        "size of the height",
        "factor of the height",
        "another cubic",
        "upwards",
        "aligned neighbours",
    ],
)
def test_other_resizing_is_no_interpolation(text, how):
    stays(form(text.format(how=how), x="batch,3,5,7"), "interpolate")
