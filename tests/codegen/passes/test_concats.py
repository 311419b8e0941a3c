"""Concats that start alike follow each other, with the same numbers."""

from __future__ import annotations

import numpy as np
import pytest

from burnish.codegen.account import Account
from burnish.codegen.passes.cse.chain_concats import chain_concats
from tests.codegen.passes.models import RANDOM, model_of, run

CASES = [
    # (text, inputs of each Concat afterwards)
    (
        "a = Relu(x) p = Concat<axis=1>(x, a) b = Neg(p) "
        "q = Concat<axis=1>(x, a, b) c = Neg(q) y = Concat<axis=1>(x, a, b, c)",
        [2, 2, 2],
    ),
    (  # other axes, other orders
        "a = Relu(x) p = Concat<axis=0>(x, a) q = Concat<axis=1>(a, x) "
        "c = Abs(p) y0 = Concat<axis=1>(a, x, x) "
        "s = ReduceSum<keepdims=0>(y0) y1 = Abs(c) y = Mul(y1, s)",
        [2, 2, 2],
    ),
    (  # the same twice is not shorter, an end that is alike is no start
        "a = Relu(x) p = Concat<axis=1>(x, a) q = Concat<axis=1>(x, a) "
        "r = Concat<axis=1>(a, x, a) s = ReduceSum<keepdims=0>(r) t = Add(p, q) "
        "y = Mul(t, s)",
        [2, 2, 3],
    ),
]


@pytest.mark.parametrize(("text", "lengths"), CASES)
def test_concats(text, lengths):
    model = model_of(text, x="2, 3")
    feeds = {"x": RANDOM.normal(size=(2, 3)).astype(np.float32)}
    before = run(model, feeds)
    chain_concats(model, Account())
    assert not chain_concats(model, Account())
    concats = [node for node in model.graph if node.op_type == "Concat"]
    assert [len(node.inputs) for node in concats] == lengths
    np.testing.assert_array_equal(run(model, feeds)[0], before[0])
