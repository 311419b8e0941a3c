"""Kernels of activations, rows, sequences and attention: against float64.

`tests/runtime/plan/test_sanitized.py` runs this file under the compiler's checks too.
"""

from __future__ import annotations

import numpy as np
import pytest

import burnish
from burnish import ops
from burnish.errors import InputError
from burnish.kernels import attention
from burnish.ops._kernels.lstm import lstm_sequence
from burnish.ops.activation.smooth import sigmoid_gate
from burnish.ops.loss import softmax_cross_entropy
from burnish.ops.normalization import (
    batch_norm,
    group_norm_of,
    layer_norm_from,
    rms_norm_from,
)
from burnish.ops.sequences.attention import attended_heads, softmax_or_zero
from tests.runtime.ops.kernels import (
    checked_by_differences,
    close,
    pulled,
    same_for_any_threads,
    slope,
    values,
    wide,
)

pytestmark = pytest.mark.usefixtures("launched")


def compared(op, args, options, kernels, launched, *, g=None, tolerance=16.0):
    """Values and gradients of a kernel against the plain ones in float64."""
    y = same_for_any_threads(lambda: op(*args, **options))
    exact = op.value(*wide(args), **options)
    several = isinstance(exact, tuple)
    for ours, want in zip(y, exact if several else [exact], strict=True):
        close(ours, want, tolerance)
    given = {**op.defaults, **options}
    gs = g if several else (g or [values(*y[0].shape, seed=9)])[0]
    ys = tuple(y) if several else y[0]
    grads = same_for_any_threads(lambda: pulled(op, gs, ys, args, given))
    wide_g = tuple(wide(gs)) if several else gs.astype(np.float64)
    wanted = pulled(op, wide_g, exact, wide(args), given)
    assert set(kernels) <= set(launched)
    for ours, want in zip(grads, wanted, strict=True):
        if want is not None:
            close(ours, want, 16 * tolerance)
    if not several:
        checked_by_differences(op, args, gs, grads, given, 1e-3)


ACTIVATIONS = [
    (ops.gelu, {}),
    (ops.gelu, {"approximate": "tanh"}),
    (ops.swish, {}),
    (ops.swish, {"alpha": 1.702}),
    (ops.sigmoid, {}),
    (ops.softplus, {}),
    (ops.log_sigmoid, {}),
    (ops.hard_swish, {}),
    (ops.hard_sigmoid, {"alpha": 0.3}),
    (ops.leaky_relu, {"negative_slope": 0.2}),
    (ops.leaky_relu, {"negative_slope": 1.5}),
    (ops.elu, {"alpha": 0.7}),
    (ops.celu, {}),
    (ops.erf, {}),
]


@pytest.mark.parametrize("count", [1, 15, 513, 1500])
@pytest.mark.parametrize(
    ("op", "options"),
    [*ACTIVATIONS, (ops.tanh, {})],
    ids=lambda v: getattr(v, "name", str(v)),
)
def test_activations(op, options, count, launched):
    x = values(count) * 3
    x[np.isin(abs(x), [0, 3])] = 1  # of bounds there is no slope
    compared(op, (x,), options, ["program"], launched)


@pytest.mark.parametrize(
    ("op", "options"), ACTIVATIONS, ids=lambda v: getattr(v, "name", str(v))
)
def test_activations_of_odd_numbers(op, options, launched):
    x = np.array([np.nan, np.inf, -np.inf, 0, -0.0, 90, -90, 2e38, -2e38], np.float32)
    with np.errstate(all="ignore"):
        wanted = op.value(x.astype(np.float64), **options)
    close(op(x, **options), wanted)
    assert set(launched) == {"program"}


@pytest.mark.parametrize(
    ("op", "options"), ACTIVATIONS, ids=lambda v: getattr(v, "name", str(v))
)
def test_a_nan_reaches_the_gradient_as_it_does_without_kernels(op, options, launched):
    x = np.array([np.nan, 1, -1], np.float32)
    given = {**op.defaults, **options}
    y, g = op(x, **options), np.ones_like(x)
    wanted = pulled(op, *wide([g, y]), wide([x]), given)[0]
    close(pulled(op, g, y, (x,), given)[0], wanted, 64)


def test_an_activation_takes_arrays_that_are_not_contiguous(launched):
    x = values(2, 6, 5)
    half = x[:, ::2].transpose(2, 0, 1)
    close(ops.sigmoid(half), ops.sigmoid.value(half.astype(np.float64)))
    close(ops.glu(x, axis=1), ops.glu(x.astype(np.float64), axis=1))
    assert set(launched) == {"program"}


@pytest.mark.parametrize("shape", [(1,), (15,), (3, 513), (2, 40, 50)], ids=str)
def test_a_gate(shape, launched):
    x = values(*shape[:-1], 2 * shape[-1]) * 3
    halves = x[..., : shape[-1]], x[..., shape[-1] :]
    compared(sigmoid_gate, halves, {}, ["program"], launched)


HALVES = [  # the shape of an array, the axis of its halves, and whether b is the first
    ((3, 4, 30, 20), 1, False),
    ((3, 4, 30, 20), 1, True),
    ((2, 1024), 0, False),
    ((5, 8, 6), 1, False),
    ((4, 2, 210001), 1, False),  # beyond caches: in small tiles
]


@pytest.mark.parametrize(("shape", "axis", "is_swapped"), HALVES, ids=str)
def test_gradients_of_a_gate_s_halves_are_those_of_their_array(
    shape, axis, is_swapped, launched
):
    array = values(*shape)
    a, b = np.split(array, 2, axis)
    a, b = (b, a) if is_swapped else (a, b)
    g = values(*a.shape)
    found = sigmoid_gate.pull(g, sigmoid_gate(a, b), (a, b), {}, [True, True])
    share = 1 / (1 + np.exp(-b.astype(np.float64)))
    close(found[0], g * share)
    close(found[1], g * a * (share * (1 - share)))
    assert set(launched) == {"program"}


def test_gradients_of_a_gate_of_overlapping_arrays(launched):
    array = values(3, 3, 40, 40)
    a, b, g = array[:, :2], array[:, 1:], values(3, 2, 40, 40)
    found = sigmoid_gate.pull(g, sigmoid_gate(a, b), (a, b), {}, [True, True])
    share = 1 / (1 + np.exp(-b.astype(np.float64)))
    close(found[0], g * share)
    close(found[1], g * a * (share * (1 - share)))


def test_a_gate_of_two_shapes_is_not_a_program(launched):
    a, b = values(2, 8), values(8)
    close(sigmoid_gate(a[0], b), sigmoid_gate.value(*wide((a[0], b))))
    assert len(launched) == 1
    with pytest.raises(InputError):
        sigmoid_gate(a, b)
    assert len(launched) == 1


def test_an_unknown_approximation_is_refused():
    with pytest.raises(InputError, match="expected approximate 'none' or 'tanh'"):
        ops.gelu(values(4), approximate="rough")


ROWS = [(1, 1), (3, 7), (5, 33), (70, 300), (2, 3, 17)]


@pytest.mark.parametrize("shape", ROWS, ids=str)
@pytest.mark.parametrize("op", [ops.softmax, ops.log_softmax, softmax_or_zero])
def test_softmax(op, shape, launched):
    kernels = ["softmax", "softmax_gradient"]
    options = {} if op is softmax_or_zero else {"axis": len(shape) - 1}
    compared(op, (values(*shape) * 5,), options, kernels, launched, tolerance=64)


@pytest.mark.parametrize("shape", [(3, 2), (2, 5, 3, 11), (1, 300, 16), (2, 70, 33)])
@pytest.mark.parametrize("op", [ops.softmax, ops.log_softmax])
@pytest.mark.parametrize("axis", [0, 1])
def test_softmax_of_columns(axis, op, shape, launched):
    kernels = ["softmax", "softmax_gradient"]
    x = values(*shape) * 5
    compared(op, (x,), {"axis": axis}, kernels, launched, tolerance=64)
    x[(0,) * x.ndim], x[(-1,) * x.ndim] = np.nan, np.inf
    with np.errstate(all="ignore"):
        wanted = op.value(x.astype(np.float64), axis=axis)
    close(op(x, axis=axis), wanted, 64)


def test_a_row_of_which_nothing_takes_part(launched):
    x = values(3, 20)
    x[1] = -np.inf
    y = softmax_or_zero(x)
    assert not y[1].any()
    np.testing.assert_allclose(y.sum(axis=1), [1, 0, 1], 1e-6)
    assert np.isnan(ops.softmax(x)[1]).all()
    assert set(launched) == {"softmax"}


@pytest.mark.parametrize("summed", [False, True])
@pytest.mark.parametrize(
    "shape",
    [(1, 3), (6, 10), (33, 257), (3, 5, 1), (2, 21, 7, 5), (3, 4, 64), (2, 5, 150)],
    ids=str,
)
def test_cross_entropy(shape, summed, launched):
    places = shape[:1] + shape[2:]
    classes = np.arange(np.prod(places)).reshape(places) * 7 % shape[1]
    shares = abs(values(*places, seed=2))
    args = values(*shape) * 4, classes, shares, np.float32(0.5)
    options = {"axis": 1, "summed": summed}
    y = softmax_cross_entropy(*args, **options)
    wanted = softmax_cross_entropy.value(
        *wide(args[:1]), classes, *wide(args[2:]), **options
    )
    for ours, want in zip(y, wanted, strict=True):
        close(np.asarray(ours), np.asarray(want), 64)
    g = values(*np.shape(y[0]), seed=3) if not summed else np.float32(0.7)
    needed = [True, False, False, False]
    (dx, *_) = softmax_cross_entropy.pull(
        (np.asarray(g), None), y, args, options, needed
    )
    (exact, *_) = softmax_cross_entropy.pull(
        (np.asarray(g, np.float64), None), wanted,
        (*wide(args[:1]), classes, *wide(args[2:])), options, needed,
    )  # fmt: skip
    close(dx, exact, 64)
    assert set(launched) == {"cross_entropy", "cross_entropy_gradient"}


@pytest.mark.parametrize("shape", [(1, 2), (3, 7), (40, 33), (2, 3, 4, 5)], ids=str)
@pytest.mark.parametrize("given", ["all", "weight", "none"])
@pytest.mark.parametrize("op", [layer_norm_from, rms_norm_from])
def test_norms_of_rows(op, given, shape, launched):
    axis = -1 if len(shape) == 2 else -2
    scale = values(*shape[axis:], seed=1)
    scales = {"all": (scale, scale * 2), "weight": (scale, None), "none": (None, None)}
    args = (values(*shape) * 2 + 1, *scales[given][: len(op.arguments) - 1])
    kernels = ["layer_norm", "layer_norm_gradient"]
    compared(op, args, {"axis": axis, "eps": 1e-3}, kernels, launched, tolerance=32)


@pytest.mark.parametrize("shape", [(2, 6), (3, 6, 5), (2, 12, 7, 9)], ids=str)
@pytest.mark.parametrize("groups", [1, 3])
def test_group_norm(groups, shape, launched):
    c = shape[1]
    x, scale, bias = values(*shape) + 2, values(c, seed=1), values(c, seed=2)
    y = same_for_any_threads(lambda: group_norm_of(x, scale, bias, num_groups=groups))
    close(y[0], group_norm_of.value(*wide([x, scale, bias]), num_groups=groups), 32)
    assert set(launched) == {"group_norm"}


@pytest.mark.parametrize(
    "shape", [(5, 7), (3, 6, 1), (2, 5, 33), (2, 3, 20, 30)], ids=str
)
@pytest.mark.parametrize("given", ["both", "bias", "neither"])
def test_batch_norm_of_running_statistics(given, shape, launched):
    c = shape[1]
    mean, var = values(c, seed=1), abs(values(c, seed=2)) + 0.1
    weight = values(c, seed=3) if given == "both" else None
    bias = None if given == "neither" else values(c, seed=4)
    args = values(*shape), mean, var, weight, bias
    y = same_for_any_threads(lambda: batch_norm(*args, eps=1e-3))
    close(y[0], batch_norm.value(*wide(args), eps=1e-3))
    assert set(launched) == {"channel_affine"}


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(
    ("count", "hidden"), [(1, 16), (3, 32), (9, 48), (2, 5), (39, 20)]
)
def test_lstm(count, hidden, reverse, launched):
    steps = 5
    args = (
        values(steps, count, 4 * hidden),
        values(4 * hidden, hidden, seed=1) / hidden**0.5,
        values(count, hidden, seed=2),
        values(count, hidden, seed=3),
    )
    g = (
        values(steps, count, hidden, seed=4),
        values(steps, count, hidden, seed=5),
        None,
    )
    kernels = ["recurrent", "recurrent_gradient"]
    options = {"order": "iofc", "reverse": reverse}
    compared(
        lstm_sequence, (*args, None), options, kernels, launched, g=g, tolerance=64
    )


MASKS = {
    "none": None,
    "bool": (values(9, 11) > 0),
    "numbers": values(2, 1, 9, 11),
    "hidden": np.zeros((9, 11), bool),
    "of keys": (values(2, 1, 1, 11) > -1),
}


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("heads", [(4, 4), (4, 2), (4, 1)], ids=str)
def test_attention(heads, mask, causal, launched, monkeypatch):
    monkeypatch.setattr(attention, "_FEW", 0)
    q = values(2, heads[0], 9, 8)
    k, v = values(2, heads[1], 11, 8, seed=1), values(2, heads[1], 11, 20, seed=2)
    given = {"attn_mask": MASKS[mask], "is_causal": causal, "scale": 0.3}
    y = same_for_any_threads(lambda: ops.scaled_dot_product_attention(q, k, v, **given))
    wanted = ops.scaled_dot_product_attention(*wide([q, k, v]), **given)
    close(y[0], wanted, 32)
    assert set(launched) == {"attention"}


def test_attention_of_few_axes_and_of_views(launched, monkeypatch):
    monkeypatch.setattr(attention, "_FEW", 0)
    for lead in ((), (3,)):
        q, k, v = (values(*lead, 16, 7, seed=i).swapaxes(-1, -2) for i in range(3))
        y = ops.scaled_dot_product_attention(q, k, v)
        close(y, ops.scaled_dot_product_attention(*wide([q, k, v])), 32)
    assert set(launched) == {"attention"}


def test_a_mask_of_more_examples_than_the_queries_broadcasts_them(
    launched, monkeypatch
):
    monkeypatch.setattr(attention, "_FEW", 0)
    q, k, v = (values(2, 5, 8, seed=i) for i in range(3))
    for shape in ((3, 2, 5, 5), (3, 1, 5, 5), (1, 1, 5, 5)):
        mask = values(*shape, seed=4)
        y = ops.scaled_dot_product_attention(q, k, v, mask)
        wanted = ops.scaled_dot_product_attention(*wide([q, k, v]), mask)
        close(y, wanted.astype(np.float64), 32)
    assert "attention" not in launched


@pytest.mark.parametrize("shape", [(20,), (5, 4), (4, 1)], ids=str)
def test_a_weight_of_another_shape_is_what_it_is_without_kernels(shape, launched):
    x, weight = values(3, 4, 5), values(*shape, seed=1)
    try:
        wanted = layer_norm_from.value(*wide([x, weight]), axis=-2)
    except ValueError:
        with pytest.raises(InputError, match="layer_norm_from"):
            layer_norm_from(x, weight, axis=-2)
    else:
        close(layer_norm_from(x, weight, axis=-2), wanted, 32)
    assert not launched


@pytest.mark.parametrize("drops", [False, True])
@pytest.mark.parametrize("mask", ["none", "causal", "booleans", "keys", "numbers"])
@pytest.mark.parametrize(
    ("lead", "heads", "sizes"),
    [
        ((2,), (3, 3), (100, 300, 20, 7)),
        ((2,), (4, 2), (97, 257, 33, 40)),
        ((), (4, 1), (260, 65, 8, 16)),
        ((1,), (1, 1), (2, 3000, 17, 3)),
    ],
)
def test_attention_and_its_gradients(mask, drops, lead, heads, sizes, launched):
    queries, keys, size, width = sizes
    q = values(*lead, heads[0], queries, size, seed=1)
    k = values(*lead, heads[1], keys, size, seed=2)
    v = values(*lead, heads[1], keys, width, seed=3)
    random = np.random.default_rng(4)
    shown = None
    if mask == "booleans":
        shown = random.random((heads[0], queries, keys)) > 0.4
        shown[:, -1] = False  # a query that sees no key
    elif mask == "keys":
        shown = random.random((1, keys)) > 0.4
    elif mask == "numbers":
        shown = values(queries, keys, seed=5)
        shown[0] = -np.inf
    keep = random.random((*q.shape[:-1], keys)) > 0.3 if drops else None
    options = {"scale": 0.3, "is_causal": mask == "causal", "keep_factor": 1 / 0.7}
    y, kept = same_for_any_threads(
        lambda: attended_heads(q, k, v, shown, keep, **options)
    )
    exact = attended_heads.value(*wide((q, k, v)), shown, keep, **options)
    close(y, exact[0])
    close(kept, exact[1])
    g = values(*y.shape, seed=9)
    given = (q, k, v, shown, keep)

    class Masked:
        @staticmethod
        def value(*parts, **options):
            return attended_heads.value(*parts, shown, keep, **options)

    def pulled_back():
        needed = [True] * 3 + [False] * 2
        return attended_heads.pull((g, None), (y, kept), given, options, needed)[:3]

    grads = same_for_any_threads(pulled_back)
    assert {"attention", "attention_gradient"} <= set(launched)
    wide_given = (*wide((q, k, v)), shown, keep)
    needed = [True] * 3 + [False] * 2
    wanted = attended_heads.pull(
        (g.astype(np.float64), None), exact, wide_given, options, needed
    )
    for ours, want in zip(grads, wanted, strict=False):
        close(ours, want, 64)
    for place, grad in enumerate(grads):
        along = random.standard_normal(grad.shape)
        slopes = slope(Masked, (q, k, v), g, place, along, options)
        scale = np.linalg.norm(grad) * np.linalg.norm(along) + 1e-3
        assert abs((grad.astype(float) * along).sum() - slopes) < 1e-4 * scale


def test_recorded_attention_is_one_operator():
    shape = 1, 2, 70, 40
    parts = [
        burnish.Tensor(values(*shape, seed=i), device="cpu:autodiff").require_grad()
        for i in range(3)
    ]
    y = ops.scaled_dot_product_attention(*parts, is_causal=True)
    assert y.node.operator is attended_heads
    soft = ops.scaled_dot_product_attention(*parts, is_causal=True, softcap=3.0)
    assert soft.node.operator is not attended_heads
    found = ops.square(y).sum().backward(create_graph=True)
    again = ops.square(parts[0].grad(found)).sum().backward()
    assert np.isfinite(parts[0].grad(again).numpy()).all()
