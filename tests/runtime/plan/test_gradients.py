"""Kernels of gradients against the plain ones in double precision, on odd shapes."""

import numpy as np
import pytest

import burnish
from burnish import nn, ops, optim
from burnish.kernels import library
from burnish.ops._kernels.gru import gru_sequence
from burnish.ops._kernels.lstm import lstm_sequence
from burnish.ops._kernels.rnn import rnn_sequence
from burnish.ops.loss import softmax_cross_entropy
from burnish.ops.sequences.attention import softmax_or_zero
from tests.runtime.plan.gradients import Held, exact, gradients, normal

TRIALS = 12

pytestmark = [
    pytest.mark.usefixtures("canaries"),
    pytest.mark.skipif(library() is None, reason="there is no compiler"),
]


@pytest.mark.parametrize("seed", range(TRIALS))
def test_convolutions(seed):
    random = np.random.default_rng(seed)
    rank = int(random.integers(1, 4))
    ins, outs = (int(random.choice([1, 3, 4, 16, 20, 33, 72])) for _ in range(2))
    kernel = [int(random.integers(1, 4)) for _ in range(rank)]
    sizes = [int(random.integers(4, 11)) for _ in range(rank)]
    options = {
        "stride": int(random.integers(1, 4)),
        "padding": int(random.integers(0, 3)),
        "dilation": int(random.integers(1, 3)) if min(sizes) > 6 else 1,
    }
    batch = int(random.choice([1, 2, 5, 19]))

    def function(x, weight, bias):
        return ops.conv(ops.relu(x), weight, bias, **options)

    x, weight = normal(random, batch, ins, *sizes), normal(random, outs, ins, *kernel)
    report = exact(function, x, weight, normal(random, outs))
    assert "conv" not in report


FEW_CHANNELS = [  # x, weight, stride, padding, dilation
    ((5, 1, 28, 28), (32, 1, 3, 3), 1, 0, 1),
    ((2, 3, 33, 30), (24, 3, 7, 7), 2, 3, 1),
    ((3, 3, 9, 31), (16, 3, 5, 4), (1, 3), (2, 0), (2, 1)),
    ((1, 2, 64), (40, 2, 11), 4, 5, 1),
    ((19, 5, 6), (3, 5, 2), 1, 1, 1),
    ((2, 4, 5, 6, 7), (17, 4, 2, 3, 3), (1, 2, 2), 1, 1),
    ((2, 12, 8, 8), (33, 12, 3, 3), 1, 1, 1),
    ((2, 3, 9, 9), (16, 3, 3, 3), 1, 2, (1, 2)),  # its taps are apart
]


@pytest.mark.parametrize(("x", "weight", "stride", "padding", "dilation"), FEW_CHANNELS)
def test_convolutions_of_a_few_channels(x, weight, stride, padding, dilation):
    random = np.random.default_rng(len(x))
    options = {"stride": stride, "padding": padding, "dilation": dilation}
    images = burnish.Tensor(normal(random, *x).astype(np.float32))

    def function(weight):
        return ops.conv(images.to(weight.dtype), weight, **options)

    assert "conv" not in exact(function, normal(random, *weight))


GROUPS = [
    *[(2, 16, 32), (3, 32, 16)],  # whole blocks of channels
    *[(8, 4, 4), (4, 8, 4), (6, 4, 8), (16, 1, 2), (3, 5, 7), (4, 12, 12)],
]


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize(("groups", "ins", "outs"), GROUPS)
def test_groups(groups, ins, outs, rank):
    random = np.random.default_rng(groups)
    options = {"stride": 2, "padding": 1, "groups": groups}

    def function(x, weight, bias):
        return ops.conv(x * 1.0, weight, bias, **options)

    sizes, kernel = (7, 9, 4)[:rank], (3, 3, 2)[:rank]
    explained = exact(
        function,
        normal(random, 2, groups * ins, *sizes),
        normal(random, groups * outs, ins, *kernel) / ins,
        normal(random, groups * outs),
    )
    assert "conv" not in explained

    def transposed(x, weight, bias):
        return ops.conv_transpose(x * 1.0, weight, bias, dilation=2, **options)

    explained = exact(
        transposed,
        normal(random, 2, groups * ins, *sizes),
        normal(random, groups * ins, outs, *kernel) / ins,
        normal(random, groups * outs),
    )
    assert "conv" not in explained


def test_groups_whose_dense_product_would_be_mostly_zeros_run_eagerly():
    random = np.random.default_rng(0)
    x, weight = normal(random, 2, 17, 5, 5), normal(random, 34, 1, 3, 3)
    explained = exact(lambda x, weight: ops.conv(x * 1.0, weight, groups=17), x, weight)
    assert "groups of 1 channels in and 2 out" in explained


@pytest.mark.parametrize("seed", range(TRIALS))
def test_transposed_convolutions(seed):
    random = np.random.default_rng(seed)
    rank = int(random.integers(1, 4))
    ins, outs = (int(random.choice([1, 3, 16, 20, 33])) for _ in range(2))
    kernel = [int(random.integers(1, 5)) for _ in range(rank)]
    stride = int(random.integers(1, 4))
    options = {
        "stride": stride,
        "padding": int(random.integers(0, 1 + min(kernel) // 2)),
        "output_padding": int(random.integers(0, stride)),
    }

    def function(x, weight, bias):
        return ops.conv_transpose(ops.relu(x), weight, bias, **options)

    sizes = [int(random.integers(2, 8)) for _ in range(rank)]
    x, weight = normal(random, 3, ins, *sizes), normal(random, ins, outs, *kernel)
    report = exact(function, x, weight, normal(random, outs))
    assert "conv" not in report
    assert "sum_to" not in report


@pytest.mark.parametrize("seed", range(TRIALS // 2))
def test_a_weight_for_each_channel(seed):
    random = np.random.default_rng(seed)
    channels = int(random.choice([2, 16, 24, 40]))
    size = [int(random.integers(3, 14)) for _ in range(2)]
    kernel = int(random.choice([1, 3, 5]))
    options = {"stride": int(random.integers(1, 3)), "padding": kernel // 2}
    x = normal(random, 3, channels, *size)
    report = exact(
        lambda x, weight: ops.conv(x, weight, **options, groups=channels),
        x,
        normal(random, channels, 1, kernel, kernel),
    )
    assert "conv" not in report


@pytest.mark.parametrize("ins", [3, 16, 37, 48, 64])
@pytest.mark.parametrize("outs", [1, 10, 16, 48, 80])
@pytest.mark.parametrize("lead", [(1,), (7, 50), (700,)])
def test_products_with_weights(ins, outs, lead):
    random = np.random.default_rng(ins)
    given = normal(random, *lead, ins), normal(random, outs, ins), normal(random, outs)
    assert "linear" not in exact(lambda x, w, b: ops.linear(x * 1.0, w, b), *given)


@pytest.mark.parametrize("channels", [1, 16, 19, 50])
@pytest.mark.parametrize("pixels", [(1, 1), (7, 5), (40, 13)])
@pytest.mark.parametrize("act", ["none", "relu", "relu6"])
def test_batch_norm(channels, pixels, act):
    random = np.random.default_rng(channels)
    acts = {"none": lambda x: x, "relu": ops.relu, "relu6": ops.relu6}

    def function(x, scale, bias):
        y, _, _ = ops.batch_norm_train(x * 1.0, scale, bias)
        return acts[act](y)

    x = 2 + 3 * normal(random, 4, channels, *pixels)
    report = exact(function, x, 1 + normal(random, channels), normal(random, channels))
    assert "channel_norm" not in report


@pytest.mark.parametrize("seed", range(TRIALS // 2))
def test_the_greatest_of_windows(seed):
    random = np.random.default_rng(seed)
    options = {
        "kernel_size": int(random.integers(2, 4)),
        "stride": int(random.integers(1, 4)),
        "padding": int(random.integers(0, 2)),
    }
    x = normal(random, 2, int(random.choice([3, 16, 21])), 9, 7)
    assert "max_pool" not in exact(lambda x: ops.max_pool(x * 2.0, **options), x)


def test_equal_numbers_and_places_without_any():
    x = np.zeros((2, 17, 5, 6))
    exact(lambda x: ops.max_pool(ops.relu(x), kernel_size=3, stride=2, padding=1), x)
    exact(lambda x: ops.relu6(ops.relu(x)), x)


@pytest.mark.parametrize("width", [1, 3, 16, 37, 300])
@pytest.mark.parametrize("lead", [(1,), (5, 9), (131,)])
@pytest.mark.parametrize("is_centered", [True, False])
def test_norms_of_rows(width, lead, is_centered):
    random = np.random.default_rng(width)

    def function(x, weight, bias):
        if is_centered:
            return ops.layer_norm(x * 1.0, width, weight, bias)
        return ops.rms_norm(x * 1.0, width, weight, eps=0.1) + bias

    x = 2 + 3 * normal(random, *lead, width)
    weights = 1 + normal(random, width), normal(random, width)
    # One number has a variance of 0: its gradient is a difference times 1 / sqrt(eps).
    report = exact(function, x, *weights, least=10 if width == 1 else 1e-6)
    assert "norm" not in report


def test_a_norm_without_a_weight_and_one_of_two_axes():
    random = np.random.default_rng(0)
    x, weight = normal(random, 40, 3, 7), normal(random, 3, 7)
    assert "norm" not in exact(lambda x: ops.layer_norm(x * 1.0, 7), x)
    report = exact(lambda x, w: ops.layer_norm(x * 1.0, (3, 7), w), x, weight)
    assert "norm" not in report


ACTIVATIONS = {
    "gelu": ops.gelu,
    "gelu by tanh": lambda x: ops.gelu(x, approximate="tanh"),
    "swish": ops.swish,
    "swish with a number": lambda x: ops.swish(x, alpha=1.7),
    "hard_swish": ops.hard_swish,
    "sigmoid": ops.sigmoid,
    "tanh": ops.tanh,
    "softplus": ops.softplus,
    "leaky_relu": lambda x: ops.leaky_relu(x, negative_slope=0.2),
    "hard_tanh": ops.hard_tanh,
}


@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize("shape", [(1,), (3, 700), (5, 17, 31)])
def test_activations(name, shape):
    x = 3 * normal(np.random.default_rng(1), *shape)
    report = exact(lambda x: ACTIVATIONS[name](x * 1.0), x)
    assert f"{name} gradient" not in report
    assert "nothing eagerly" in report


def _classes(x):
    return burnish.Tensor(np.arange(15) * 7 % x.shape[-1])


ROWS = {
    "softmax": lambda x: ops.softmax(x, axis=-1),
    "log_softmax": lambda x: ops.log_softmax(x, axis=-1),
    "softmax_or_zero": softmax_or_zero,
    "cross entropy": lambda x: nn.cross_entropy(x.reshape(15, -1), _classes(x)),
    "losses": lambda x: nn.cross_entropy(
        x.reshape(15, -1), _classes(x), reduction="none", ignore_index=0
    ),
}


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("width", [1, 3, 16, 37, 300])
def test_softmax(name, width):
    x = 2 * normal(np.random.default_rng(width), 3, 5, width)
    assert "softmax" not in exact(lambda x: ROWS[name](x * 1.0), x)


@pytest.mark.parametrize("mask", ["none", "causal", "booleans", "numbers"])
@pytest.mark.parametrize("sizes", [(1, 1, 3), (7, 19, 16), (33, 20, 5)])
def test_attention(mask, sizes):
    random = np.random.default_rng(len(mask))
    queries, keys, size = sizes
    q = normal(random, 2, queries, 3, size)
    k, v = (normal(random, 2, keys, 3, size) for _ in range(2))
    given = {
        "none": None,
        "causal": None,
        "booleans": burnish.Tensor(random.random((2, 1, 1, keys)) > 0.3),
        "numbers": burnish.Tensor(normal(random, queries, keys).astype(np.float32)),
    }[mask]

    def function(q, k, v):
        q, k, v = (part.transpose((0, 2, 1, 3)) * 1.0 for part in (q, k, v))
        is_causal = mask == "causal"
        return ops.scaled_dot_product_attention(q, k, v, given, is_causal=is_causal)

    report = exact(function, q, k, v)
    assert "softmax" not in report
    assert "matmul" not in report


@pytest.mark.parametrize("mask", ["none", "causal", "booleans", "numbers"])
@pytest.mark.parametrize("shared", [1, 2])
def test_attention_of_long_sequences(mask, shared):
    """The gradients of 480 queries and 577 keys come without their scores."""
    random = np.random.default_rng(len(mask))
    q = normal(random, 1, 480, 2 * shared, 9)
    k, v = normal(random, 1, 577, 2, 9), normal(random, 1, 577, 2, 6)
    booleans = random.random((1, 1, 480, 577)) > 0.3
    booleans[:, :, 7] = False
    given = {
        "none": None,
        "causal": None,
        "booleans": burnish.Tensor(booleans),
        "numbers": burnish.Tensor(normal(random, 480, 577).astype(np.float32)),
    }[mask]

    def function(q, k, v):
        q, k, v = (part.transpose((0, 2, 1, 3)) * 1.0 for part in (q, k, v))
        is_causal = mask == "causal"
        y = ops.scaled_dot_product_attention(q, k, v, given, is_causal=is_causal)
        return y.transpose((0, 2, 1, 3)) * 1.0

    report = exact(function, q, k, v)
    assert "nothing eagerly" in report
    assert "softmax" not in report


@pytest.mark.parametrize("queries", [181, 182, 300])
def test_causal_attention_of_fewer_pairs(queries):
    """Blocks of keys end where their last query's do, and so do the scores' sums."""
    random = np.random.default_rng(queries)
    q, k, v = (normal(random, 2, 3, queries, size) for size in (9, 9, 6))
    k[:, :, -1] = 1e6  # nobody but the last query sees it

    def function(q, k, v):
        q, k, v = (part * 1.0 for part in (q, k, v))
        return ops.scaled_dot_product_attention(q, k, v, is_causal=True)[:, :, :-1]

    report = exact(function, q, k, v)
    assert "nothing eagerly" in report
    assert "softmax" not in report


def test_gradients_that_are_constants_reach_attention():
    """Those of a sum are one number everywhere, and no value of a line."""
    random = np.random.default_rng(3)
    given = {name: normal(random, 2, 3, 181, 8) for name in "qkv"}

    def moved(dtype, is_compiled):
        held = Held(given, dtype)
        held.to("cpu:autodiff")

        def step():
            q, k, v = (getattr(held, name) for name in given)
            y = ops.scaled_dot_product_attention(q, k, v, is_causal=True)
            optim.SGD().step(1.0, held, y.sum().backward())

        run = burnish.compile(step) if is_compiled else step
        run()
        report = run.explain() if is_compiled else ""
        return [getattr(held, name).numpy() for name in given], report

    ours, report = moved(np.float32, True)
    wanted, _ = moved(np.float64, False)
    assert "nothing eagerly" in report
    for one, other in zip(ours, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-4)


def test_causal_attention_stores_no_scores_from_fewer_pairs_on():
    held = Held({"x": normal(np.random.default_rng(1), 256, 16)}, np.float32)
    held.to("cpu:autodiff")

    @burnish.compile
    def step(is_causal):
        y = ops.scaled_dot_product_attention(*3 * [held.x], is_causal=is_causal)
        optim.SGD().step(0.1, held, ops.square(y).mean().backward())

    for is_causal in (True, False):
        step(is_causal)
        kinds = {each.kind for each in step._steps.known[-1]._plan.steps}
        assert ("attention_gradient" in kinds) == is_causal


def test_long_sequences_store_no_scores():
    model = nn.MultiheadAttention(32, 4, batch_first=True).to("cpu:autodiff")
    optimizer = optim.SGD()

    @burnish.compile
    def step(x):
        y, _ = model(x, x, x, need_weights=False)
        loss = ops.square(y).mean()
        optimizer.step(0.1, model, loss.backward())
        return loss

    x = burnish.Tensor(normal(np.random.default_rng(1), 1, 1024, 32).astype(np.float32))
    step(x)
    plan = step._steps.known[0]._plan
    kinds = [each.kind for each in plan.steps]
    assert {"attention", "attention_gradient"} <= set(kinds)
    assert "softmax" not in kinds
    assert plan.memory.arena < 4 * 1024 * 1024 * 4


def test_a_loss_and_formulas_of_elements():
    random = np.random.default_rng(2)
    held = Held({"x": normal(random, 6, 5), "y": normal(random, 6, 1)}, np.float32)
    held.to("cpu:autodiff")

    @burnish.compile
    def step(classes, mask):
        x = ops.exp(held.x) / ops.sqrt(ops.square(held.y) + 1.0)
        loss = nn.cross_entropy(ops.where(mask, x, 2.0), classes)
        found = loss.backward()
        optim.SGD().step(0.0, held, found)
        return held.x.grad(found), held.y.grad(found)

    mask = random.random((6, 5)) > 0.3
    given = burnish.Tensor(np.arange(6) % 5), burnish.Tensor(mask)
    wanted = step.__wrapped__(*given)
    for ours, plain in zip(step(*given), wanted, strict=True):
        np.testing.assert_allclose(ours.numpy(), plain.numpy(), rtol=1e-5, atol=1e-6)
    assert step.explain().count("gradient") == 0, step.explain()


def _weighed(x, weight):
    return ops.layer_norm(x, 7, weight) + ops.rms_norm(x, 7, weight, eps=0.1)


def _attended(x, weight):
    q, k = x.reshape(5, 3, 7), (x * weight).reshape(5, 3, 7)
    y = ops.scaled_dot_product_attention(q, k, q * 2.0, is_causal=True)
    return y.reshape(15, 7)


def _losses(x, weight):
    shares = burnish.Tensor(np.linspace(0.5, 2, 15).astype(x.dtype))
    made = softmax_cross_entropy(x * weight, _classes(x), shares, summed=True)
    return made[0] * np.ones(3, x.dtype)


FORMULAS = {
    "shares of losses": _losses,
    "norms": _weighed,
    "attention": _attended,
    "cross entropy": lambda x, w: nn.cross_entropy(x * w, _classes(x)),
    "softmax": lambda x, w: ops.softmax(x * w) + ops.log_softmax(x - w),
    "activations": lambda x, w: (
        ops.gelu(x * w)
        + ops.gelu(x, approximate="tanh") * ops.tanh(w)
        + ops.swish(x) * ops.sigmoid(w)
        + ops.hard_swish(x) / ops.softplus(w)
    ),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_central_differences(name):
    """In double precision, of the sum of the result times a factor."""
    random = np.random.default_rng(5)
    given = {"x": normal(random, 15, 7), "w": 1 + 0.3 * normal(random, 7)}
    function = FORMULAS[name]

    def result(arrays):
        return function(*(burnish.Tensor(array) for array in arrays.values())).numpy()

    factor = normal(random, *result(given).shape)
    found, _ = gradients(function, given, np.float32, True, factor)
    for key, ours in zip(given, found, strict=True):
        wanted = np.zeros(given[key].shape)
        for place in np.ndindex(wanted.shape):
            ends = []
            for step in (1e-6, -1e-6):
                moved = {k: array.copy() for k, array in given.items()}
                moved[key][place] += step
                ends.append((result(moved) * factor).sum())
            wanted[place] = (ends[0] - ends[1]) / 2e-6
        atol = 3e-5 * np.abs(wanted).max()
        np.testing.assert_allclose(ours, wanted, rtol=3e-5, atol=atol, err_msg=key)


@pytest.mark.parametrize(
    ("shape", "kept"),
    [
        ((5, 7), (7,)),
        ((5, 7), (5, 1)),
        ((300, 3, 17), (3, 17)),
        ((2, 300, 3), (2, 1, 1)),
        ((2, 19, 5, 3), (1, 19, 1, 1)),
        ((1, 33, 1), (33, 1)),
        ((4, 5), ()),
    ],
)
def test_sums_of_what_was_broadcast(shape, kept):
    random = np.random.default_rng(0)
    report = exact(lambda a, b: a * b, normal(random, *shape), normal(random, *kept))
    assert "sum_to" not in report


@pytest.mark.parametrize(
    ("steps", "count", "hidden"),
    [(1, 1, 16), (5, 3, 32), (9, 19, 48), (3, 2, 10), (3, 41, 20), (2, 37, 256)],
)
@pytest.mark.parametrize("reverse", [False, True])
def test_lstm(steps, count, hidden, reverse):
    random = np.random.default_rng(steps)

    def function(x, weight, h, c):
        hs, cs, _ = lstm_sequence(x * 1.0, weight, h, c, order="iofc", reverse=reverse)
        return hs + cs * 0.5

    report = exact(
        function,
        normal(random, steps, count, 4 * hidden),
        0.2 * normal(random, 4 * hidden, hidden),
        normal(random, count, hidden),
        normal(random, count, hidden),
    )
    assert "lstm" not in report


@pytest.mark.parametrize(
    ("steps", "count", "hidden"),
    [(1, 1, 16), (5, 9, 32), (3, 2, 10), (4, 11, 37), (3, 39, 24)],
)
@pytest.mark.parametrize("reverse", [False, True])
def test_gru(steps, count, hidden, reverse):
    random = np.random.default_rng(steps)

    def function(x, weight, h, bias):
        options = {"order": "rzh", "reset_after": True, "reverse": reverse}
        return gru_sequence(x * 1.0, weight, h, bias, **options)[0]

    explained = exact(
        function,
        normal(random, steps, count, 3 * hidden),
        0.2 * normal(random, 3 * hidden, hidden),
        normal(random, count, hidden),
        normal(random, 3 * hidden),
    )
    assert "gru" not in explained


@pytest.mark.parametrize("bend", ["tanh", "relu"])
@pytest.mark.parametrize(("steps", "count", "hidden"), [(5, 9, 32), (4, 3, 7)])
@pytest.mark.parametrize("reverse", [False, True])
def test_rnn(steps, count, hidden, reverse, bend):
    random = np.random.default_rng(steps)

    def function(x, weight, h):
        return rnn_sequence(x * 1.0, weight, h, bend=bend, reverse=reverse)

    explained = exact(
        function,
        normal(random, steps, count, hidden),
        0.2 * normal(random, hidden, hidden),
        normal(random, count, hidden),
    )
    assert "rnn" not in explained


def test_sums_of_axes_that_are_apart_run_as_they_are():
    random = np.random.default_rng(0)
    given = normal(random, 3, 4, 5), normal(random, 3, 1, 5)
    exact(lambda a, b: a * b, *given)


@pytest.mark.parametrize("wide", [256, 272, 512])
@pytest.mark.parametrize("rows", [63, 64, 70])
def test_hidden_rows_in_blocks(rows, wide):
    """Rows of multiples of 256 are written in blocks, and read in them."""
    rng = np.random.default_rng(wide + rows)
    shapes = (rows, 32), (wide, 32), (wide,), (48, wide), (48,)
    given = [rng.normal(size=shape) / 4 for shape in shapes]

    def function(x, first, bias, second, other):
        return ops.linear(ops.gelu(ops.linear(x, first, bias)), second, other)

    report = exact(function, *given)
    assert "linear" not in report, report


def test_hidden_rows_that_are_read_as_they_are():
    """A value that a product and others read stays plain for those."""
    rng = np.random.default_rng(5)
    shapes = (66, 16), (256, 16), (16, 256), (66, 256)
    given = [rng.normal(size=shape) / 4 for shape in shapes]

    def function(x, first, second, other):
        hidden = ops.tanh(ops.linear(x, first)) * other
        back = ops.linear(hidden, second)
        return ops.concat([back, ops.softmax(hidden, axis=-1), hidden], axis=1)

    exact(function, *given)
