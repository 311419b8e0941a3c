"""`accepts`: conversion, checks, and what stays readable."""

import numpy as np
import pytest

from burnish import Device, Tensor, nn
from burnish.errors import InputError


class Model(nn.Module):
    @nn.accepts(images="float32[batch, 2, 3]", mask="bool[batch, time]")
    def forward(self, images, mask=None):
        """images, mask -> both"""
        return images, mask


IMAGES = np.zeros((4, 2, 3), np.float32)


def one(text, value):
    class Single(nn.Module):
        @nn.accepts(x=text)
        def forward(self, x):
            return x

    return Single()(value)


def test_arrays_and_lists_become_tensors_on_the_modules_device():
    model = Model().to("cpu:autodiff")
    images, mask = model(IMAGES, mask=[[True], [False], [True], [True]])
    assert isinstance(images, Tensor)
    assert images.device is Device("cpu:autodiff")
    assert mask.dtype == bool


def test_tensors_and_none_pass_as_they_are():
    x = Tensor(IMAGES)
    images, mask = Model()(images=x, mask=None)
    assert images is x
    assert mask is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            (np.zeros((2, 3), np.float32),),
            "Model.forward: images has shape (2, 3), expected float32[batch, 2, 3]",
        ),
        (
            (np.zeros((4, 2, 5), np.float32),),
            "Model.forward: images has shape (4, 2, 5), expected float32[batch, 2, 3]",
        ),
        ((None,), "Model.forward: images is None, expected float32[batch, 2, 3]"),
        (
            (np.zeros((4, 2, 3)),),
            "Model.forward: images has dtype float64, expected float32[batch, 2, 3]",
        ),
        (
            (IMAGES, np.ones((3, 7), bool)),
            "Model.forward: mask has shape (3, 7), expected bool[batch, time] "
            "with batch=4 as images",
        ),
    ],
)
def test_what_does_not_fit_is_named(arguments, message):
    with pytest.raises(InputError) as caught:
        Model()(*arguments)
    assert str(caught.value) == message


def test_a_list_that_makes_no_array_is_named():
    with pytest.raises(InputError, match="x is a list that makes no array"):
        one("float32[?]", ["a"])
    with pytest.raises(InputError, match="x is a list that makes no array"):
        one("float32[?, ?]", [[1], [2, 3]])


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("float64", (2, 3, 4)),
        ("float64[...]", ()),
        ("float64[]", ()),
        ("any[n, n]", (3, 3)),
        ("float64[?, _, 3]", (1, 2, 3)),
        ("float64[n, ..., 3]", (5, 3)),
        ("float64[n, ..., n]", (5, 1, 2, 5)),
    ],
)
def test_shapes_that_fit(text, shape):
    assert one(text, np.zeros(shape)).shape == shape


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("float64[]", (1,)),
        ("float64[n, n]", (3, 4)),
        ("float64[n, ..., 3]", (3,)),
        ("float64[n, ..., n]", (5, 1, 4)),
        ("float64[..., 3]", (3, 4)),
    ],
)
def test_shapes_that_do_not_fit(text, shape):
    with pytest.raises(InputError, match="x has shape"):
        one(text, np.zeros(shape))


def test_numbers_take_the_specs_dtype():
    assert one("int64[]", 3).dtype == np.int64
    assert one("float32[]", 3).dtype == np.float32


@pytest.mark.parametrize("text", ["float32[", "float32[a b]", "[3]", "float32[-1]"])
def test_a_spec_that_cannot_be_read_is_refused_at_once(text):
    with pytest.raises(ValueError, match="accepts"):
        nn.accepts(x=text)


def test_an_argument_that_forward_lacks_is_refused_at_once():
    with pytest.raises(TypeError, match="has no 'y'"):
        nn.accepts(y="int64[]")(Model.forward)


def test_what_was_declared_stays_readable():
    forward = Model.forward
    assert str(forward.inputs["images"]) == "float32[batch, 2, 3]"
    assert forward.inputs["images"].shape == ("batch", 2, 3)
    assert forward.__doc__ == "images, mask -> both"
    assert forward.__wrapped__.__name__ == "forward"
