import numpy as np
import pytest

from burnish import Tensor, ops
from burnish.errors import InputError
from tests.harness.operators import case, listed


def depth_to_space(x):
    """The specification's own words for DCR and blocksize 2."""
    n, c, h, w = x.shape
    y = x.reshape(n, 2, 2, c // 4, h, w).transpose(0, 3, 4, 1, 5, 2)
    return y.reshape(n, c // 4, h * 2, w * 2)


def padded(mode, pads):
    return case(
        ops.pad,
        (3, 4),
        pad_width=pads,
        mode=mode,
        expect=lambda x: np.pad(x, pads, mode),
    )


CASES = [
    case(
        ops.reshape,
        (2, 3, 4),
        shape=(0, 12),
        keep_zeros=True,
        expect=lambda x: x.reshape(2, 12),
    ),
    case(ops.moveaxis, (2, 3, 4), 0, -1, expect=np.moveaxis),
    case(
        ops.moveaxis,
        (2, 3, 4, 5),
        [0, -1],
        [2, 0],
        expect=lambda x, *axes: np.moveaxis(x, *axes),
    ),
    case(ops.unbind, (2, 3), axis=1, expect=lambda x: tuple(x.T)),
    case(
        ops.meshgrid,
        (2,),
        (3,),
        (4,),
        expect=lambda *a: tuple(np.meshgrid(*a)),
    ),
    case(
        ops.meshgrid,
        (2,),
        (),
        indexing="ij",
        expect=lambda *a: tuple(np.meshgrid(*a, indexing="ij")),
    ),
    case(ops.reshape, (3, 4), shape=(2, -1), expect=lambda x: x.reshape(2, 6)),
    case(ops.reshape, (0, 4), shape=(2, 0), expect=lambda x: x.reshape(2, 0)),
    case(ops.transpose, (2, 3, 4), expect=lambda x: x.T),
    case(
        ops.transpose, (2, 3, 4), axes=(1, -1, 0), expect=lambda x: x.transpose(1, 2, 0)
    ),
    case(ops.swapaxes, (2, 3, 4), 0, -1, expect=np.swapaxes),
    case(ops.flatten, (2, 3, 4), start_axis=1, expect=lambda x: x.reshape(2, 12)),
    case(ops.flatten_to_matrix, (2, 3, 4), axis=0, expect=lambda x: x.reshape(1, 24)),
    case(ops.flatten_to_matrix, (2, 3, 4), axis=-1, expect=lambda x: x.reshape(6, 4)),
    case(ops.squeeze, (2, 1, 3, 1), expect=np.squeeze),
    case(ops.squeeze, (2, 1, 3, 1), axis=-1, expect=lambda x: x.squeeze(-1)),
    case(ops.unsqueeze, (2, 3), axis=(0, -1), expect=lambda x: x[None, ..., None]),
    case(
        ops.expand,
        (3, 1),
        shape=(2, 1, 4),
        expect=lambda x: np.broadcast_to(x, (2, 3, 4)),
    ),
    case(ops.expand, (3, 4), shape=(1, 1), expect=lambda x: x),
    case(
        ops.broadcast_to,
        (3, 1),
        shape=(2, 3, 4),
        expect=lambda x: np.broadcast_to(x, (2, 3, 4)),
    ),
    case(ops.sum_to, (2, 3, 4), shape=(3, 1), expect=lambda x: x.sum((0, 2))[:, None]),
    case(
        listed(ops.concat),
        (2, 3),
        (2, 1),
        (2, 2),
        axis=-1,
        expect=lambda *a: np.concatenate(a, 1),
    ),
    case(listed(ops.concat), (2, 3), (1, 3), expect=lambda *a: np.concatenate(a)),
    case(listed(ops.stack), (2, 3), (2, 3), axis=1, expect=lambda *a: np.stack(a, 1)),
    case(listed(ops.stack), (2, 3), (2, 3), axis=-1, expect=lambda *a: np.stack(a, -1)),
    case(ops.split, (5, 2), sizes=(1, 4), expect=lambda x: (x[:1], x[1:])),
    case(
        ops.split,
        (2, 5),
        num=3,
        axis=-1,
        expect=lambda x: (x[:, :2], x[:, 2:4], x[:, 4:]),
    ),
    case(ops.tile, (2, 3), repeats=(2,), expect=lambda x: np.tile(x, 2)),
    case(ops.tile, (3,), repeats=(4, 1, 2), expect=lambda x: np.tile(x, (4, 1, 2))),
    case(ops.tile, (2, 3), repeats=(3, 2), expect=lambda x: np.tile(x, (3, 2))),
    case(ops.flip, (2, 3), expect=np.flip),
    case(ops.flip, (2, 3), axis=-1, expect=lambda x: x[:, ::-1]),
    case(ops.roll, (2, 3), shift=2, expect=lambda x: np.roll(x, 2)),
    case(
        ops.roll,
        (2, 3),
        shift=(1, -1),
        axis=(0, 1),
        expect=lambda x: np.roll(x, (1, -1), (0, 1)),
    ),
    case(ops.depth_to_space, (2, 8, 2, 3), blocksize=2, expect=depth_to_space),
    case(
        ops.space_to_depth,
        (1, 2, 4, 6),
        blocksize=2,
        expect=lambda x: np.concatenate(
            [x[..., i::2, j::2] for i in (0, 1) for j in (0, 1)], 1
        ),
    ),
    case(
        ops.pad,
        (3, 4),
        pad_width=((1, 0), (0, 2)),
        constant_values=1.5,
        expect=lambda x: np.pad(x, ((1, 0), (0, 2)), constant_values=1.5),
    ),
    case(
        ops.pad,
        (3, 4),
        pad_width=[(2, 1)],
        axes=[-1],
        expect=lambda x: np.pad(x, ((0, 0), (2, 1))),
    ),
    case(
        ops.pad,
        (3, 4),
        pad_width=((-1, 1), (1, -2)),
        expect=lambda x: np.pad(x[1:, :2], ((0, 1), (1, 0))),
    ),
    case(ops.pad, (3, 4), pad_width=((-2, -1), (0, 0)), expect=lambda x: x[:0]),
    padded("reflect", ((1, 2), (2, 0))),
    padded("edge", ((1, 2), (2, 0))),
    padded("wrap", ((1, 2), (2, 0))),
    case(
        ops.pad,
        (3, 4),
        pad_width=((0, 0), (-1, 2)),
        mode="edge",
        expect=lambda x: np.pad(x, ((0, 0), (0, 2)), "edge")[:, 1:],
    ),
    case(ops.trilu, (2, 3, 4), k=1, expect=lambda x: np.triu(x, 1)),
    case(ops.triu, (3, 4), expect=np.triu),
    case(ops.tril, (3, 4), k=-1, expect=lambda x: np.tril(x, -1)),
    case(ops.cast, (3, 4), dtype="float64", expect=lambda x: x.astype(float)),
    case(
        ops.cast, (3, 4), dtype="int32", expect=lambda x: x.astype("int32"), grad=False
    ),
    case(
        ops.constant_of_shape,
        np.array([2, 3]),
        value=np.array([7]),
        expect=lambda s: np.full((2, 3), 7),
    ),
    case(
        ops.constant_of_shape,
        np.array([2, 3]),
        expect=lambda s: np.zeros((2, 3), "float32"),
    ),
    case(ops.range_, np.array(2), np.array(11), np.array(3), expect=np.arange),
    case(
        ops.range_,
        np.array(1.0),
        np.array(0.0),
        np.array(-0.25),
        grad=False,
        expect=lambda a, b, c: np.arange(a, b, c, a.dtype),
    ),
    case(
        ops.eye_like,
        (3, 4),
        k=1,
        dtype="int32",
        expect=lambda x: np.eye(3, 4, 1, "int32"),
        grad=False,
    ),
    case(
        ops.one_hot,
        np.array([0, -1, 5]),
        3,
        expect=lambda i, n: np.array([[1, 0, 0], [0, 0, 1], [0, 0, 0]]),
    ),
    case(ops.one_hot, np.array([2, 0]), expect=lambda i: np.eye(3, dtype="i8")[i]),
    case(
        ops.one_hot_of,
        np.array([[0, 1]]),
        np.array([3]),
        np.array([2, 5]),
        axis=1,
        expect=lambda *_: np.array([[[5, 2], [2, 5], [2, 2]]]),
    ),
    case(
        ops.one_hot_of,
        np.array([1, 0, -1, 5]),
        3,
        (2,),
        expect=lambda i, n, v: v[np.eye(n, dtype=int)[[1, 0, 2, 0]] * (i < 5)[:, None]],
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_operator(case):
    case.check()


def test_column_row_depth_order():
    x = np.arange(8.0).reshape(1, 8, 1, 1)
    got = ops.depth_to_space(x, blocksize=2, mode="CRD")
    assert got.reshape(-1).tolist() == [0, 1, 2, 3, 4, 5, 6, 7]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda x: ops.reshape(x, shape=(4, 2)),
            r"6 elements for x \(2, 3\), got \(4, 2\)",
        ),
        (
            lambda x: ops.concat([x, x[:, :2]]),
            r"equal in all axes but 0, got \(2, 3\), \(2, 2\)",
        ),
        (
            lambda x: ops.squeeze(x, axis=0),
            r"expected length 1 in axis 0, got \(2, 3\)",
        ),
        (lambda x: ops.pad(x, pad_width=((-2, -1), (0, 0))), "take at most 2"),
        (
            lambda x: ops.pad(x, pad_width=(1, 2, 3)),
            r"a pair .* 2 axes, got \(1, 2, 3\)",
        ),
        (lambda x: ops.pad(x, pad_width=((1, 1),) * 3), "a pair .* each of 2 axes"),
        (
            lambda x: ops.pad(x, pad_width=((1, 1),) * 2, mode="circular"),
            "expected mode among .*'wrap'.*, got 'circular'",
        ),
        (
            lambda x: ops.pad(x[:0], pad_width=((1, 1), (0, 0)), mode="edge"),
            "expected elements along axis 0",
        ),
        (lambda x: ops.unsqueeze(x, axis=(0, 0)), "expected different axes"),
        (lambda x: ops.flip(x, axis=1.5), "expected an integer or a tuple"),
        (lambda x: ops.split(x, sizes=(1, 2)), "add up to 2"),
    ],
)
def test_mistakes_are_explained(call, words):
    with pytest.raises(InputError, match=words):
        call(np.zeros((2, 3)))


@pytest.mark.parametrize(
    ("order", "wanted"),
    [((0, 1), (0, 1, 2, 3)), ((1, 0), (2, 3, 0, 1)), ((0, 0), (2, 4, 0, 0))],
    ids=str,
)
def test_a_split_s_gradient_has_its_parts_where_they_belong(order, wanted):
    x = Tensor(np.ones((3, 4, 2)), device="cpu:autodiff").require_grad()
    parts = ops.split(x, sizes=(2, 2), axis=1)
    y = ops.concat([parts[i] for i in order], axis=1)
    g = np.broadcast_to(np.arange(4.0)[:, None], (3, 4, 2)).copy()
    found = x.grad(y.backward(Tensor(g))).numpy()
    np.testing.assert_array_equal(
        found, np.broadcast_to(wanted, (3, 2, 4)).swapaxes(1, 2)
    )
