"""burnish.compile on a GPU: graphs against the plain call, and beside other work."""

import copy
import warnings

import numpy as np
import pytest

import burnish
from burnish import Tensor, nn, ops, seed
from burnish._engine.pytree import leaves
from burnish.models.mnist.mnist import Model
from tests.harness.waiting import waits
from tests.runtime.capture.test_layers import ROWS
from tests.runtime.gpu.test_operators import CASES, reads

APART = {
    "<lambda>": "cuSOLVER",
    "det": "cuSOLVER",
    "einsum": "products of CuPy",
    "getitem": "tables of the host",
    "gru": "products of CuPy",
    "inverse": "cuSOLVER",
    "istft": "products of CuPy",
    "label_encoder": "tables of the host",
    "linear": "a product of vectors",
    "low_rank_add": "products of CuPy",
    "lstm": "products of CuPy",
    "matmul": "a product of vectors",
    "qr": "cuSOLVER",
    "rnn": "products of CuPy",
    "solve": "cuSOLVER",
}
"""Operators that no graph has in some of their forms, and why."""

RANDOM = np.random.default_rng(0)


def tensor(*shape):
    return Tensor(RANDOM.standard_normal(shape).astype(np.float32)).to("cuda")


def same(ours, wanted, tolerance=1e-5):
    for one, other in zip(leaves(ours), leaves(wanted), strict=True):
        if not isinstance(other, Tensor):
            assert one == other
            continue
        assert (one.device, one.dtype, one.shape) == (
            other.device,
            other.dtype,
            other.shape,
        )
        a, b = one.numpy(), other.numpy()
        if b.dtype.kind != "f":
            np.testing.assert_array_equal(a, b)
            continue
        finite = np.isfinite(b)
        np.testing.assert_array_equal(a[~finite], b[~finite])
        scale = np.abs(b[finite]).max(initial=1e-30)
        np.testing.assert_allclose(a[finite], b[finite], rtol=0, atol=tolerance * scale)


def check(function, *args):
    """A compiled function gives the plain one's numbers, three times."""
    fast = burnish.compile(function)
    wanted = function(*args)
    for _ in range(3):
        same(fast(*args), wanted)
    assert "planning failed" not in fast.explain(), fast.explain()
    return fast


def plans(fast):
    return [plan for plan in fast._plans.values() if hasattr(plan, "stretches")]


def is_one_graph(fast):
    """Whether everything is in one graph."""
    (plan,) = plans(fast)
    return len(plan.stretches) == 1 and not plan.eager


class Net(nn.Module):
    def __init__(self):
        self.conv = nn.Conv2d(3, 20, 3, padding=1)
        self.norm = nn.BatchNorm2d(20)
        self.fc1 = nn.Linear(20, 33)
        self.fc2 = nn.Linear(33, 5)

    def forward(self, x):
        x = ops.relu(self.norm(self.conv(x))).mean(axis=(2, 3))
        return self.fc2(ops.gelu(self.fc1(x)))


def encoder():
    return nn.TransformerEncoder(nn.TransformerEncoderLayer(64, 4, 128), 3).to("cuda")


def test_operators():
    """Every row of the tables has the plain numbers; what need not be apart is not."""
    count, split, failed, apart_in_fact = 0, [], [], set()
    for case in CASES:
        arrays = case.arrays(np.dtype(case.dtypes[0]))
        if any(getattr(a, "dtype", np.dtype(int)).kind == "O" for a in arrays):
            continue
        args = [
            Tensor(a).to("cuda") if isinstance(a, np.ndarray) else a for a in arrays
        ]
        if not any(isinstance(a, Tensor) for a in args):
            continue

        def function(*args, case=case):
            return case.op(*args, **case.options)

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                fast = check(function, *args)
            except Exception as error:
                failed.append(f"{case}: {type(error).__name__} {error}"[:300])
                continue
        count += 1
        apart = any(plan.eager for plan in plans(fast)) or not plans(fast)
        if apart and case.op.__name__ in APART:
            apart_in_fact.add(case.op.__name__)
        if apart and not reads(case) and case.op.__name__ not in APART:
            split.append(f"{case}: {fast.explain()}"[:300])
    assert not failed, "\n".join(failed)
    assert not split, "\n".join(split)
    assert count > 400
    assert apart_in_fact == set(APART), sorted(set(APART) - apart_in_fact)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: type(row[0]).__name__)
def test_layers(row):
    layer, arrays, call = row
    layer = layer.fork("cuda")
    options = {
        k: Tensor(v).to("cuda") if isinstance(v, np.ndarray) else v
        for k, v in call.items()
    }
    given = [Tensor(array).to("cuda") for array in arrays]
    check(lambda *args: layer(*args, **options), *given)


@pytest.mark.parametrize("batch", [1, 3])
def test_models(batch):
    assert is_one_graph(check(Net().to("cuda"), tensor(batch, 3, 9, 11)))
    assert is_one_graph(check(encoder(), tensor(7, batch, 64)))
    images = Tensor(RANDOM.random((batch, 28, 28), np.float32)).to("cuda")
    assert is_one_graph(check(Model.from_file().to("cuda"), images))


def test_a_function_with_results_of_all_kinds():
    weight = tensor(4, 7)

    @burnish.compile
    def scores(x, *, factor=2.0):
        y = ops.tanh(x @ weight.T) * factor
        return {"y": [y, x, y.T, x[1:], weight, weight * 2, 5]}

    x = tensor(3, 7)
    for factor in (2.0, 3.0):
        y = ops.tanh(x @ weight.T) * factor
        wanted = {"y": [y, x, y.T, x[1:], weight, weight * 2, 5]}
        same(scores(x, factor=factor), wanted)
    strided = Tensor.wrap(tensor(6, 14).data[::2, ::-2], x.device)
    same(scores(strided)["y"][0], ops.tanh(strided @ weight.T) * 2)


def test_tf32_rounds_what_products_multiply():
    model, x = encoder(), tensor(30, 2, 64)
    wanted = model(x)
    fast = burnish.compile(model, precision="tf32")
    same(fast(x), wanted, 5e-3)
    assert abs(fast(x).numpy() - wanted.numpy()).max() > 1e-5
    assert "tf32" in fast.plan(x)
    same(burnish.compile(model)(x), wanted)
    same(model(x), wanted, 1e-7)


class Heads(nn.Module):
    def __init__(self):
        self.query, self.key = nn.Linear(64, 64), nn.Linear(64, 64)
        self.value, self.gate = nn.Linear(64, 96), nn.Linear(64, 96, bias=False)

    def forward(self, x):
        y = ops.softmax(self.query(x) @ self.key(x).mT)
        return y @ self.value(x) * self.gate(x), self.value(x)


def test_products_of_one_value_are_one():
    model = Heads().to("cuda")
    for rows in (5, 600):
        fast = check(model, tensor(2, rows, 64))
        assert ("linear + linear + linear" in fast.plan(tensor(2, rows, 64))) is (
            rows == 5
        )
    x = tensor(2, 5, 64)
    model.key.weight.assign(model.key.weight.data * 2)
    same(fast(x), model(x))
    fast(x)
    model.value.bias.assign(model.value.bias.data + 1)
    same(fast(x), model(x))


@pytest.mark.parametrize("kind", ["none", "allowed", "added"])
@pytest.mark.parametrize(("size", "launches"), [(16, 2), (8, 3)])
def test_attention_is_one_launch_or_three(kind, size, launches):
    q, k, v = tensor(1, 4, 9, size), tensor(1, 4, 7, size), tensor(1, 4, 7, size)
    scores = tensor(1, 1, 9, 7)
    mask = {"none": None, "allowed": scores > 0, "added": scores}[kind]
    fast = check(lambda *x: ops.scaled_dot_product_attention(*x), q, k, v, mask)
    assert is_one_graph(fast)  # a result with heads side by side is copied, too
    assert f"1 CUDA graphs, {launches} launches" in fast.explain()


def test_results_are_kept_apart():
    model = Net().to("cuda")
    fast = burnish.compile(model)
    inputs = [tensor(2, 3, 5, 5) for _ in range(5)]
    found = [fast(x) for x in inputs]
    for x, y in zip(inputs, found, strict=True):
        same(y, model(x))


def test_parameters_that_change_are_taken_up():
    model, x = Net().to("cuda"), tensor(2, 3, 5, 5)
    fast = burnish.compile(model)
    before = fast(x).numpy()
    model.fc1.weight.assign(model.fc1.weight.data * 2)
    model.norm.running_var.assign(model.norm.running_var.data * 3)
    same(fast(x), model(x))
    assert abs(fast(x).numpy() - before).max() > 1e-4
    model.fc2 = nn.Linear(33, 7).to("cuda")
    same(fast(x), model(x))
    assert fast(x).shape == (2, 7)


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_adapters(precision):
    model, x = encoder().apply_lora(4), tensor(7, 2, 64)
    fast = burnish.compile(model, precision=precision)
    most = {"fp32": 1e-5, "fp16": 5e-3}[precision]
    for _ in range(2):
        same(fast(x), model(x), most)
    for param in model.parameters():
        param.assign(param.data * 1.25 + 0.01)
    same(fast(x), model(x), most)
    assert "planning failed" not in fast.explain()


def test_gradients_are_recorded_by_the_plain_call():
    model = Net().to("cuda:autodiff")
    fast = burnish.compile(model)
    gradients = fast(tensor(2, 3, 5, 5).to("cuda:autodiff")).sum().backward()
    assert model.fc1.weight.grad(gradients) is not None
    assert "call backward() in it" in fast.explain()


def test_a_branch_on_values_runs_as_it_is():
    def function(x):
        return ops.relu(x) if float(x.sum().numpy()) > 0 else x * 2

    fast = burnish.compile(function)
    for x in (tensor(5), -tensor(5), tensor(5)):
        same(fast(x), function(x))
    assert "a look at the values" in fast.explain()


def test_what_waits_runs_between_graphs():
    def function(x):
        y = ops.relu(x) + 1
        return ops.exp(ops.sort(y, axis=-1)[..., ::-1] - ops.inverse(x @ x.T + 9)) * y

    x = tensor(6, 6)
    fast = check(function, x)
    assert "inverse" in fast.explain()
    assert len(plans(fast)[0].stretches) > 2
    other = tensor(6, 6)
    same(fast(other), function(other), 1e-4)


def test_a_shape_that_depends_on_values():
    def function(x):
        return ops.exp(ops.non_zero(x > 0) + 1.0)

    fast = burnish.compile(function)
    for _ in range(3):
        x = tensor(50)
        same(fast(x), function(x))


def test_draws_are_those_of_the_plain_call():
    def function(x):
        return ops.dropout(x * 1, p=0.5) * 2

    fast, x = burnish.compile(function), tensor(100)
    fast(x)
    seed(1)
    found = [fast(x), fast(x)]
    seed(1)
    same(found, [function(x), function(x)])
    assert (found[0].numpy() != found[1].numpy()).any()


def test_memory_does_not_grow():
    import cupy

    model, x = Net().to("cuda"), tensor(2, 3, 8, 8)
    fast = burnish.compile(model)
    wanted = model(x)
    for _ in range(2):
        y = fast(x)  # while there is another result, as below
    pool = cupy.get_default_memory_pool()
    whole, used, own = pool.total_bytes(), pool.used_bytes(), plans(fast)[0].nbytes
    for _ in range(10_000):
        y = fast(x)
    same(y, wanted)
    del y
    assert pool.used_bytes() <= used
    assert (pool.total_bytes(), plans(fast)[0].nbytes) == (whole, own)


def test_a_plan_is_made_with_what_eager_calls_have_let_go_of():
    import cupy

    pool, size = cupy.get_default_memory_pool(), 1 << 28
    fast, x = burnish.compile(ops.relu), tensor(4, 4)
    held = cupy.empty(size, "uint8")
    del held
    assert pool.free_bytes() >= size
    fast(x)
    assert pool.free_bytes() < size


def test_plans_that_go_give_their_memory_back():
    import cupy

    fast = burnish.compile(encoder())
    sizes = []
    for _ in range(3):
        for length in range(1, 40):
            fast(tensor(length, 2, 64))
        sizes.append(plans(fast)[0].nbytes)
    assert len(plans(fast)) == 32
    assert sizes[2] == sizes[1]
    cupy.cuda.runtime.deviceSynchronize()


def test_plans_and_eager_work_in_turn_on_streams():
    import cupy

    first, second = Net().to("cuda"), encoder()
    one, other = burnish.compile(first), burnish.compile(second)
    images = [tensor(n, 3, 32, 32) for n in (1, 4, 2, 1, 4, 2)]
    words = [tensor(n, 3, 64) for n in (9, 5, 64, 9, 5, 64)]
    wanted = [(first(x), second(z)) for x, z in zip(images, words, strict=True)]
    cupy.cuda.runtime.deviceSynchronize()
    streams = [cupy.cuda.Stream(non_blocking=True) for _ in range(3)]
    streams.append(cupy.cuda.Stream.null)
    for turn in range(40):
        found = []
        for i, (x, z) in enumerate(zip(images, words, strict=True)):
            with streams[(turn + i) % 4]:
                y = one(x * 1)
                found.append((y + 0, other(z * 1), second(z)))
        cupy.cuda.runtime.deviceSynchronize()
        for (y, w, plain), (y2, w2) in zip(found, wanted, strict=True):
            same((y, w, plain), (y2, w2, w2))


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore:ExternalStream is deprecated")
def test_plans_beside_pytorch_on_its_streams():
    import cupy

    torch = pytest.importorskip("torch")
    model, x = Net().to("cuda"), tensor(4, 3, 32, 32)
    fast, wanted = burnish.compile(model), model(x)
    streams = [torch.cuda.Stream(), torch.cuda.Stream(), torch.cuda.default_stream()]
    weight = torch.randn(600, 600, device="cuda") / 30
    product = weight
    for _ in range(20):
        product = product @ weight
    torch.cuda.synchronize()
    found = []
    for turn in range(30):
        stream = streams[turn % 3]
        with torch.cuda.stream(stream), cupy.cuda.ExternalStream(stream.cuda_stream):
            theirs = weight
            for _ in range(20):
                theirs = theirs @ weight
            moved = torch.from_dlpack(x.data) + 0 * theirs[0, 0]
            y = fast(Tensor(cupy.from_dlpack(moved)).to("cuda"))
            found.append((y, theirs, torch.from_dlpack(y.data) * 1))
    torch.cuda.synchronize()
    for y, theirs, copied in found:
        same(y, wanted)
        assert torch.equal(copied, torch.from_dlpack(y.data))
        torch.testing.assert_close(theirs, product)


def test_plans_share_weights():
    import cupy

    model = nn.Sequential(nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, 4096))
    fast, size = burnish.compile(model.to("cuda")), 2 * 4096**2 * 4
    fast(tensor(1, 4096))
    fast(tensor(1, 4096))
    used = cupy.get_default_memory_pool().used_bytes
    before = used()
    for batch in (2, 3, 4, 5):
        fast(tensor(batch, 4096))
        fast(tensor(batch, 4096))
    assert len(plans(fast)) == 5
    assert used() - before < size


def test_many_threads_of_python():
    import threading

    model = Net().to("cuda")
    fast = burnish.compile(model)
    inputs = [tensor(2, 3, 16, 16) for _ in range(8)]
    wanted = [model(x).numpy() for x in inputs]
    wrong = []

    def work(place):
        for i in range(40):
            j = (place + i) % 8
            if abs(fast(inputs[j]).numpy() - wanted[j]).max() > 1e-4:
                wrong.append(j)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not wrong


def test_threads_that_plan_at_the_same_time():
    from concurrent.futures import ThreadPoolExecutor

    models = [Net().to("cuda") for _ in range(4)]
    inputs = [tensor(n, 3, 8, 8) for n in (1, 2, 3)]
    wanted = [[model(x) for x in inputs] for model in models]

    def work(model):
        fast = burnish.compile(model)
        return [fast(x) for _ in range(10) for x in inputs]

    with ThreadPoolExecutor(4) as pool:
        for found, y in zip(pool.map(work, models), wanted, strict=True):
            same(found, y * 10)


def test_a_run_does_not_wait():
    model, x = Net().to("cuda"), tensor(2, 3, 8, 8)
    fast = burnish.compile(model)
    assert not waits(lambda: fast(x))


def test_what_a_plan_says():
    fast = burnish.compile(Net().to("cuda"))
    text = fast.plan(tensor(2, 3, 8, 8))
    assert "1 CUDA graphs" in text
    assert "linear (2, 33)" in text
    assert "0 eager calls" in text


def test_a_copy_of_the_module_has_plans_of_its_own():
    model, x = Net().to("cuda"), tensor(1, 3, 4, 4)
    fast = burnish.compile(model)
    y = fast(x)
    other = copy.deepcopy(model)
    other.fc2.bias.assign(other.fc2.bias.data + 1)
    same(burnish.compile(other)(x), y + 1)
    same(fast(x), y)
