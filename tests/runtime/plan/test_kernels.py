"""Every kernel against the plain operator in double precision, on odd shapes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import burnish
from burnish import Tensor, nn, ops
from burnish._engine.pytree import mapped
from burnish.errors import InputError
from tests.harness.forest import forest
from tests.runtime.plan.checks import TRIALS, Draw, check, exact, records, same

pytestmark = pytest.mark.usefixtures("canaries")


@pytest.mark.parametrize("width", [1, 2, 3, 7, 15, 16, 17])
@pytest.mark.parametrize("rows", [1, 15, 16, 33])
def test_reductions_of_rows_of_a_few_elements(rows, width):
    d = Draw(rows)
    x = d.tensor(rows, width)
    x.data[d.number(0, rows - 1), d.number(0, width - 1)] = np.nan
    for whole in (d.tensor(rows, width), x):
        exact(lambda x: x.max(axis=-1), whole)
        exact(lambda x: x.mean(axis=-1, keepdims=True), whole)
        exact(lambda x: x.sum(axis=1), whole)


@pytest.mark.parametrize(
    "shape", [(3, 5), (17, 33), (40, 50), (2, 31, 5), (1, 18, 7, 9)]
)
def test_axes_in_any_order(shape):
    x = Draw(0).tensor(*shape)
    for axes in itertools.permutations(range(len(shape))):
        exact(lambda x, axes=axes: x.transpose(axes).reshape((-1,)) * 2, x)


@pytest.mark.parametrize("ins", [127, 128, 129, 255, 384, 385, 1000, 1537])
@pytest.mark.parametrize("outs", [5, 16, 40, 64, 200])
def test_one_row_times_a_matrix(ins, outs):
    """Both halves of a long sum, and the last product of an odd one."""
    d = Draw(ins + outs)
    weight = d.tensor(outs, ins) / ins**0.5
    exact(
        lambda x, w, b: ops.tanh(ops.linear(x, w, b)),
        d.tensor(1, ins),
        constants=(weight, d.tensor(outs)),
    )


@pytest.mark.parametrize("seed", range(TRIALS))
def test_products(seed):
    d = Draw(seed)
    ins, outs = d.number(1, 200), d.choice(1, 10, 16, 48, 64, 130, 256)
    lead = d.choice((1,), (2,), (3,), (5, 7), (64,), (2, 3, 4))
    x, bias = d.tensor(*lead, ins), d.tensor(outs)
    weight = d.tensor(outs, ins) / ins**0.5  # tanh of large sums shows their rounding
    residual = d.tensor(*lead, outs)
    if seed % 3 == 0:
        exact(lambda x, w, b: ops.swish(x @ w.T + b), x, constants=(weight, bias))
    else:
        exact(
            lambda x, r, w, b: ops.tanh(ops.linear(x, w, b) + r),
            x,
            residual,
            constants=(weight, bias),
        )


ROWS = {
    "softmax": lambda x: ops.softmax(x, axis=-1),
    "layer_norm": lambda x: ops.layer_norm(x, x.shape[-1]),
    "rms_norm": lambda x: ops.rms_norm(x, x.shape[-1], eps=1e-5),
    "mean": lambda x: x.mean(axis=-1),
    "sum of two axes": lambda x: x.sum(axis=(1, 2), keepdims=True),
    "max in the middle": lambda x: x.max(axis=1),
    "everything": lambda x: x.mean(),
}


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("width", [1, 3, 8, 17, 300])
def test_rows(name, width):
    x = Draw(width).tensor(3, 5, width)
    exact(ROWS[name], x)


@pytest.mark.parametrize("seed", range(TRIALS))
def test_attention(seed):
    d = Draw(seed)
    batch, heads = d.number(1, 3), d.number(1, 4)
    queries, keys = d.number(1, 20), d.number(1, 40)
    q = d.tensor(batch, queries, heads, size := d.number(1, 40))
    k, v = (
        d.tensor(batch, keys, heads, size),
        d.tensor(batch, keys, heads, d.number(1, 40)),
    )
    mask = d.choice(None, "bool", "float")
    given = [q, k, v]
    if mask == "bool":
        given.append(Tensor(d.random.random((batch, 1, 1, keys)) > 0.5))
    if mask == "float":
        given.append(d.tensor(queries, keys))
    is_causal = mask is None and bool(d.number(0, 1))

    def function(q, k, v, mask=None):
        q, k, v = (p.transpose((0, 2, 1, 3)) for p in (q, k, v))
        y = ops.scaled_dot_product_attention(q, k, v, mask, is_causal=is_causal)
        return y.transpose((0, 2, 1, 3)).reshape((batch, queries, -1))

    fast = exact(function, *given)
    assert records(fast) == 1


@pytest.mark.parametrize("seed", range(TRIALS))
@pytest.mark.parametrize("queries", [1, 2, 7])
def test_attention_of_heads_that_share_keys(seed, queries):
    d = Draw(seed)
    batch, groups, shared = d.number(1, 2), d.number(1, 3), d.number(1, 4)
    keys, size = d.choice(1, 15, 40, 300), d.choice(3, 16, 40, 129)
    q = d.tensor(batch, groups * shared, queries, size)
    k = d.tensor(batch, groups, keys, size)
    v = d.tensor(batch, groups, keys, d.choice(1, 17, 64, 100))
    seen = np.arange(keys) <= d.number(-1, keys)  # a row of none gives 0
    mask = np.broadcast_to(seen, (*d.choice((1, 1), (batch, 1, queries))[:3], keys))
    given = Tensor(mask & (d.random.random(mask.shape) > 0.2))

    def function(q, k, v, mask):
        return ops.scaled_dot_product_attention(q, k, v, mask)

    assert records(exact(function, q, k, v, given)) == 1


FUNCTIONS = {
    "arithmetic": lambda a, b: (a + b) * a - b / (a * a + 1),
    "functions": lambda a, b: (
        ops.exp(a) + ops.sqrt(abs(b)) * ops.erf(a) + ops.log(abs(b))
    ),
    "choices": lambda a, b: ops.where((a > b) & (a <= 1), ops.maximum(a, 0), -b),
    "truth": lambda a, b: (a > b) | (a == 0),
    "activations": lambda a, b: ops.gelu(a) + ops.swish(b) + ops.leaky_relu(a, 0.1),
    "powers": lambda a, b: abs(a) ** 1.5 + b**2 + ops.sin(a) * ops.cos(b),
    "units": lambda a, b: ops.elu(a, alpha=0.7) + ops.softplus(b * 9) + ops.mish(a),
    "units near 0": lambda a, b: ops.elu(a * 1e-6 - abs(b) * 1e-6),
    "selu": lambda a, b: ops.selu(a) * ops.celu(b, 1.5),
    "slopes": lambda a, b: ops.prelu_of(a, abs(b)),
    "whole numbers": lambda a, b: ops.floor(a) + ops.ceil(b) * ops.rint(a * 3),
    "small": lambda a, b: ops.log1p(abs(a)) * ops.expm1(b) + ops.trunc(a * 2),
    "ramps": lambda a, b: ops.hard_sigmoid(a) * ops.clip(b, -0.5, 0.25) + ops.tanh(a),
}
SHAPES = [
    ((7,), (7,)),
    ((3, 5), (5,)),
    ((2, 3, 600), (3, 1)),
    ((2, 1, 5), (3, 1)),
    ((4, 1, 3, 1, 2), (1, 5, 1, 6, 2)),
    ((), (9,)),
]


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("shapes", SHAPES)
def test_element_by_element(name, shapes):
    d = Draw(len(name))
    exact(FUNCTIONS[name], *(d.tensor(*shape) for shape in shapes))


@pytest.mark.parametrize("count", [16, 20])
@pytest.mark.parametrize("sizes", [(6, 5), (40, 40)])
def test_element_by_element_in_blocks(count, sizes):
    """Behind a convolution channels lie in blocks; gates and scales go along."""
    d = Draw(count)
    x = d.tensor(2, 3, *sizes)
    weight, other = d.tensor(count, 3, 1, 1), d.tensor(count, count, 1, 1)
    scale = d.tensor(count, 1, 1)

    def function(x, weight, other, scale):
        y = ops.conv(x, weight)
        gate = ops.sigmoid(ops.conv(y.mean(axis=(2, 3), keepdims=True), other))
        return ops.conv((y * gate + 1) * scale - y, other)

    fast = exact(function, x, constants=(weight, other, scale))
    assert "blocked to plain" in fast.plan(x).splitlines()[-1]


@pytest.mark.parametrize("count", [16, 21, 48])
@pytest.mark.parametrize(
    "shape", [(5, 6), (1, 6), (5, 1), (0, 1, 1), (0, 5, 1), (0, 5, 6)]
)
def test_parameters_along_any_axes_are_read_in_blocks(count, shape):
    """0 is the number of channels; maps of one channel are the same for all."""
    draw = Draw(count)
    conv, fixed = nn.Conv2d(7, count, 1), draw.tensor(*(n or count for n in shape))
    scale = nn.Param(fixed.data)

    def function(x):
        return conv(ops.tanh(conv(x) * scale + 2.0)[:, :7])

    x = draw.tensor(2, 7, 5, 6)
    fast = check(function, x)
    kinds = [step.kind for step in fast.planned(x).steps]
    before = kinds[: kinds.index("program")]
    assert before.count("copy") <= 1  # of the input; blocks are not brought into rows


MATRICES = [
    ((3, 5), (5, 7)),
    ((2, 3, 50, 33), (2, 3, 33, 16)),
    ((4, 1, 7, 20), (3, 20, 40)),
    ((1, 1), (1, 1)),
    ((2, 2, 2, 5, 3), (3, 100)),
    ((100, 64), (2, 64, 17)),
    ((2, 3, 1, 64), (2, 3, 64, 40)),
    ((3, 60, 20), (3, 20, 24)),
    ((3, 20, 90), (3, 90, 50)),
]


@pytest.mark.parametrize("turned", ["", "a", "b", "ab"])
@pytest.mark.parametrize("shapes", MATRICES)
def test_matrices(shapes, turned):
    d = Draw(len(shapes[0]))
    a, b = (d.tensor(*shape) for shape in shapes)
    a, b = (
        Tensor(x.data.mT.copy()) if n in turned else x for n, x in (("a", a), ("b", b))
    )

    def function(a, b):
        a, b = (x.mT if n in turned else x for n, x in (("a", a), ("b", b)))
        return ops.matmul(a, b) + 1

    fast = exact(function, a, b)
    assert "0 eager calls" in fast.plan(a, b)


def test_attention_with_a_sum_of_the_shape_of_its_scores():
    d = Draw(0)
    q, k, v = (d.tensor(1, 2, 9, 8) for _ in range(3))
    bias = d.tensor(1, 2, 9, 9)

    def function(q, k, v, bias):
        return ops.softmax(q @ k.mT * 0.3 + bias, axis=-1) @ v

    assert records(exact(function, q, k, v, bias)) == 1


CELLS = {
    "LSTM": lambda *sizes, **of: nn.LSTM(*sizes, **of, bidirectional=True),
    "LSTM of two layers": lambda *sizes, **of: nn.LSTM(*sizes, **of, num_layers=2),
    "GRU": lambda *sizes, **of: nn.GRU(*sizes, **of, bidirectional=True),
    "RNN": lambda *sizes, **of: nn.RNN(*sizes, **of),
    "RNN of relu": lambda *sizes, **of: nn.RNN(*sizes, **of, nonlinearity="relu"),
}


@pytest.mark.parametrize("examples", [1, 2, 3, 5, 8, 13, 35])
@pytest.mark.parametrize("hidden", [1, 7, 16, 33])
@pytest.mark.parametrize("name", CELLS)
def test_recurrent_layers(name, hidden, examples):
    d = Draw(hidden)
    layer = CELLS[name](d.number(1, 20), hidden)
    wide = CELLS[name](layer.input_size, hidden, dtype="float64")
    wide.load_state_dict({k: v.astype(np.float64) for k, v in arrays(layer).items()})
    x = d.tensor(d.number(1, 9), examples, layer.input_size)
    fast = check(layer, x)
    assert "0 eager calls" in fast.plan(x)
    wanted = wide(Tensor(x.data.astype(np.float64)))
    same(fast(x), mapped(wanted, lambda y: Tensor(y.data.astype(np.float32))))


def arrays(layer):
    return {name: np.asarray(value.data) for name, value in layer.state_dict().items()}


ALONG = {
    "nearest": lambda x: ops.interpolate(x, scale_factor=2),
    "bilinear": lambda x: ops.interpolate(x, size=(9, 4), mode="bilinear"),
    "bicubic": lambda x: ops.interpolate(x, size=(3, 11), mode="bicubic"),
    "rolled": lambda x: ops.roll(x, shift=(2, -3), axis=(2, 1)),
    "rolled along one axis": lambda x: ops.roll(x, shift=-1, axis=-1),
    "padded": lambda x: ops.pad(
        x, ((0, 0), (1, 2), (0, 3), (4, 0)), constant_values=1.5
    ),
    "reflected": lambda x: ops.pad(x, ((0, 0), (0, 0), (2, 1), (0, 3)), mode="reflect"),
    "taken": lambda x: ops.take(x, np.array([3, 0, -1, 3]), axis=2),
    "taken in two axes": lambda x: ops.take(x, np.array([[3, 0], [1, 1]]), axis=1),
    "cut in parts": lambda x: ops.concat(
        ops.split(x, sizes=(4, 16), axis=1)[::-1], axis=1
    ),
    "cut in blocks": lambda x: ops.split(x, sizes=(16, 4), axis=1)[1] * 2,
    "a stretch of channels": lambda x: x[:, 16:] + x[:, :4],
    "softmax of channels": lambda x: ops.softmax(x, axis=1),
    "softmax of rows": lambda x: ops.softmax(x, axis=2),
    "log softmax": lambda x: ops.log_softmax(x * 30, axis=-1),
    "group norm": lambda x: ops.group_norm(x, 5),
    "instance norm": lambda x: ops.instance_norm(x),
    "joined with parameters": lambda x: ops.concat(
        [np.ones((2, 1, 5, 6), "f"), x], axis=1
    ),
}


@pytest.mark.parametrize("in_blocks", [False, True])
@pytest.mark.parametrize("name", ALONG)
def test_along_axes(name, in_blocks):
    """Plain values, and what a convolution leaves in blocks of channels."""
    d = Draw(len(name))
    weight = d.tensor(20, 20, 1, 1)

    def function(x, weight):
        return ALONG[name](ops.conv(x, weight) if in_blocks else ops.relu(x))

    fast = exact(function, d.tensor(2, 20, 5, 6), constants=(weight,))
    assert fast.explain().count("\n") == 0, fast.explain()


@pytest.mark.parametrize("cut", [False, True])
def test_rows_by_number(cut):
    """Also from the end; a number of no row is refused as by the plain call."""
    d = Draw(6)
    weight = d.tensor(9, 5)
    ids = Tensor(d.random.integers(-9, 9, (4, 3)))

    def function(ids):
        picked = ids[1:, ::2] if cut else ids
        return ops.embedding(picked, weight) * 2

    fast = check(function, ids)
    assert "0 eager calls" in fast.plan(ids)
    for wrong in (9, -10):
        with pytest.raises(InputError, match="from 0 to 8"):
            fast(Tensor(np.full((4, 3), wrong)))
    same(fast(ids), function(ids))


@pytest.mark.parametrize("affine", [False, True])
def test_group_norms_with_parameters(affine):
    d = Draw(4)
    given = (d.tensor(6), d.tensor(6)) if affine else ()
    exact(
        lambda x, *given: ops.group_norm(x, 3, *given),
        d.tensor(2, 6, 7, 5),
        constants=given,
    )


MOVES = {
    "transposed": lambda x: x.transpose((2, 0, 1)) * 1,
    "cut": lambda x: x[:, 1:, ::2] + 1,
    "picked": lambda x: ops.exp(x[1]) + x[0, None],
    "turned round": lambda x: ops.flip(x, axis=1) * 2,
    "joined": lambda x: ops.concat([x, x * 2, x[:, :1]], axis=1),
    "joined in front": lambda x: ops.concat([x[1:], x], axis=0) + 0,
    "spread": lambda x: ops.broadcast_to(x[:, :1], shape=(5, *x.shape)) * 1,
    "one element": lambda x: x[1, 2, 3] + x[0, 0, 0] * x[2, -1],
    "backwards": lambda x: ops.flip(x[:, ::-1], axis=2)[1:, None] * 2,
    "a view of a view": lambda x: x.transpose((1, 0, 2))[1:].reshape((-1, 4)) - 1,
}


@pytest.mark.parametrize("name", MOVES)
def test_moves(name):
    exact(MOVES[name], Draw(1).tensor(3, 5, 4))


def test_blocks_of_two_axes():
    """A map whose channels are one axis for one step and another for the next."""
    d = Draw(2)
    x, weight = d.tensor(2, 3, 17, 17), d.tensor(17, 3, 1, 1)
    other = d.tensor(17, 17, 1, 1)

    def function(x, weight, other):
        y = ops.conv(x, weight)
        return ops.conv(y, other) + ops.conv(y.transpose((0, 2, 1, 3)), other)

    exact(function, x, constants=(weight, other))


@pytest.mark.parametrize("aggregate", ["sum", "average", "min", "max"])
@pytest.mark.parametrize("rows", [1, 9, 100])
@pytest.mark.parametrize("bare", [(), ("modes", "missing")])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_trees(dtype, bare, rows, aggregate):
    trees = forest(rows, trees=400, dtype=dtype) | dict.fromkeys(bare)
    held = {k: None if a is None else Tensor(a) for k, a in trees.items()}

    def voted(x):
        options = {"outputs": 3, "aggregate": aggregate}
        return ops.tree_ensemble(x, *held.values(), **options).reshape(-1, rows)

    x = np.random.default_rng(0).normal(size=(rows, 5), scale=2).astype(dtype)
    fast = check(voted, Tensor(x))
    assert records(fast) == (2 if rows == 9 else 1)


@pytest.mark.parametrize("bare", [(), ("modes",), ("missing",)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_trees_ask_special_numbers_as_eager_ones_do(dtype, bare):
    """Trees whose nodes are packed; of other depths, and of a leaf alone, too."""
    least = np.finfo(dtype).smallest_subnormal
    numbers = np.array(
        [np.nan, np.inf, -np.inf, -0.0, 0.0, least, -least, 1, -1], dtype
    )
    rng = np.random.default_rng(1)
    trees = forest(1, trees=20, dtype=dtype, modes=4)
    trees["thresholds"] = rng.choice(numbers, trees["thresholds"].shape)
    trees["no"][5::7] = -3
    trees["roots"][3] = -2
    trees |= dict.fromkeys(bare)
    held = {k: None if a is None else Tensor(a) for k, a in trees.items()}
    fast = burnish.compile(lambda x: ops.tree_ensemble(x, *held.values(), outputs=3))
    for rows in (1, 3, 4, 13, 2000):
        x = rng.choice(numbers, (rows, 5))
        wanted = ops.tree_ensemble.value(x, *trees.values(), outputs=3)
        np.testing.assert_allclose(fast(Tensor(x)).data, wanted, rtol=1e-5, atol=1e-6)
        assert fast.explain().count("eager") == 0


def test_trees_that_share_nodes_or_have_cycles_are_as_eager_ones():
    trees = forest(2)
    shared = trees | {"no": trees["yes"]}
    circle = trees | {"yes": np.zeros_like(trees["yes"]), "no": trees["yes"] * 0}
    x = np.random.default_rng(0).normal(size=(9, 5)).astype(np.float32)
    for each, wanted in ((shared, None), (circle, "lead back")):
        held = [Tensor(a) for a in each.values()]
        fast = burnish.compile(lambda x, h=held: ops.tree_ensemble(x, *h, outputs=3))
        if wanted:
            with pytest.raises(InputError, match=wanted):
                fast(Tensor(x))
            continue
        plain = ops.tree_ensemble.value(x, *each.values(), outputs=3)
        np.testing.assert_allclose(fast(Tensor(x)).data, plain, rtol=1e-5, atol=1e-6)


def test_trees_whose_features_are_not_in_the_rows_run_eagerly():
    held = [Tensor(a) for a in forest(0).values()]
    fast = burnish.compile(lambda x: ops.tree_ensemble(x, *held, outputs=3))
    assert fast(Tensor(np.zeros((4, 5), np.float32))).shape == (4, 3)
    with pytest.raises(Exception, match=r"out of bounds|index"):
        fast(Tensor(np.zeros((4, 2), np.float32)))


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("name", ["arg_max", "arg_min"])
def test_places_of_extrema(name, last):
    x = np.rint(2 * Draw(3).tensor(7, 5, 6).data)
    x[::2, 1:3, ::2] = np.nan
    for axis in (0, 1, -1):
        for keepdims in (False, True):
            options = {"axis": axis, "keepdims": keepdims, "select_last_index": last}
            function = getattr(ops, name)
            fast = check(lambda x, f=function, o=options: f(x + 1, **o), Tensor(x))
            assert records(fast) == 2


@pytest.mark.parametrize("layer", ["linear", "conv"])
@pytest.mark.parametrize("rows", [1, 5, 40])
def test_a_large_bias_does_not_make_sums_err_more(rows, layer):
    """Half a unit in the last place of 1,000, and the sum's own error."""
    model = nn.Linear(256, 20) if layer == "linear" else nn.Conv1d(256, 20, 1)
    model.bias = nn.Param(Tensor(np.full(20, 1000, np.float32)))
    shape = (rows, 256) if layer == "linear" else (1, 256, rows)
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    weight = model.weight.data.astype(np.float64).reshape(20, 256)
    want = x @ weight.T if layer == "linear" else np.matmul(weight, x)
    got = burnish.compile(model)(Tensor(x)).data
    assert abs(got - (want + 1000)).max() < 3.1e-5 + 5e-6
