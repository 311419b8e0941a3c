"""Formulas written down for kernels: compiled as C they give what NumPy gives."""

import ctypes
import inspect
import shutil
import subprocess
from functools import partial

import numpy as np
import pytest

from burnish import ops, optim
from burnish.backend.cuda.convolution.windows import _divisor
from burnish.backend.cuda.elementwise import fused
from burnish.backend.cuda.kernels import render
from burnish.backend.symbols import Script, Unwritten
from burnish.operator import registry
from burnish.ops import _gpu as _gpu  # registers kernels for CuPy's arrays
from burnish.ops._kernels import slopes
from burnish.ops.activation import piecewise, smooth
from burnish.optim.rules import statements
from burnish.optim.rules.elementwise import Elementwise
from burnish.optim.rules.traces import Traces
from tests.runtime.plan.test_updates_formulas import FACTORS

COMPILER = shutil.which("cc")
X = np.linspace(-5, 5, 101)
G = np.cos(X)
HEAD = """#include <math.h>
#include <stdbool.h>
typedef double wide;
static double normal_share(double x) { return 0.5 * erfc(-x * 0.70710678118654752440); }
"""

needs_compiler = pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")


def compiled(source, folder):
    path = folder / "formula.c"
    path.write_text(HEAD + source, "utf-8")
    library = folder / "formula.so"
    command = [COMPILER, "-shared", "-fPIC", "-o", library, path, "-lm"]
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(library)).run


def pointer(array):
    return array.ctypes.data_as(ctypes.c_void_p)


FORMULAS = [
    (smooth._gelu, True, (X,), ops.gelu(X)),
    (smooth._gelu_tanh, True, (X,), ops.gelu(X, approximate="tanh")),
    (smooth._sigmoid, True, (X, 1), ops.sigmoid(X)),
    (smooth._swish, True, (X, 1.0), ops.swish(X)),
    (smooth._softplus, True, (X,), ops.softplus(X)),
    (smooth._exponential, True, (X, 0.5, 2.0), None),
    (piecewise._hard_swish, True, (X,), ops.hard_swish(X)),
    (piecewise._ramp, True, (X, 0.2, 0.5), ops.hard_sigmoid(X)),
    (piecewise._leaking, True, (X, 0.1, True), ops.leaky_relu(X, negative_slope=0.1)),
    (piecewise._shrunk, True, (X, 0.5, 0.7), ops.shrink(X, bias=0.5, lambd=0.7)),
    (smooth._gelu_tanh_slope, False, (G, X), None),
    (smooth._exponential_slope, False, (G, X, 0.5, 1), None),
    (slopes._gelu_slope, True, (X, G, ops.gelu(X)), None),
    (slopes._swish_slope, True, (X, G, ops.swish(X), 1.0), None),
    (slopes._hard_swish_slope, True, (X, G), None),
    (slopes._gated, True, (G, X, 0, 3, 2), None),
]


@needs_compiler
@pytest.mark.parametrize(("formula", "writes", "given", "want"), FORMULAS)
def test_formulas(formula, writes, given, want, tmp_path):
    if want is None:
        want = np.empty_like(X)
        if writes:
            formula(want, *given)
        else:
            want = formula(*given)
    arrays = [a for a in given if isinstance(a, np.ndarray)]
    kinds = [("float64", "same") if isinstance(a, np.ndarray) else a for a in given]
    body, kind = fused.written(formula, np.float64, writes, kinds)
    assert kind == "wide"
    takes = "".join(f"const double* a{i}, " for i in range(len(arrays)))
    loads = "".join(f"wide x{i} = a{i}[i];\n" for i in range(len(arrays)))
    source = f"void run({takes}double* out, int n) {{ for (int i = 0; i < n; i++) {{"
    source += loads + "wide y = 0;\n" + "\n".join(body) + "\nout[i] = y; }}"
    y = np.empty_like(X)
    compiled(source, tmp_path)(*map(pointer, arrays), pointer(y), len(X))
    np.testing.assert_allclose(y, want, 1e-12, 1e-14)


RULES = [
    optim.SGD(momentum=0.9, nesterov=True, weight_decay=0.1),
    optim.Adam(amsgrad=True, weight_decay=0.1),
    optim.AdamW(cautious_weight_decay=True),
    optim.Adamax(),
    optim.NAdam(),
    optim.RAdam(),
    optim.RMSprop(centered=True, momentum=0.1),
    optim.Adagrad(lr_decay=0.1),
    optim.Adadelta(),
    optim.Rprop(),
    optim.Adan(weight_decay=0.1),
]


@needs_compiler
@pytest.mark.parametrize("step", [1, 9])
@pytest.mark.parametrize("rule", RULES, ids=str)
def test_optimizers(rule, step, tmp_path):
    slots = rule.slots()
    state = {slot: np.abs(np.sin(X + i)) + 0.1 for i, slot in enumerate(slots)}
    if "square" in state:
        state["square"] += 2  # a mean of squares is no less than the mean's square
    mine = {slot: array.copy() for slot, array in state.items()}
    traces = Traces(partial(statements.traced, dtype=np.dtype(np.float64)))
    traces.at(rule, 5, 3e-2)  # what is traced at another step serves this one
    script = traces.at(rule, step, 1e-2)
    slots_in = "".join(f"double* b{i}, " for i in range(len(slots)))
    source = f"void run(const double* a, const double* g, {slots_in}"
    source += "double* out, const double* constant, int n) {"
    source += "for (int i = 0; i < n; i++) { wide x0 = a[i], x1 = g[i], y = 0;\n"
    source += "".join(f"wide s{i} = b{i}[i];\n" for i in range(len(slots)))
    source += "\n".join(script.lines)
    source += "".join(f"\nb{i}[i] = s{i};" for i in range(len(slots)))
    source += "\nout[i] = y; }}"
    constants, y, want = np.array([*script.constants, 0.0]), X.copy(), X.copy()
    arrays = [X, G, *mine.values(), y, constants]
    compiled(source, tmp_path)(*map(pointer, arrays), len(X))
    rule.write(want, X, G, state | {"step": step}, 1e-2)
    np.testing.assert_allclose(y, want, 1e-12, 1e-14)
    for slot in slots:
        np.testing.assert_allclose(mine[slot], state[slot], 1e-12, 1e-14)


@pytest.mark.parametrize("is_of_class", [False, True])
@pytest.mark.parametrize("factor", FACTORS)
def test_statements_of_a_rule_follow_step_rate_and_options(factor, is_of_class):
    class Rule(Elementwise):
        share = 1.0

        def write(self, new, weight, grad, state, rate):
            made = self.share * FACTORS[factor](state["step"], rate)
            new[...] = weight - made * grad

    rule = Rule()
    owner = Rule if is_of_class else rule
    traces = Traces(partial(statements.traced, dtype=np.dtype(np.float64)))
    for step in range(1, 7):
        owner.share, rate = 0.5 if step > 4 else 1.0, 0.05 + 0.01 * step
        script = Script(np.float64, named=True)
        y, x, g = map(script.variable, ("y", "x0", "x1"))
        rule.write(y, x, g, {"step": step}, rate)
        found = traces.at(rule, step, rate)
        assert found == (tuple(script.lines), tuple(script.constants))


def test_a_rule_is_traced_once_for_many_steps(monkeypatch):
    made = []

    def traced(*given, original=statements.traced, **options):
        made.append(given)
        return original(*given, **options)

    monkeypatch.setattr(statements, "traced", traced)
    rule = optim.Adam()
    for step in range(1, 20):
        assert rule._stated(np.dtype(np.float32), step, 1e-3 / step) is not None
    assert len(made) == 2  # the second shows whether it draws random numbers


def test_an_error_of_a_rule_is_the_users():
    class Rule(Elementwise):
        def write(self, new, weight, grad, state, rate):
            new[...] = weight - rate * self.missing * grad

    with pytest.raises(AttributeError, match="missing"):
        Rule()._stated(np.dtype(np.float32), 1, 1e-3)


@pytest.mark.parametrize("by", [1, 2, 3, 7, 9, 49, 224, 3136, 65537, (1 << 31) - 1])
def test_a_product_and_a_shift_divide(by):
    _, factor, shift = _divisor(by)
    most = (1 << 31) - 1
    near = (k * by + d for k in (0, 1, 2, 1000, most // by) for d in (-1, 0, by - 1))
    for n in (*near, 12345678, most):
        if 0 <= n <= most:
            total = (n * factor >> 32) + n
            assert total < 1 << 32
            assert total >> shift == n // by


def test_what_a_kernel_cannot_say():
    script = Script(np.float32)
    x = script.variable("x0")
    for wrong in (
        lambda: bool(x > 0),
        lambda: x[1:],
        lambda: x + np.ones(3),
        lambda: x.sum(),
        lambda: x.reshape(2, 3),
    ):
        with pytest.raises((Unwritten, TypeError)):
            wrong()


def test_how_arrays_repeat():
    assert fused.repeated((5,), (3, 4, 5)) == (1, 5)
    assert fused.repeated((4, 1), (3, 4, 5)) == (5, 4)
    assert fused.repeated((3, 1, 1), (3, 4, 5)) == (20, 3)
    assert fused.repeated((1, 1), (3, 4, 5)) == (1, 1)
    assert fused.repeated((3, 1, 5), (3, 4, 5)) is None


def test_templates_are_installed_with_the_package():
    assert 'extern "C" __global__ void keep_mask' in render(
        "keep_mask", in_memory=False
    )


KERNELS = [op for op in registry.values() if "cupy" in op.kernels]


@pytest.mark.parametrize("op", KERNELS, ids=str)
def test_kernels_take_what_operators_take(op):
    def taken(function):
        words = inspect.signature(function).parameters.values()
        return [(word.name, word.default) for word in words]

    plain, kernel = taken(op.value), taken(op.kernels["cupy"])
    assert [word[0] for word in plain] == [word[0] for word in kernel]
    for one, other in zip(plain, kernel, strict=True):
        assert other[1] in (one[1], inspect.Parameter.empty)
    by_name = inspect.signature(op.kernels["cupy"]).parameters
    assert all(by_name[o].kind is inspect.Parameter.KEYWORD_ONLY for o in op.defaults)


PREPARED = [op for op in registry.values() if op.prepare is not None]


@pytest.mark.parametrize("op", PREPARED, ids=str)
def test_what_is_prepared_takes_what_operators_take(op):
    plain = inspect.signature(op.value).parameters
    words = inspect.signature(op.prepare).parameters
    assert [*words][: len(plain)] == [*plain]
    assert all(words[name].default == plain[name].default for name in plain)
    assert all(words[o].kind is inspect.Parameter.KEYWORD_ONLY for o in op.defaults)


@pytest.mark.parametrize("op", registry.values(), ids=str)
def test_rules_for_a_gpu_take_what_plain_rules_take(op):
    for name, (rule, names) in op.rules_on.get("cupy", {}).items():
        plain, others = op.rules[name]
        assert names == others or len(names) == 1
        taken = inspect.signature(rule).parameters
        assert [*taken] == [*inspect.signature(plain).parameters]
