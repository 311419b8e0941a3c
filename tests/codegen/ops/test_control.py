"""If, Loop and Scan: Python's control flow, and weights inside bodies train."""

import types

import numpy as np
import onnx
import pytest

from burnish import Tensor
from burnish.codegen.pipeline import Options, generate
from tests.harness.ruff import complaints

LOOP = """
<ir_version: 10, opset_import: ["" : 21]>
loops (float[2] x, int64 n) => (float[2] y, float[T, 2] steps)
<float[2, 2] weight = {1.0, 0.5, -0.5, 1.0}, bool yes = {1}> {
  y, steps = Loop (n, yes, x) <body = b (int64 i, bool going, float[2] h)
    => (bool still, float[2] next, float[2] seen) {
      still = Identity (going)
      moved = MatMul (h, weight)
      next = Tanh (moved)
      seen = Identity (next)
    }>
}
"""
WHILE = """
<ir_version: 10, opset_import: ["" : 21]>
doubles (float x, float limit) => (float y, int64 count)
<float one = {1}, float two = {2}, int64 zero = {0}, bool yes = {1}> {
  y, count = Loop (, yes, x, zero) <body = b (int64 i, bool going, float h, int64 k)
    => (bool still, float next, int64 kept) {
      next = Mul (h, two)
      still = Less (next, limit)
      kept = Identity (i)
    }>
}
"""
BRANCHES = """
<ir_version: 10, opset_import: ["" : 21]>
branches (float[2] x, bool up) => (float[N] y)
<float[2] weight = {3.0, 4.0}> {
  y = If (up) <
    then_branch = t () => (float[2] a) { a = Mul (x, weight) },
    else_branch = e () => (float[4] b) { b = Concat <axis: int = 0> (x, weight) }
  >
}
"""

CHAIN = """
<ir_version: 10, opset_import: ["" : 21]>
chain (float[2] x, bool a, bool b) => (float[2] y) {
  y = If (a) <then_branch = t () => (float[2] t) { t = %s },
              else_branch = e () => (float[2] e) { e = %s }>
}
"""
INNER = """If (b) <
  then_branch = m () => (float[2] p) { p = Exp (x) },
  else_branch = n () => (float[2] q) { q = Neg (x) }>"""


def model(text, folder, device="cpu"):
    path = folder / "case.onnx"
    onnx.save(onnx.parser.parse_model(text), path)
    made = generate(path, Options(embed=True))
    module = types.ModuleType("case")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(__import__("sys").modules, "case", module)
        exec(made.text, vars(module))
        return module.Model.from_embedded().to(device), made.text


@pytest.mark.parametrize("count", [1, 3])
def test_a_loop_that_never_stops_early_is_a_for(count, tmp_path):
    net, text = model(LOOP, tmp_path)
    y, steps = net(Tensor(np.ones(2, np.float32)), Tensor(np.int64(count)))
    h, weight = np.ones(2), np.array([[1, 0.5], [-0.5, 1]])
    for step in range(count):
        h = np.tanh(h @ weight)
        np.testing.assert_allclose(steps.numpy()[step], h, rtol=1e-5)
    np.testing.assert_allclose(y.numpy(), h, rtol=1e-5)
    assert " in range(" in text
    assert "while" not in text


def test_a_loop_that_never_runs_gives_an_empty_result(tmp_path):
    net, text = model(LOOP, tmp_path)
    y, steps = net(Tensor(np.ones(2, np.float32)), Tensor(np.int64(0)))
    assert y.tolist() == [1, 1]
    assert (steps.shape, steps.dtype) == ((0, 2), np.float32)
    assert "empty=Tensor.zeros(0, 2, device=self.device)" in text


def test_what_surely_runs_needs_no_empty_result(tmp_path):
    three = LOOP.replace("int64 n)", "int64 m)").replace(
        "bool yes = {1}", "bool yes = {1}, int64 n = {3}"
    )
    assert "empty" not in model(three, tmp_path)[1]


SCAN = """
<ir_version: 10, opset_import: ["" : 21]>
sums (int64 start, int64[T] x) => (int64 y, int64[T] sums) {
  y, sums = Scan <num_scan_inputs = 1, body = b (int64 h, int64 item)
    => (int64 next, int64 seen) {
      next = Add (h, item)
      seen = Identity (next)
    }> (start, x)
}
"""


@pytest.mark.parametrize("items", [[], [3, 4]])
def test_a_scan_of_any_length(items, tmp_path):
    net, _ = model(SCAN, tmp_path)
    y, sums = net(Tensor(np.int64(1)), Tensor(np.array(items, np.int64)))
    assert y.item() == 1 + sum(items)
    assert sums.dtype == np.int64
    assert sums.tolist() == np.cumsum([1, *items])[1:].tolist()


def test_weights_of_a_body_have_gradients(tmp_path):
    net, _ = model(LOOP, tmp_path, "cpu:autodiff")
    y, _ = net(Tensor(np.ones(2, np.float32)), Tensor(np.int64(2)))
    (weight,) = net.parameters()
    gradient = weight.grad(y.sum().backward())
    assert gradient.shape == (2, 2)
    assert (gradient.numpy() != 0).all()


def test_a_condition_of_the_body_is_a_while(tmp_path):
    net, text = model(WHILE, tmp_path)
    y, count = net(Tensor(np.float32(3)), Tensor(np.float32(20)))
    assert (y.item(), count.item()) == (24.0, 2)
    assert count.dtype == np.int64
    assert "while" in text


ASKED = """
<ir_version: 10, opset_import: ["" : 21]>
asked (float x, int64 n) => (float y, float[T] seen)
<float two = {2}, bool yes = {1}> {
  y, seen = Loop (n, COND, x) <body = b (int64 i, bool going, float h)
    => (bool still, float next, float seen) {
      next = Mul (h, two)
      stop = Not (going)
      seen = Cast <to = 1> (stop)
      still = Or (stop, going)
    }>
}
"""


@pytest.mark.parametrize("condition", ["", "yes"])
def test_a_body_computes_with_what_it_asks(condition, tmp_path):
    net, _ = model(ASKED.replace("COND", condition), tmp_path)
    y, seen = net(Tensor(np.float32(1)), Tensor(np.int64(3)))
    assert (y.item(), seen.tolist()) == (8, [0, 0, 0])


@pytest.mark.parametrize(("up", "expected"), [(True, [3, 8]), (False, [1, 2, 3, 4])])
def test_branches_may_differ_in_shape(up, expected, tmp_path):
    net, _ = model(BRANCHES, tmp_path)
    y = net(Tensor(np.array([1, 2], np.float32)), Tensor(np.bool_(up)))
    assert y.tolist() == expected


def test_weights_of_a_branch_have_gradients(tmp_path):
    net, _ = model(BRANCHES, tmp_path, "cpu:autodiff")
    y = net(Tensor(np.array([1, 2], np.float32)), Tensor(np.bool_(True)))
    (weight,) = net.parameters()
    assert weight.grad(y.sum().backward()).tolist() == [1, 2]


DOUBLES = """
<ir_version: 10, opset_import: ["" : 21]>
doubles (float[N] x, float limit) => (float[N] y, int64 count)
<float two = {2}, int64 zero = {0}, int64 one = {1}> {
  a = Relu (x)
  first = ReduceMax <keepdims: int = 0> (a)
  small = Less (first, limit)
  y, count = Loop (, small, a, zero) <body = b (int64 i, bool going, float[N] h,
    int64 k) => (bool still, float[N] next, int64 more) {
      next = Mul (h, two)
      most = ReduceMax <keepdims: int = 0> (next)
      still = Less (most, limit)
      more = Add (k, one)
    }>
}
"""


def test_a_while_begins_with_what_it_asks_and_counts_in_integers(tmp_path):
    module, text = model(DOUBLES, tmp_path)
    assert ' = Tensor(0, dtype="int64", device=self.device)\n' in text
    assert ".max() < limit\n        while " in text, text
    y, count = module(np.float32([1, 3]), np.float32(10))
    np.testing.assert_array_equal(np.asarray(y), [4, 12])
    assert (np.asarray(count), count.dtype) == (2, np.int64)
    y, count = module(np.float32([1, 30]), np.float32(10))
    np.testing.assert_array_equal(np.asarray(y), [1, 30])
    assert np.asarray(count) == 0


@pytest.mark.parametrize(
    ("ways", "lines"),
    [
        (("Tanh (x)", INNER), ["if a:", "elif b:", "else:"]),
        (("Tanh (x)", "Neg (x)"), []),
    ],
    ids=["else if", "one line"],
)
def test_choices_inside_choices_are_branches(ways, lines, tmp_path):
    module, text = model(CHAIN % ways, tmp_path)
    said = [line.strip() for line in text.splitlines()]
    assert [s for s in said if s.startswith(("if ", "elif ", "else:"))] == lines, text
    assert not complaints(text, "SIM"), text
    x = np.float32([0.5, 2])
    known = {"Tanh (x)": np.tanh(x), "Neg (x)": -x}
    for a in (True, False):
        for b in (True, False):
            want = known.get(ways[0 if a else 1], np.exp(x) if b else -x)
            got = module(Tensor(x), *map(Tensor, map(np.array, (a, b))))
            np.testing.assert_allclose(got.numpy(), want, rtol=1e-6)


def _chain(depth, length=24):
    """`if c0: x + 0, elif c1: x + 1` and so on: a switch with many cases."""
    if depth == length:
        return f"y{depth} = Neg (x)"
    inner = _chain(depth + 1, length)
    return f"""y{depth} = If (c{depth}) <
        then_branch = t () => (float[2] t{depth}) {{ t{depth} = Add (x, k{depth}) }},
        else_branch = e () => (float[2] y{depth + 1}) {{ {inner} }}>"""


def test_a_chain_of_many_choices_is_laid_out_in_linear_time(tmp_path):
    """Each level laid out its else twice: 24 levels took hours."""
    flags = ", ".join(f"bool c{i}" for i in range(24))
    held = ", ".join(f"float k{i} = {{{i}}}" for i in range(24))
    header = '<ir_version: 10, opset_import: ["" : 21]>'
    graph = f"chain (float[2] x, {flags}) => (float[2] y0) <{held}> {{ {_chain(0)} }}"
    module, text = model(header + graph, tmp_path)
    assert text.count(" elif ") == 23, text
    given = [Tensor(np.array(i == 20)) for i in range(24)]
    np.testing.assert_array_equal(module(Tensor(np.float32([1, 2])), *given), [21, 22])
