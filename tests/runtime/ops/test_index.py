import numpy as np
import pytest

from burnish import Tensor, ops
from burnish.errors import InputError
from tests.harness.operators import case

ROWS = np.array([2, 0, -1, 2])
MASK = np.array([True, False, True])
INDEXES = [
    1,
    (slice(None), -1),
    (Ellipsis, slice(None, None, -2)),
    (None, 0, Ellipsis, None),
    ROWS,
    [0, 0],
    (slice(1, None), np.array([[0, 1], [1, 1]])),
    (ROWS, slice(None), np.array([0, 1, 1, 0])),
    (np.array([[0], [2]]), np.array([1, 1])),
    (Ellipsis, np.array([3, 3, 0])),
    MASK,
    (MASK, slice(None), 1),
    (MASK, np.array([1, 1])),
    np.zeros((3, 2, 4), bool),
    (slice(0, 0), 1),
    (ROWS, Ellipsis),
    (slice(None), None, ROWS % 2),
]
PLACES = np.array([[0, -1, 1], [1, 1, 0]])
PAIRS = np.array([[0, 1], [2, -1], [0, 1]])


def put_along_axis(x, indices, updates):
    y = x.copy()
    np.put_along_axis(y, indices, updates, 0)
    return y


def combined(ufunc):
    def expect(x, indices, updates):
        y = x.copy()
        ufunc.at(y, (indices, np.arange(3)), updates)
        return y

    return expect


def combined_nd(ufunc):
    def expect(x, indices, updates):
        y = x.copy()
        ufunc.at(y, tuple(indices.T), updates)
        return y

    return expect


def best(x, axis, largest):
    order = np.argsort(-x if largest else x, axis, kind="stable")
    places = order.take(range(2), axis)
    return np.take_along_axis(x, places, axis), places


def windows(x, step):
    """Of length 3 along the last axis."""
    return np.lib.stride_tricks.sliding_window_view(x, 3, -1)[:, ::step]


def added(x, indices, updates):
    y = x.copy()
    np.add.at(y.T, indices, updates.T)
    return y


CASES = [
    *(
        case(ops.getitem, (3, 2, 4), index=i, expect=lambda x, i=i: x[i])
        for i in INDEXES
    ),
    *(
        case(
            ops.set_item,
            (3, 2, 4),
            np.array(0.5),
            index=i,
            expect=lambda x, v, i=i: [y := x.copy(), y.__setitem__(i, v)][:1],
        )
        for i in INDEXES[:4]
    ),
    case(
        ops.set_item,
        (3, 4),
        (2, 4),
        index=np.array([2, 0]),
        expect=lambda x, v: np.stack([v[1], x[1], v[0]]),
    ),
    case(ops.put_at, (4, 2), index=(ROWS, slice(None), 1), shape=(3, 2, 2), grad=True),
    case(
        ops.put_rows,
        (4, 2),
        ROWS,
        rows=3,
        expect=lambda x, i: np.stack([x[1], 0 * x[0], x[0] + x[2] + x[3]]),
    ),
    case(
        ops.put_rows,
        (4,),
        ROWS,
        rows=3,
        expect=lambda x, i: np.stack([x[1], 0 * x[0], x[0] + x[2] + x[3]]),
    ),
    case(ops.take, (3, 4), ROWS, axis=0, expect=lambda x, i: x[i]),
    case(
        ops.take,
        (2, 3, 4),
        np.array([[0, -1], [1, 1]]),
        axis=1,
        expect=lambda x, i: x[:, i],
    ),
    case(ops.take, (2, 3), np.array(1), axis=-1, expect=lambda x, i: x[:, 1]),
    case(ops.take, (2, 3), 1, axis=-1, expect=lambda x, i: x[:, 1]),
    case(
        ops.take, (2, 3, 2), np.zeros((0,), int), axis=1, expect=lambda x, i: x[:, :0]
    ),
    case(
        ops.gather_elements,
        (3, 4),
        PLACES,
        expect=lambda x, i: np.take_along_axis(x[:, :3], i, 0),
    ),
    case(
        ops.gather_elements,
        (3, 4),
        PLACES,
        axis=1,
        expect=lambda x, i: np.take_along_axis(x[:2], i, 1),
    ),
    case(
        ops.take_along_axis,
        (2, 3),
        np.array([[0, 2]]),
        axis=1,
        expect=lambda x, i: x[:, [0, 2]],
    ),
    case(
        ops.take_along_axis,
        (1, 3),
        np.array([0, 2]),
        axis=1,
        expect=lambda x, i: x[:, [0, 2]],
    ),
    case(
        ops.take_along_axis,
        (2, 3),
        np.array([[1, 0, 1]]),
        axis=0,
        expect=lambda x, i: np.take_along_axis(x, i, 0),
    ),
    case(ops.gather_nd, (3, 4, 2), PAIRS, expect=lambda x, i: x[i[:, 0], i[:, 1]]),
    case(
        ops.gather_nd,
        (3, 4),
        PAIRS[:, None],
        expect=lambda x, i: x[i[..., 0], i[..., 1]],
    ),
    case(
        ops.gather_nd,
        (2, 3, 4),
        np.array([[1], [0]]),
        batch_dims=1,
        expect=lambda x, i: np.stack([x[0, 1], x[1, 0]]),
    ),
    case(
        ops.scatter_elements,
        (3, 3),
        np.array([[0, -1, 1]]),
        (1, 3),
        expect=put_along_axis,
    ),
    case(
        ops.scatter_elements,
        (3, 3),
        PLACES,
        (2, 3),
        reduction="add",
        expect=combined(np.add),
    ),
    case(
        ops.scatter_elements,
        (3, 3),
        PLACES,
        (2, 3),
        reduction="mul",
        expect=combined(np.multiply),
    ),
    case(
        ops.scatter_elements,
        (3, 3),
        PLACES,
        (2, 3),
        reduction="max",
        expect=combined(np.maximum),
    ),
    case(
        ops.scatter_elements,
        (3, 3),
        PLACES,
        (2, 3),
        reduction="min",
        expect=combined(np.minimum),
    ),
    case(
        ops.scatter_elements,
        (3, 3),
        PLACES,
        (2, 3),
        reduction="add",
        dtypes=("int32",),
        expect=combined(np.add),
    ),
    case(
        ops.scatter_nd,
        (3, 4, 2),
        PAIRS[:2],
        (2, 2),
        expect=lambda x, i, u: combined_nd(np.add)(x, i, u - x[i[:, 0], i[:, 1]]),
    ),
    case(
        ops.scatter_nd,
        (3, 4, 2),
        PAIRS,
        (3, 2),
        reduction="add",
        expect=combined_nd(np.add),
    ),
    case(
        ops.scatter_nd,
        (3, 4),
        PAIRS,
        (3,),
        reduction="max",
        expect=combined_nd(np.maximum),
    ),
    case(
        ops.scatter_nd,
        (3, 4),
        PAIRS,
        (3,),
        reduction="mul",
        expect=combined_nd(np.multiply),
    ),
    case(
        ops.slice_,
        (5, 6),
        np.array([1, -3]),
        np.array([4, 99]),
        expect=lambda x, a, b: x[1:4, -3:],
    ),
    case(ops.slice_, (5, 6), [9], [-99], [1], [-2], expect=lambda x, *_: x[:, ::-2]),
    case(ops.compress, MASK, (3, 4), axis=0, expect=lambda m, x: x[m]),
    case(ops.compress, MASK, (3, 4), expect=lambda m, x: x.reshape(-1)[:3][m]),
    case(
        ops.non_zero, np.array([[0, 1], [2, 3]]), expect=lambda x: np.array(x.nonzero())
    ),
    case(ops.sort, (3, 4), expect=np.sort),
    case(
        ops.sort, (3, 4), axis=0, descending=True, expect=lambda x: np.sort(x, 0)[::-1]
    ),
    case(ops.argsort, np.array([1, 0, 1]), expect=lambda x: np.array([1, 0, 2])),
    case(
        ops.argsort,
        np.array([1, 0, 1]),
        descending=True,
        expect=lambda x: np.array([0, 2, 1]),
    ),
    case(ops.median, (3, 5), axis=1, expect=lambda x: np.median(x, 1).astype(x.dtype)),
    case(
        ops.median,
        (3, 4),
        keepdims=True,
        expect=lambda x: np.median(x, keepdims=True),
    ),
    case(
        ops.median,
        (4, 3),
        axis=0,
        keepdims=True,
        dtypes=("int32",),
        expect=lambda x: np.median(x, 0, keepdims=True),
    ),
    case(
        ops.median_with_indices,
        np.array([[2.0, 1.0, 2.0, 2.0], [np.inf, np.nan, 1.0, np.nan]]),
        axis=-1,
        expect=lambda x: (np.array([2, np.nan], x.dtype), np.array([0, 1])),
        grad=False,
    ),
    case(ops.unfold, (2, 7), axis=1, size=3, step=2, expect=lambda x: windows(x, 2)),
    case(
        ops.unfold,
        (7, 2),
        axis=0,
        size=3,
        step=4,
        expect=lambda x: windows(x.T, 4).swapaxes(0, 1),
    ),
    case(
        ops.scatter_slices,
        (2, 4),
        np.array([3, -4, 3]),
        (2, 3),
        axis=1,
        reduction="add",
        expect=added,
    ),
    case(
        ops.scatter_slices,
        (3, 2),
        np.array([2, 0]),
        (2, 2),
        expect=lambda x, i, u: np.stack([u[1], x[1], u[0]]),
    ),
    case(
        ops.scatter_slices,
        (3, 2, 2),
        np.array([1]),
        (3, 1, 2),
        axis=-2,
        reduction="max",
        expect=lambda x, i, u: np.concatenate(
            [x[:, :1], np.maximum(x[:, 1:], u)], axis=1
        ),
    ),
    case(ops.top_k, (3, 4), 2, expect=lambda x, k: best(x, -1, True)),
    case(
        ops.top_k,
        (3, 4),
        np.array(2),
        axis=0,
        largest=False,
        expect=lambda x, k: best(x, 0, False),
    ),
    case(
        ops.top_k,
        np.array([3, 3, 1, 3]),
        2,
        expect=lambda x, k: (np.array([3, 3]), np.array([0, 1])),
    ),
    case(
        ops.unique_all,
        np.array([[2, 1], [1, 4]]),
        expect=lambda x: (
            np.array([1, 2, 4]),
            np.array([1, 0, 3]),
            np.array([[1, 0], [0, 2]]),
            np.array([2, 1, 1]),
        ),
    ),
    case(
        ops.unique_of,
        np.array([2.0, 1.0, 4.0, 3.0]),
        expect=lambda x: np.unique(x, True, True, True),
    ),
    case(
        ops.unique_of,
        np.array([2, 1, 1, 3]),
        ordered=False,
        expect=lambda x: (
            np.array([2, 1, 3]),
            np.array([0, 1, 3]),
            np.array([0, 1, 1, 2]),
            np.array([1, 2, 1]),
        ),
    ),
    case(
        ops.unique_of,
        np.array([[2, 1, 2], [0, 1, 0]]),
        axis=1,
        expect=lambda x: (
            np.array([[1, 2], [1, 0]]),
            np.array([1, 0]),
            np.array([1, 0, 1]),
            np.array([1, 2]),
        ),
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_operator(case):
    case.check()


def test_an_index_may_hold_tensors():
    x = Tensor(np.arange(12.0).reshape(3, 4)).require_grad()
    y = x[Tensor([2, 0, 2]), Tensor(1)]
    assert y.tolist() == [9, 1, 9]
    got = x.grad(y.sum().backward()).numpy()
    assert got[:, 1].tolist() == [1, 0, 2]


def test_an_element_without_axes_is_put_and_pulled_back():
    x, value = (Tensor(n, device="cpu:autodiff").require_grad() for n in (1.5, 2.5))
    gradients = (2 * x.set_item((), value)).sum().backward()
    assert (x.grad(gradients).item(), value.grad(gradients).item()) == (0, 2)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64"])
def test_indices_of_few_bits_reach_every_element(dtype):
    x, picked = np.arange(600).reshape(300, 2), np.array([[100, 1], [127, 0]])
    given = picked.astype(dtype)
    np.testing.assert_array_equal(ops.gather_nd(x, given), x[tuple(picked.T)])
    wanted = np.take_along_axis(x, picked, 0)
    np.testing.assert_array_equal(ops.gather_elements(x, given), wanted)
    put = ops.scatter_nd(x, given, np.array([-1, -2]))
    assert (put[100, 1], put[127, 0]) == (-1, -2)


def test_mistakes_are_explained():
    with pytest.raises(InputError, match="take"):
        ops.take(np.zeros(3), np.array([3]))
    for place in ([0, 2], [0, -3], [-4, 0]):  # within x flattened, some of them
        with pytest.raises(InputError, match=r"indices: expected .* of x \(3, 2\)"):
            ops.gather_nd(np.zeros((3, 2)), np.array([place]))
    with pytest.raises(InputError, match="k up to 3, the length of the axis, got 4"):
        ops.top_k(np.zeros(3), 4)
    with pytest.raises(IndexError):
        Tensor.zeros(3)[3]
