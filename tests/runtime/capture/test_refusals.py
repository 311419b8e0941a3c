"""Refusals of captures and programs, and their messages."""

import numpy as np
import pytest

from burnish import Tensor, nn, ops, seed
from burnish.autodiff import backward
from burnish.capture import CaptureError, capture
from burnish.distributions import Bernoulli
from burnish.named import NamedTensor
from burnish.nn.attention.cache import TensorCache
from burnish.quantization import QuantScheme
from tests.runtime.capture.harness import equal, floats, network

X, Y = floats(2, 3), floats(2, 3)


# --- what would be a wrong number is refused where it happens ---

READS = {
    "float": lambda x: x * float(x.sum()),
    "int": lambda x: x * int(x.sum()),
    "bool": lambda x: x if x.sum() > 0 else -x,
    "and": lambda x: x.sum() > 0 and x,
    "item": lambda x: x * x.max().item(),
    "numpy": lambda x: Tensor(x.numpy() * 2),
    "tolist": lambda x: Tensor(x.tolist()),
    "asarray": lambda x: x + np.asarray(x),
    "stack": lambda x: Tensor(np.stack([x, x])),
    "data": lambda x: ops.where(x.data > 0, x, 0),
    "wrap": lambda x: x.wrap(x.data, x.device),
    "index": lambda x: [x, -x][x.sum().long()],
    "slice": lambda x: x[: x.sum().long()],
    "range": lambda x: [x for _ in range(x.sum().long())],
    "in": lambda x: x if x.sum() in [1.0] else -x,
    "max": lambda x: max(x[0, 0], x[0, 1]),
    "all_close": lambda x: x.all_close(x),
    "format": lambda x: f"{x.sum().item():.1f}",
    "copy": lambda x: Tensor(x),
    "dlpack": lambda x: np.from_dlpack(x),
    "quantize": lambda x: x.quantize(QuantScheme("q8f")).dequantize(),
}


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_reading_values_is_refused_with_the_place(read):
    with pytest.raises(CaptureError, match=r"test_refusals.py:\d+, in <lambda>: "):
        capture(read, X)


def test_a_refusal_names_the_layer_and_what_it_did():
    class Gate(nn.Module):
        def forward(self, x):
            return x if x.sum() > 0 else -x

    report = r"in .*Gate.forward: expected operators alone, got a look .* by bool\(\)"
    with pytest.raises(CaptureError, match=report):
        capture(nn.Sequential(Gate()), X)


NET = network()
OTHER_REFUSALS = {
    "a parameter": (lambda x: x * NET[0].weight.numpy()[0], "a look at the values of"),
    "a state": (lambda x: x * NET.state_dict()["0.bias"][0], "a look at the values of"),
    "backward": (lambda x: x.require_grad().sum().backward(), "backward"),
    "gradient": (lambda x: backward((x * 1).require_grad(), x), "backward"),
    "a draw": (lambda x: x + Bernoulli(0.5).draw(x.shape, x.dtype, x.device), "random"),
    "a seed": (lambda x: (seed(1), x)[1], "random numbers"),
    "capture": (lambda x: capture(ops.neg, x)(x), "a capture begins within"),
    "argument": (lambda x: x.inplace(lambda t: t + 1), "an argument is changed"),
    "outside": (lambda x: Y.inplace(lambda t: t + 1) + x, "from outside is changed"),
    "named": (lambda x: NamedTensor(x, "a", "b"), "got a NamedTensor"),
    "a generator": (lambda x: (x for _ in range(2)), "got a generator"),
    "cache": (lambda x: TensorCache().extend(x), "a cache grows"),
}


@pytest.mark.parametrize(
    ("function", "report"), OTHER_REFUSALS.values(), ids=OTHER_REFUSALS
)
def test_other_refusals(function, report):
    with pytest.raises(CaptureError, match=report):
        capture(function, X)
    equal(capture(lambda x: x + 1, X)(Y), Y + 1)  # nothing is left behind


@pytest.mark.parametrize(
    ("given", "report"),
    [
        (X.numpy(), "got a ndarray; put it into a Tensor"),
        ({1, 2}, "expected tensors, numbers and words .* got a set"),
        (NamedTensor(X, "a", "b"), "got a NamedTensor"),
    ],
)
def test_arguments_that_a_program_cannot_hold(given, report):
    with pytest.raises(CaptureError, match=report):
        capture(lambda x, other: x, X, given)


# --- what a run is given ---


def mixed(x, more, scale=1.0, *, shift=None):
    y = x * scale + more["first"] - more["rest"][1]
    return {"y": y, "parts": [y if shift is None else y + shift, x], "none": None}


def test_containers_numbers_and_words():
    more = {"first": Y, "rest": (X, X)}
    program = capture(mixed, X, more, 2.0, shift=Y)
    given = floats(2, 3), {"first": floats(2, 3), "rest": (Y, floats(2, 3))}
    got, want = (f(*given, 2.0, shift=X) for f in (program, mixed))
    equal(got["y"], want["y"])
    equal(got["parts"][0], want["parts"][0])
    assert got["parts"][1] is given[0]
    assert got["none"] is None


@pytest.mark.parametrize(
    ("args", "report"),
    [
        (
            (floats(3, 3), {"first": Y}, 2.0),
            r"x: float32 \(2, 3\), got float32 \(3, 3\)",
        ),
        ((X.double(), {"first": Y}, 2.0), r"x: float32 \(2, 3\), got float64 \(2, 3\)"),
        ((X.to("cpu:autodiff"), {"first": Y}, 2.0), "got .* on cpu:autodiff;"),
        ((X.require_grad(), {"first": Y}, 2.0), "on cpu:autodiff with requires_grad"),
        ((X, {"first": Y}, 3.0), "scale: 2.0, got 3.0"),
        ((X, {"first": Y}, 2), "scale: 2.0, got 2"),
        ((X, {"first": Y}), "scale: 2.0, got none"),
        ((X, {"second": Y}, 2.0), r"more\['first'\]: float32 \(2, 3\), got none"),
        ((X, {"first": Y}, 2.0, 1), "expected nothing else, got argument 3"),
        ((X, {"first": 1.0}, 2.0), r"more\['first'\]: float32 \(2, 3\), got 1.0"),
        ((X.numpy(), {"first": Y}, 2.0), "got a ndarray; put it into a Tensor"),
    ],
)
def test_arguments_of_another_kind_are_refused(args, report):
    def scaled(x, more, scale):
        return x * scale + more["first"]

    program = capture(scaled, X, {"first": Y}, 2.0)
    with pytest.raises(CaptureError, match=report):
        program(*args)


def test_one_tensor_given_twice_stays_two_arguments():
    program = capture(lambda a, b: a - b, X, X)
    equal(program(X, Y), X - Y)


def test_results_of_runs_share_nothing():
    program = capture(lambda x: x + 1, X)
    first = program(X)
    second = program(Y)
    equal(first, X + 1)
    equal(second, Y + 1)
