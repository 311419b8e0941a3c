"""Forms that Keras writes: repeated elements, negative indices, reversed sequences."""

from __future__ import annotations

import numpy as np
import pytest

from tests.codegen.passes.forms import becomes, form, stays
from tests.harness.source import source_of

#: Keras' UpSampling2D behind a convolution: rows, then columns, channels last between.
UPSAMPLED = """a3 = Constant<value_ints=[3]>() c = Conv(x, w)
    u = Unsqueeze(c, a3) r3 = Constant<value_ints=[1,1,1,2,1]>() t = Tile(u, r3)
    n = Transpose<perm=[0,2,3,4,1]>(t) s1 = Constant<value_ints=[-1,12,5,4]>()
    h = Reshape(n, s1) v = Unsqueeze(h, a3) q = Tile(v, r3)
    s2 = Constant<value_ints=[-1,12,10,4]>() z = Reshape(q, s2)
    k = Transpose<perm=[0,3,1,2]>(z) y = Conv(k, w2)"""
WEIGHTS = {
    "w": np.random.default_rng(0).normal(size=(4, 3, 1, 1)).astype(np.float32),
    "w2": np.random.default_rng(1).normal(size=(2, 4, 1, 1)).astype(np.float32),
}
#: One axis of many: x (batch, 4, 6), the new axis behind the one that grows.
ALONG_TIME = """a = Constant<value_ints=[3]>() u = Unsqueeze(x, a)
    r = Constant<value_ints=[1,1,1,3]>() t = Tile(u, r)
    s = Constant<value_ints=[-1,4,18]>() y = Reshape(t, s)"""


def test_upsampling_with_channels_last_is_one_interpolation():
    source = becomes(
        form(UPSAMPLED, x="2,3,6,5", weights=WEIGHTS),
        "return self.conv2(ops.interpolate(self.conv1(x), scale_factor=2))",
    )
    assert "tile" not in source


def test_one_axis_is_interpolated_by_its_factor():
    becomes(form(ALONG_TIME, x="b,4,6"), "return ops.interpolate(x, scale_factor=3)")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("a = Constant<value_ints=[3]>()", "a = Constant<value_ints=[2]>()"),
        ("value_ints=[1,1,1,3]", "value_ints=[1,2,1,3]"),
        ("value_ints=[-1,4,18]", "value_ints=[-1,12,6]"),
    ],
    ids=["the whole again", "two axes", "another shape"],
)
def test_what_is_repeated_otherwise_stays_a_tile(old, new):
    assert old in ALONG_TIME
    text = ALONG_TIME.replace(old, new)
    if "value_ints=[2]" in new:  # the axis comes before the one that grows
        text = text.replace("[1,1,1,3]", "[1,1,3,1]")
    if "[1,2,1,3]" in new:
        text = text.replace("[-1,4,18]", "[-1,8,18]")
    stays(form(text, x="b,4,6"), "interpolate")


def test_repeated_heads_are_no_image():
    text = """a = Constant<value_ints=[2]>() u = Unsqueeze(x, a)
        r = Constant<value_ints=[1,1,3,1,1]>() t = Tile(u, r)
        s = Constant<value_ints=[-1,6,5,4]>() y = Reshape(t, s)"""
    stays(form(text, x="b,2,5,4"), "interpolate")


@pytest.mark.parametrize(
    ("attributes", "scales", "line"),
    [
        ('mode="nearest", coordinate_transformation_mode="asymmetric",'
         ' nearest_mode="floor"', [1, 1, 2, 3], "scale_factor=(2, 3))"),
        ('mode="linear"', [1, 1, 1.5, 1.5], 'scale_factor=1.5, mode="bilinear")'),
        ('mode="cubic"', [1, 1, 2, 2], 'scale_factor=2, mode="bicubic")'),
        ('mode="linear", coordinate_transformation_mode="align_corners"', [1, 1, 2, 2],
         'scale_factor=2, mode="bilinear", align_corners=True)'),
    ],
)  # fmt: skip
def test_a_resize_is_written_with_pytorchs_options(attributes, scales, line):
    held = {"f": np.array(scales, np.float32), "none": np.array([], np.float32)}
    text = f"y = Resize<{attributes}>(x, none, f)"
    source = becomes(form(text, x="2,3,4,6", weights=held))
    assert f"return ops.interpolate(x, {line}" in source


@pytest.mark.parametrize(
    ("attributes", "scales"),
    [
        ('mode="linear"', [1, 2, 2, 2]),
        (
            'mode="linear", coordinate_transformation_mode="align_corners"',
            [1, 1, 1, 1.5],
        ),
        ('mode="cubic", cubic_coeff_a=-0.5', [1, 1, 2, 2]),
        ('mode="nearest"', [1, 1, 2, 2]),
    ],
    ids=["channels grow", "corners of a fraction", "another spline", "rounded places"],
)
def test_other_resizes_keep_their_words(attributes, scales):
    held = {"f": np.array(scales, np.float32), "none": np.array([], np.float32)}
    text = f"y = Resize<{attributes}>(x, none, f)"
    stays(form(text, x="2,3,4,6", weights=held), "interpolate")


def test_pytorchs_corners_are_those_of_whole_elements(tmp_path):
    held = {"f": np.float32([1, 1, 1.7, 1.3]), "none": np.array([], np.float32)}
    corners = 'mode="linear", coordinate_transformation_mode="align_corners"'
    model = form(f"y = Resize<{corners}>(x, none, f)", x="2,3,4,6", weights=held)
    model.producer_name = "pytorch"
    source, module = source_of(model, tmp_path)
    assert 'scale_factor=(1.7, 1.3), mode="bilinear", align_corners=True' in source
    x = np.arange(144, dtype=np.float32).reshape(2, 3, 4, 6)
    y = module(x)
    assert y.shape == (2, 3, 6, 7)
    np.testing.assert_allclose(y[..., -1, -1], x[..., -1, -1], rtol=1e-6)


#: Keras' Embedding, and how tf2onnx writes the choice between whole numbers.
CHOICES = {
    "where": """z = Constant<value=int32[1] {0}>() n = Less(i, z) f = Add(i, v)
        p = Where(n, f, i)""",
    "products": """c = Cast<to=1>(i) z = Constant<value=float {0.0}>() n = Less(c, z)
        f = Add(i, v) b = Cast<to=6>(n) a = Mul(b, f) o = Not(n) d = Cast<to=6>(o)
        e = Mul(i, d) p = Add(a, e)""",
}
TABLE = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("rows", [5, 4], ids=["the table's length", "another number"])
def test_places_from_the_end_are_the_tables_business(choice, rows):
    held = {"table": TABLE, "v": np.array(rows, np.int32)}
    model = form(
        f"{CHOICES[choice]} y = Gather(table, p)", i="int32[b,4]", weights=held
    )
    feeds = {"i": np.array([[0, 4, -1, -4], [3, -2, 1, 2]], np.int32)}
    if rows == 5:
        becomes(model, "return self.embed(i)", feeds=feeds)
    else:
        stays(model, "self.embed(i)", feeds=feeds)


@pytest.mark.parametrize(
    ("lengths", "line"), [([5, 5], "return x[::-1]"), ([5, 4], None)]
)
def test_whole_sequences_are_turned_by_a_slice(lengths, line):
    held = {"lengths": np.array(lengths)}
    model = form(
        "y = ReverseSequence<time_axis=0, batch_axis=1>(x, lengths)",
        x="5,2,3",
        weights=held,
    )
    becomes(model, line) if line else stays(model, "x[::-1]")


@pytest.mark.parametrize(("axis", "is_whole"), [(0, True), (1, False)])
def test_a_sequence_as_long_as_its_axis_is_turned_by_a_slice(axis, is_whole):
    text = f"""t = Constant<value_ints=[{axis}]>() n = Constant<value_ints=[1]>()
        s = Shape(x) length = Gather(s, t) batch = Gather(s, n)
        lengths = Expand(length, batch)
        y = ReverseSequence<time_axis=0, batch_axis=1>(x, lengths)"""
    model = form(text, x="time,batch,3")
    if is_whole:
        becomes(model, "return x[::-1]")
    else:
        stays(model, "x[::-1]", feeds={"x": np.zeros((4, 3, 3), np.float32)})


@pytest.mark.parametrize(
    ("name", "end", "is_whole"),
    [
        ("const_ends__7", 10**9, True),  # what tf2onnx writes for "to the end"
        ("ends", 10**9, False),
        ("ends", 2**31 - 1, True),
    ],
)
def test_a_slice_to_the_end_is_the_whole(name, end, is_whole):
    text = f"""z = Constant<value_ints=[0]>() s = Slice(x, z, {name}, z)
        y = Relu(s)"""
    model = form(text, x="b,3", weights={name: np.array([end])})
    source = becomes(model)
    assert ("return ops.relu(x)" in source) is is_whole, source


def unrolled(layer, count=4, last=4, axis=0):
    """A layer on each step of x (4, batch, 6), as Keras' TimeDistributed comes."""
    text = f"z = Constant<value_ints=[0]>() a = Constant<value_ints=[{axis}]>()"
    for i in range(count):
        text += f""" f{i} = Constant<value_ints=[{i}]>()
            t{i} = Constant<value_ints=[{i + 1 if i + 1 < last else 1 << 40}]>()
            c{i} = Slice(x, f{i}, t{i}, z) s{i} = Squeeze(c{i}, z)
            {layer.format(i=i)} u{i} = Unsqueeze(r{i}, a)"""
    return f"{text} y = Concat<axis={axis}>({', '.join(f'u{i}' for i in range(count))})"


MATRIX = {"m": np.random.default_rng(2).normal(size=(6, 3)).astype(np.float32)}
BIAS = {"b": np.random.default_rng(3).normal(size=3).astype(np.float32)}
PRODUCT = "p{i} = MatMul(s{i}, m) q{i} = Add(p{i}, b) r{i} = Tanh(q{i})"


@pytest.mark.parametrize(
    ("layer", "options", "line"),
    [
        (PRODUCT, {}, "return ops.tanh(self.linear(x))"),
        (PRODUCT, {"axis": 1}, "return ops.tanh(self.linear(x)).transpose(1, 0, 2)"),
        ("r{i} = Gemm(s{i}, m, b)", {}, "return self.linear(x)"),
    ],
    ids=["a product", "another axis", "Gemm"],
)
def test_a_layer_on_each_slice_is_one_layer(layer, options, line):
    weights = MATRIX | BIAS
    becomes(form(unrolled(layer, **options), x="4,batch,6", weights=weights), line)


@pytest.mark.parametrize(
    ("layer", "size"),
    [
        (PRODUCT, 5),
        (PRODUCT.replace("MatMul(s{i}, m)", "MatMul(s{i}, m{i})"), 4),
        ("p{i} = MatMul(s{i}, m) q{i} = Add(p{i}, b) r{i} = Softmax<axis=0>(q{i})", 4),
    ],
    ids=["not all of the axis", "weights of their own", "along another axis"],
)
def test_slices_that_differ_stay(layer, size):
    text = unrolled(layer, last=9)
    own = {f"m{i}": MATRIX["m"] * i for i in range(4)} if "m{i})" in layer else MATRIX
    source = stays(form(text, x=f"{size},batch,6", weights=own | BIAS))
    assert "return ops.stack(" in source or "ops.concat(" in source or "for " in source
