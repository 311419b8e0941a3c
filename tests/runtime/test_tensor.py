"""Tensor is NumPy's array with gradients: what NumPy says of arrays holds of it."""

import operator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as nps

from burnish import Device, Tensor

FLOATS = nps.floating_dtypes(sizes=(32, 64), endianness="=")
NUMBERS = (
    FLOATS
    | nps.integer_dtypes(sizes=(8, 32, 64), endianness="=")
    | nps.unsigned_integer_dtypes(sizes=(8,), endianness="=")
    | nps.boolean_dtypes()
)
SHAPES = nps.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)


@st.composite
def pairs(draw):
    """Two arrays whose shapes broadcast, of any two dtypes."""
    shapes = draw(
        nps.mutually_broadcastable_shapes(num_shapes=2, max_dims=3, min_side=0)
    )
    return [draw(arrays(shape=shape)) for shape in shapes.input_shapes]


@st.composite
def arrays(draw, shape=SHAPES, dtype=NUMBERS):
    dtype = draw(dtype)
    elements = nps.from_dtype(np.dtype(dtype), allow_nan=False, allow_infinity=False)
    if dtype.kind == "f":
        elements = st.floats(-100, 100, width=16)
    elif dtype.kind in "iu":
        elements = st.integers(0 if dtype.kind == "u" else -100, 100)
    return draw(nps.arrays(dtype, shape, elements=elements))


def same(tensor, array):
    assert isinstance(tensor, Tensor)
    array = np.asarray(array)
    assert (tensor.dtype, tensor.shape) == (array.dtype, array.shape)
    np.testing.assert_array_equal(tensor.numpy(), array)


# --- semantics ---


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    "op", [operator.add, operator.mul, operator.eq, operator.lt, operator.ge]
)
@given(pairs())
def test_binary_operators_broadcast_and_promote_as_numpy(op, pair):
    a, b = pair
    want = op(a, b)
    same(op(Tensor(a), Tensor(b)), want)
    same(op(Tensor(a), b), want)
    same(op(a, Tensor(b)), want)


@pytest.mark.parametrize("number", [2, 2.5, np.float64(2.5), np.int32(3)])
@given(arrays(dtype=FLOATS))
def test_python_numbers_promote_as_numpy(number, a):
    same(Tensor(a) + number, a + number)
    same(number - Tensor(a), number - a)
    same(Tensor(a) / number, a / number)


@pytest.mark.parametrize("far", [0, 1], ids=["x", "index"])
def test_an_index_on_another_device_goes_where_the_tensor_is(far, monkeypatch):
    monkeypatch.setattr(Device, "is_several", False)  # a test before may name two
    x, places = Tensor([[1.0, 2.0], [3.0, 4.0]]), Tensor([1, 0])
    (x, places)[far].device = Device("cuda")  # in name: the array stays
    assert x[places].device is x.device
    assert x[places].data.tolist() == [[3, 4], [1, 2]]
    assert x[:, places].data.tolist() == [[2, 1], [4, 3]]


@given(st.data())
def test_indexing_is_numpys(data):
    array = data.draw(arrays(shape=nps.array_shapes(max_dims=3, max_side=4)))
    index = data.draw(
        nps.basic_indices(array.shape, allow_newaxis=True)
        | nps.integer_array_indices(array.shape)
        | nps.arrays(bool, array.shape)
    )
    same(Tensor(array)[index], array[index])
    items = index if isinstance(index, tuple) else (index,)
    tensors = tuple(Tensor(i) if isinstance(i, np.ndarray) else i for i in items)
    same(Tensor(array)[tensors], array[index])


@pytest.mark.parametrize("kind", ["int64", "int32", "uint8", "bool"])
@pytest.mark.parametrize("behind", [0, 1, 2])
def test_indexing_with_a_tensor_behind_whole_axes(behind, kind):
    array = np.arange(8.0).reshape(2, 2, 2)
    places = np.array([1, 0]).astype(kind)
    whole = (slice(None),) * behind
    same(Tensor(array)[(*whole, Tensor(places))], array[(*whole, places)])
    leaf = Tensor(array).require_grad()
    got = leaf.grad((leaf[(*whole, Tensor(places))] * 3).sum().backward()).numpy()
    want = np.zeros_like(array)
    np.add.at(want, (*whole, places), 3)
    np.testing.assert_array_equal(got, want)


@given(st.data())
def test_gradient_of_indexing_counts_what_was_picked(data):
    shape = data.draw(nps.array_shapes(max_dims=3, max_side=4))
    index = data.draw(nps.basic_indices(shape) | nps.integer_array_indices(shape))
    leaf = Tensor(np.ones(shape)).require_grad()
    picked = leaf[index]
    got = leaf.grad(picked.sum().backward()).numpy()
    want = np.zeros(shape)
    np.add.at(want, index, 1)
    np.testing.assert_array_equal(got, want)


@given(arrays(dtype=FLOATS), st.booleans())
def test_reductions_are_numpys(array, keepdims):
    tensor = Tensor(array)
    for axis in (None, *range(array.ndim)):
        got = tensor.sum(axis=axis, keepdims=keepdims)
        same(got, array.sum(axis=axis, keepdims=keepdims))
        if array.size:
            got = tensor.max(axis=axis, keepdims=keepdims)
            same(got, array.max(axis=axis, keepdims=keepdims))


@given(arrays())
def test_round_trips_share_memory(array):
    tensor = Tensor(array)
    assert np.shares_memory(tensor.numpy(), array) or not array.size
    same(Tensor(tensor), array)
    np.testing.assert_array_equal(np.asarray(tensor), array)
    np.testing.assert_array_equal(np.from_dlpack(tensor), array)
    same(Tensor.from_dlpack(array), array)


def test_other_libraries_share_the_memory():
    tensor = Tensor(np.arange(6.0).reshape(2, 3))
    assert np.shares_memory(np.asarray(tensor), tensor.numpy())
    assert np.shares_memory(np.from_dlpack(tensor), tensor.numpy())
    array = np.arange(4.0)
    assert np.shares_memory(Tensor.from_dlpack(array).numpy(), array)


@pytest.mark.oracle
@pytest.mark.parametrize("name", ["torch", "jax"])
def test_tensors_of_other_libraries_share_the_memory(name):
    library = pytest.importorskip(name if name == "torch" else "jax.dlpack")
    memory = np.zeros(88, np.uint8)
    start = -memory.ctypes.data % 64  # JAX copies what is aligned to less
    tensor = Tensor(memory[start : start + 24].view(np.float32).reshape(2, 3))
    tensor.numpy()[...] = np.arange(6.0).reshape(2, 3)
    theirs = library.from_dlpack(tensor)
    assert np.shares_memory(np.asarray(theirs), tensor.numpy())
    again = Tensor.from_dlpack(theirs)
    assert np.shares_memory(again.numpy(), tensor.numpy())
    np.testing.assert_array_equal(again.numpy(), np.asarray(theirs))


def test_array_protocol_casts_and_copies():
    tensor = Tensor([1.5, 2.5])
    assert np.asarray(tensor, np.float32).dtype == np.float32
    assert not np.shares_memory(np.array(tensor, copy=True), tensor.numpy())
