"""Methods of Tensor, the dtypes and devices of what they give, and their messages."""

import math
import operator

import numpy as np
import pytest

import burnish
from burnish import Device, Tensor, nn, ops
from burnish.errors import DeviceError, InputError
from tests.harness.operators import gpu_missing
from tests.runtime.test_tensor import same

# --- methods ---


def test_arithmetic():
    a, b = np.array([7.0, -7.0, 3.0]), np.array([2.0, 2.0, -1.5])
    x, y = Tensor(a), Tensor(b)
    for op in (operator.sub, operator.truediv, operator.floordiv, operator.mod):
        same(op(x, y), op(a, b))
        same(op(a, y), op(a, b))
        same(op(2, y), op(2, b))
    same(x**2, a**2)
    same(2**y, 2**b)
    same(-x, -a)
    same(abs(x), abs(a))
    same(round(x / 2), np.rint(a / 2))
    same(math.floor(y), np.floor(b))
    same(math.ceil(y), np.ceil(b))
    same(x @ y, a @ b)
    same(a @ y, a @ b)


def test_bits_and_logic():
    a, b = np.array([12, 10]), np.array([10, 3])
    x, y = Tensor(a), Tensor(b)
    for op in (
        operator.and_,
        operator.or_,
        operator.xor,
        operator.lshift,
        operator.rshift,
    ):
        same(op(x, y), op(a, b))
        same(op(6, y), op(6, b))
    same(~x, ~a)
    same(~(x > 11) | (y == 3), [False, True])


def test_shapes():
    a = np.arange(24.0).reshape(2, 3, 4)
    x = Tensor(a)
    same(x.reshape(6, -1), a.reshape(6, 4))
    same(x.reshape((4, 6)), a.reshape(4, 6))
    same(x.transpose(1, 0, 2), a.transpose(1, 0, 2))
    same(x.permute((2, 0, 1)), a.transpose(2, 0, 1))
    same(x.transpose(), a.T)
    same(x.T, a.T)
    same(x.mT, a.mT)
    same(x.swapaxes(0, 1), a.swapaxes(0, 1))
    same(x.flatten(), a.reshape(-1))
    same(x.flatten(1), a.reshape(2, 12))
    same(x.flatten(0, 1), a.reshape(6, 4))
    same(Tensor(1.0).flatten(), np.float32([1.0]))
    same(x.unsqueeze(0, -1).squeeze(), a)
    same(x[:, :1].squeeze(1), a[:, 0])
    same(x[:, :1].expand(5, 2, 3, 4), np.broadcast_to(a[:, :1], (5, 2, 3, 4)))
    same(x.tile(1, 2, 1), np.tile(a, (1, 2, 1)))
    same(x.flip(0), a[::-1])
    same(x.flip(), np.flip(a))
    same(x.roll(1, 0), np.roll(a, 1, 0))
    same(x.pad(pad_width=((0, 0), (1, 0), (0, 0))), np.pad(a, ((0, 0), (1, 0), (0, 0))))
    assert [part.shape for part in x.split(3, axis=2)] == [(2, 3, 3), (2, 3, 1)]
    assert [part.shape for part in x.split((1, 3), axis=-1)] == [(2, 3, 1), (2, 3, 3)]
    assert [part.shape for part in x.chunk(2, axis=1)] == [(2, 2, 4), (2, 1, 4)]


def test_elements():
    a = np.array([[3.0, 1.0], [2.0, 5.0]])
    x = Tensor(a)
    same(x.set_item((0, Tensor(1)), 9), [[3, 9.0], [2, 5]])
    same(x, a)
    same(x.take(Tensor([1, 0]), 0), a[[1, 0]])
    same(x.take_along_axis(np.array([[1], [0]]), axis=1), [[1.0], [2.0]])
    same(x.top_k(1)[1], [[0], [1]])
    same(x.triu(), np.triu(a))
    same(x.narrow(1, 1, 1), a[:, 1:])
    same(x.masked_fill(a > 2, 0.0), np.where(a > 2, 0, a))
    same(x.sort(axis=0), np.sort(a, 0))
    same(x.argsort(descending=True), [[0, 1], [1, 0]])
    same((x > 2).argwhere(), [[0, 0], [1, 1]])
    same(Tensor([1, 0]).one_hot(2), np.array([[0, 1], [1, 0]]))
    assert x.all_close(a + 1e-9)
    assert not x.contains_nan()
    assert [row.tolist() for row in x] == a.tolist()
    assert len(x) == 2
    with pytest.raises(TypeError):
        iter(Tensor(1.0))


def test_reductions():
    a = np.arange(6.0).reshape(2, 3) + 1
    x = Tensor(a)
    for name in ("sum", "mean", "max", "min", "prod", "var", "std", "any", "all"):
        same(getattr(x, name)(), getattr(a, name)())
        same(
            getattr(x, name)(axis=1, keepdims=True), getattr(a, name)(1, keepdims=True)
        )
        same(getattr(x, name)((0, 1)), getattr(a, name)((0, 1)))
    same(x.var(axis=0, correction=1), a.var(0, ddof=1))
    same(x.argmax(), a.argmax())
    same(x.argmin(axis=0), a.argmin(0))
    same(x.cumsum(1), a.cumsum(1))
    same(x.cumprod(0), a.cumprod(0))
    np.testing.assert_allclose(x.softmax(axis=1).sum(axis=1).numpy(), [1, 1])
    np.testing.assert_allclose(x.norm().item(), np.linalg.norm(a))


def test_python_numbers():
    assert bool(Tensor(1.0))
    assert not bool(Tensor([0]))
    assert int(Tensor(3)) == 3
    assert float(Tensor(2.5)) == 2.5
    assert [10, 20, 30][Tensor(2)] == 30
    with pytest.raises(ValueError, match="ambiguous"):
        bool(Tensor([1, 2]))
    with pytest.raises(TypeError):
        operator.index(Tensor(2.5))


def test_tensors_hash_by_identity():
    x, y = Tensor([1.0]), Tensor([1.0])
    assert len({x, y, x}) == 2


def test_dtypes_and_copies():
    x = Tensor([1.5, 2.5], dtype="float64")
    assert x.dtype == np.float64
    same(x.to("float32"), np.float32([1.5, 2.5]))
    same(x.astype(np.int64), [1, 2])
    assert x.astype("float64").data is x.data
    assert not np.shares_memory(x.clone().data, x.data)
    leaf = x.require_grad()
    assert leaf.grad((leaf.to("float32") * 2).sum().backward()).dtype == np.float64
    assert leaf.grad(leaf.clone().sum().backward()).tolist() == [1, 1]


def test_creation():
    same(Tensor.zeros(2, 3), np.zeros((2, 3), np.float32))
    same(Tensor.ones((2,), dtype="int64"), np.ones(2, np.int64))
    same(Tensor.full((), 7.0), np.float32(7))
    same(Tensor.arange(3), np.arange(3))
    same(Tensor.arange(1, 2, 0.25), np.arange(1, 2, 0.25, np.float32))
    same(Tensor.linspace(0, 1, 3), np.float32([0, 0.5, 1]))
    same(Tensor.eye(2, 3), np.eye(2, 3, dtype=np.float32))
    same(Tensor([1, 2]).zeros_like(), [0, 0])
    same(Tensor([1.0, 2.0]).full_like(3), np.float32([3, 3]))
    same(Tensor([1.0, 2]), np.float32([1, 2]))
    same(Tensor([[1, 2]]), np.int64([[1, 2]]))
    same(Tensor([True]), [True])
    same(Tensor(1j), np.complex64(1j))
    same(Tensor(np.float64(2)), np.float64(2))
    same(Tensor([np.float64(2)]), [2.0])
    burnish.seed(3)
    first = Tensor.rand(4), Tensor.randn(2, 2, dtype="float64")
    burnish.seed(3)
    same(Tensor.rand(4), first[0].numpy())
    same(Tensor.randn((2, 2), dtype="float64"), first[1].numpy())
    assert str(Tensor.zeros(1, device="cpu:autodiff").device) == "cpu:autodiff"


def test_default_dtypes_of_a_device():
    cpu = Device("cpu")
    cpu.configure(float_dtype="float64", int_dtype="int32")
    try:
        for made in (
            Tensor.zeros(1),
            Tensor.rand(1),
            Tensor.eye(2),
            Tensor.arange(0.5),
            Tensor([0.5]),
        ):
            assert made.dtype == np.float64
        assert Tensor.arange(3, device="cpu:autodiff").dtype == np.int32
        assert Tensor.ones(1, dtype="float16").dtype == np.float16
    finally:
        cpu.configure(float_dtype="float32", int_dtype="int64")
    assert Tensor.empty(2, 3).dtype == np.float32
    for wrong in ({"float_dtype": "int32"}, {"int_dtype": float}, {"int_dtype": "no"}):
        with pytest.raises(DeviceError, match="device cpu: expected a"):
            cpu.configure(**wrong)


def test_dtypes_that_devices_support():
    cuda, bfloat16 = Device("cuda"), pytest.importorskip("ml_dtypes").bfloat16
    for dtype in ("float16", "float32", bfloat16, "int8", "bool", "complex64"):
        assert cuda.supports_dtype(dtype)
    for dtype in ("longdouble", "datetime64[s]", "U3", "none"):
        assert not cuda.supports_dtype(dtype)


def test_inplace_changes_one_object_alone():
    x = Tensor([1.0, 2.0]).require_grad()
    y = x * 2
    other, seen = y.detach(), y
    assert y.inplace(lambda y: y[:1] ** 2) is seen
    assert seen.tolist() == [4]
    assert other.tolist() == [2, 4]
    assert x.grad(seen.backward()).tolist() == [8, 0]
    before = seen
    seen += 1
    assert (before.tolist(), seen.tolist()) == ([4], [5])
    with pytest.raises(InputError, match="got a Param; give it values with assign"):
        nn.Param(np.ones(2)).inplace(lambda p: p + 1)
    with pytest.raises(InputError, match="a function that gives a tensor, got a int"):
        x.inplace(lambda x: 3)
    with pytest.raises(TypeError, match=r"x = x.set_item\(index, values\)"):
        x[0] = 1


def test_conversions():
    x = Tensor([1.7, -2.2, 0.0])
    same(x.float(), np.float32([1.7, -2.2, 0]))
    same(x.half(), np.float16([1.7, -2.2, 0]))
    same(x.float().double(), np.float32([1.7, -2.2, 0]).astype(float))
    same(x.long(), np.array([1, -2, 0]))
    same(x.int(), np.int32([1, -2, 0]))
    same(x.bool(), [True, True, False])


def test_gradients_flow_through_methods():
    x = Tensor(np.array([[1.0, 2.0], [3.0, 4.0]])).require_grad()
    loss = (x.T @ x).softmax().log().mean() + x[0].exp().sum() / x.max()
    assert x.grad(loss.backward()).shape == (2, 2)


@pytest.mark.skipif(gpu_missing() is not None, reason=str(gpu_missing()))
def test_gradients_come_back_from_another_device():
    x = Tensor([1.0, 2.0]).require_grad()
    y = x.to("cuda") * Tensor([3.0, 4.0], device="cuda")
    gradients = (y * y).sum().backward(create_graph=True)
    got = x.grad(gradients)
    assert str(got.device) == "cpu:autodiff"
    assert got.tolist() == [18, 64]
    again = x.grad(got.sum().backward())
    assert again.tolist() == [18, 32]


def test_a_scalar_is_a_vector_of_one_without_its_axis():
    x = Tensor(2.5).require_grad()
    for each in (x.sort(0), x.cumsum(-1), x.flip(0), x.squeeze(0), x.top_k(1)[0]):
        assert (each.shape, each.item()) == ((), 2.5)
        assert x.grad(each.backward()).item() == 1
    assert x.gather_elements(Tensor(0)).item() == 2.5
    assert x.scatter_elements(Tensor(0), Tensor(7.0)).item() == 7
    assert x.unfold(0, 1, 1).shape == (1,)
    assert x.argwhere().shape == (1, 0)
    with pytest.raises(InputError, match="axis: expected -1 to 0"):
        x.sort(1)


def test_dtypes_stay():
    flags = Tensor([True, False])
    assert flags.sign().tolist() == [True, False]
    assert flags.masked_fill(flags, 0).tolist() == [False, False]
    assert Tensor([1, 2]).masked_fill(flags, 9.0).dtype == "int64"


@pytest.mark.parametrize(
    ("call", "what"),
    [
        (lambda x: x.reshape(4), "reshape: expected a shape of 6 elements"),
        (lambda x: x.expand(3, 3), r"expand: .* x \(2, 3\) .* got \(3, 3\)"),
        (lambda x: x.expand(-1, 2, 3), r"expand: .* got \(-1, 2, 3\)"),
        (lambda x: x[0].mT, "axis: expected -1 to 0 for 1 axes, got -2"),
        (lambda x: x.chunk(0), "chunk: expected one part or more, got 0"),
        (lambda x: x.chunk("x"), "chunk: expected an integer as the number, got 'x'"),
        (lambda x: x.split(2.5), "split: expected an integer as the size, got 2.5"),
        (lambda x: x.narrow(0, "x", 1), "narrow: expected an integer as start"),
        (lambda x: x.reshape("x"), r"shape: expected integers, .* got \('x',\)"),
        (lambda x: x.sum("x"), "axis: expected an integer or a tuple of them, got 'x'"),
        (lambda x: x[5], r"getitem: got \(2, 3\): index 5 is out of bounds"),
        (lambda x: x["x"], r"getitem: got \(2, 3\): only integers"),
        (lambda x: x + "x", r"add: got \(2, 3\) float32, str"),
        (lambda x: x @ 2.5, r"matmul: got \(2, 3\), 2.5"),
        (lambda x: x.dot(5), r"dot: got \(2, 3\), 5"),
        (lambda x: x.item(), r"item: expected one element, got shape \(2, 3\)"),
        (lambda x: bool(x), r"truth of shape \(2, 3\) is ambiguous, .* any\(\)"),
        (lambda x: x.top_k(-1), "top_k: expected k up to 3"),
        (lambda x: x.to("gpu"), "to: expected a device .* or a dtype .* got 'gpu'"),
        (lambda x: x.grad(None), "grad: expected what backward.* got a NoneType"),
        (lambda x: x.quantize(x), "quantize: expected a .*QuantScheme"),
        (lambda x: Tensor.zeros(-1), "full: negative dimensions .* got"),
        (lambda x: Tensor.eye(2.5), "eye: .* got 2.5"),
        (lambda x: Tensor.arange("x"), "arange: .* got 'x'"),
        (lambda x: Tensor.random(3, 0.5), "random: expected one of .* got 0.5"),
        (lambda x: x.split(0), "split: expected a size of 1 or more, got 0"),
        (
            lambda x: x.narrow(1, 2, 2),
            "narrow: expected slices from 0 to 3 .* 2 from 2",
        ),
        (lambda x: x.narrow(5, 0, 1), "axis: expected -2 to 1 for 2 axes, got 5"),
        (lambda x: x.unbind(2), "axis: expected -2 to 1 for 2 axes, got 2"),
        (lambda x: x.median(2), "axis: expected -2 to 1 for 2 axes, got 2"),
        (lambda x: x.unfold(2, 1, 1), "axis: expected -2 to 1 for 2 axes, got 2"),
        (lambda x: x.moveaxis((0, 1), 0), r"moveaxis: .* got \(0, 1\) and 0"),
        (lambda x: x[0].moveaxis(0, 3), "axis: expected -1 to 0 for 1 axes, got 3"),
        (
            lambda x: ops.concat(x.sum(), axis=0),
            r"concat: .* as concat\(\[x, y\], axis=0\)",
        ),
        (lambda x: ops.concat([]), "concat: expected at least one array, got none"),
        (lambda x: ops.stack(1), r"stack: .* as stack\(\[x, y\], axis=0\), got 1"),
        (lambda x: ops.qr(x[0]), r"qr: expected matrices, got \(3,\)"),
        (lambda x: x.take(x[0], axis=1), "take: .*float32.*int64"),
        (
            lambda x: x.gather_elements(Tensor([[4]]), axis=1),
            r"indices: expected -3 to 2 for axis 1 of x \(2, 3\), got 4 to 4",
        ),
        (
            lambda x: x.gather_elements(Tensor([0, 1]), axis=1),
            r"indices: expected as many axes as x \(2, 3\) has, got \(2,\)",
        ),
        (
            lambda x: x.take_along_axis(Tensor([[-4]]), axis=1),
            r"indices: expected -3 to 2 for axis 1",
        ),
        (
            lambda x: x.scatter_elements(Tensor([[3]]), x, axis=1),
            r"indices: expected -3 to 2 for axis 1",
        ),
        (
            lambda x: x.scatter_slices(Tensor([2]), x[:1]),
            r"indices: expected -2 to 1 for axis 0",
        ),
        (
            lambda x: x.scatter_slices(Tensor([1]), x[:1], reduction="sum"),
            "scatter: expected reduction 'none', 'add', .* got 'sum'",
        ),
    ],
)
def test_mistaken_arguments_are_explained(call, what):
    with pytest.raises(InputError, match=what):
        call(Tensor.zeros(2, 3))


@pytest.mark.parametrize("index", [9, np.array([9]), Tensor([9])], ids=repr)
def test_an_index_beyond_what_there_is(index):
    with pytest.raises(IndexError, match="index 9 is out of bounds"):
        Tensor([1.0, 2.0])[index]
