"""`export` of modules with loops that tensors end: ONNX's Loop."""

from __future__ import annotations

import importlib.util
import itertools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from burnish import Tensor, nn, ops
from burnish.codegen import Options, export, generate
from burnish.codegen.errors import ExportError
from tests.codegen.ops.test_control import DOUBLES, LOOP, WHILE
from tests.harness.exported import ran


class Net(nn.Module):
    """A function with a layer."""

    def __init__(self, function: Callable[..., Any]):
        self.function = function
        self.a = nn.Linear(4, 4)

    def forward(self, x: Tensor, n: Tensor) -> Any:
        return self.function(self, x, n)


def halved(m: Net, x: Tensor, n: Tensor) -> Any:
    while abs(x).sum() > 1:
        x = x / 2
    return x + 1


def until(m: Net, x: Tensor, n: Tensor) -> Any:
    y = x
    small = abs(x).max() < 0.5
    while not small:
        y = m.a(y) * 0.1
        x = x + y
        small = abs(y).max() < 0.5
    return x, y


def counted(m: Net, x: Tensor, n: Tensor) -> Any:
    for _ in range(n.item()):
        x = ops.tanh(m.a(x))
    return x


def with_numbers(m: Net, x: Tensor, n: Tensor) -> Any:
    y = x
    for i in range(int(n)):
        y = y * Tensor(np.float32(i + 1)) + x
    return y


def fibonacci(m: Net, x: Tensor, n: Tensor) -> Any:
    a, b = x * 0, x
    for _ in range(n):
        a, b = b, a + b
    return a, b


def listed(m: Net, x: Tensor, n: Tensor) -> Any:
    states = []
    for _ in range(n.item()):
        x = m.a(x)
        states.append(x.sum())
    return ops.stack(states, empty=Tensor.zeros(0)), x


def stopped(m: Net, x: Tensor, n: Tensor) -> Any:
    for _ in range(n.item()):
        if x.sum() > 20:
            break
        x = x + 1
    return x * 2


def going(m: Net, x: Tensor, n: Tensor) -> Any:
    more = x.sum() < 5
    for _ in range(n.item()):
        if not more:
            break
        x = x + 1
        more = x.sum() < 5
    return x, more


def with_if(m: Net, x: Tensor, n: Tensor) -> Any:
    for _ in range(n.item()):
        x = x - n.float() if x.sum() > 0 else m.a(x) + 2
    return x


def while_with_if(m: Net, x: Tensor, n: Tensor) -> Any:
    k = n * 0
    while k < n:
        if x.max() > 1:
            x = x / 2
        k = k + 1
    return x, k


def one_after_another(m: Net, x: Tensor, n: Tensor) -> Any:
    for _ in range(n.item()):
        x = x + 1
    while x.sum() > 3:
        x = x - 2
    return x


def one_in_the_other(m: Net, x: Tensor, n: Tensor) -> Any:
    for _ in range(n.item()):
        x = x + 1
        while x.sum() > 3:
            x = x - 2
    return x


def in_an_if(m: Net, x: Tensor, n: Tensor) -> Any:
    y = x
    if x.sum() > 0:
        for _ in range(n.item()):
            y = y * 2
    return y + 1


def last(m: Net, x: Tensor, n: Tensor) -> Any:
    """Something of the last round alone, which the body never reads."""
    y = x
    for _ in range(n.item()):
        y = x * 3
    return y


FUNCTIONS = (
    halved, until, counted, with_numbers, fibonacci, stopped, going, with_if,
    while_with_if, one_after_another, one_in_the_other,
    in_an_if, last,
)  # fmt: skip
ANY = {"x": {0: "batch"}}

LISTS = pytest.mark.oracle("onnxruntime")
"""ONNX's evaluator collects nothing of no rounds."""
LISTED = pytest.param(listed, marks=LISTS, id="listed")


@pytest.mark.parametrize(
    ("dynamic", "functions"),
    [(None, False), (ANY, False), (None, True)],
    ids=["fixed", "any", "functions"],
)
@pytest.mark.parametrize("function", [*FUNCTIONS, LISTED], ids=lambda f: f.__name__)
def test_any_number_of_rounds(function: Any, dynamic: Any, functions: bool) -> None:
    module = Net(function)
    given = np.ones((2, 4), np.float32), np.int64(2)
    made = export(module, *given, dynamic=dynamic, functions=functions)
    onnx.checker.check_model(onnx.load_from_string(made.to_bytes()), full_check=True)
    for rounds in (0, 1, 2, 5, 9):
        draws = np.random.default_rng(rounds)
        rows = 2 if dynamic is None else rounds + 1
        x = (draws.standard_normal((rows, 4)) * 2).astype(np.float32)
        expected = module(Tensor(x), Tensor(np.int64(rounds)))
        expected = expected if isinstance(expected, tuple) else (expected,)
        for one, other in zip(ran(made, x, np.int64(rounds)), expected, strict=True):
            assert one.shape == other.shape
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)


GENERATED = {
    LOOP: [(np.ones(2, np.float32), np.int64(n)) for n in (0, 1, 3, 7)],
    WHILE: [(np.float32(3), np.float32(n)) for n in (1, 20, 100)],
    DOUBLES: [(np.float32([1, 3]), np.float32(n)) for n in (0, 10, 100)],
}


@pytest.mark.parametrize(
    "text",
    [pytest.param(t, marks=LISTS if t is LOOP else ()) for t in GENERATED],
    ids=["loop", "while", "doubles"],
)
def test_generated_loops_go_back(text: str, tmp_path: Path) -> None:
    path = tmp_path / "rounds.onnx"
    onnx.save(onnx.parser.parse_model(text), path)
    source = generate(path, Options(embed=True)).text
    (tmp_path / "rounds.py").write_text(source)
    spec = importlib.util.spec_from_file_location("rounds_back", tmp_path / "rounds.py")
    assert spec is not None
    assert spec.loader is not None
    code = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "rounds_back", code)
        spec.loader.exec_module(code)
        module = code.Model.from_embedded()
    made = export(module, *GENERATED[text][0], dynamic={})
    kinds = {n.op_type for n in onnx.load_from_string(made.to_bytes()).graph.node}
    assert "Loop" in kinds
    for given in GENERATED[text]:
        for one, other in zip(ran(made, *given), module(*given), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5)
    made.save(path)
    again = generate(path, Options(embed=True)).text
    header = "for " if text is LOOP else "while going:"
    assert header in source
    assert header in again


class Counter:
    """State in an object that every call makes anew."""

    def __init__(self) -> None:
        self.rounds = 0

    def step(self, x: Tensor) -> Tensor:
        self.rounds += 1
        return x * 2 if self.rounds > 4 else x + 1


ROUNDS: list[int] = []


def counts_in_a_global(x: Tensor) -> Tensor:
    ROUNDS.append(1)
    return x * 2 if len(ROUNDS) > 4 else x + 1


def decides(x: Tensor, i: int) -> Tensor:
    return x * 2 if i == 7 else x + 1


def scaled(x: Tensor, i: int, rate: float = 0.5) -> Tensor:
    return x + Tensor(np.float32(i + 1)) * (rate if rate > 0 else 1.0)


def of_an_object(m: Net, x: Tensor, n: Tensor) -> Any:
    counter = Counter()
    for _ in range(n.item()):
        x = counter.step(x)
    return x


def of_an_attribute(m: Any, x: Tensor, n: Tensor) -> Any:
    m.rounds = 0

    def step(x: Tensor) -> Tensor:
        m.rounds += 1
        return m.a(x) if m.rounds > 4 else x + 1

    while x.sum() < 100:
        x = step(x)
    return x


def of_a_closure(m: Net, x: Tensor, n: Tensor) -> Any:
    rounds: list[int] = []

    def step(x: Tensor) -> Tensor:
        rounds.append(1)
        return x * 2 if len(rounds) > 4 else x + 1

    for _ in range(n.item()):
        x = step(x)
    return x


def of_a_global(m: Net, x: Tensor, n: Tensor) -> Any:
    ROUNDS.clear()
    for _ in range(n.item()):
        x = counts_in_a_global(x)
    return x


def of_an_iterator(m: Net, x: Tensor, n: Tensor) -> Any:
    factors = itertools.chain([1, 1, 1, 1], itertools.repeat(2))
    places = itertools.count()
    for _ in range(n.item()):
        x = x * next(factors) + 0 * next(places)
    return x


def of_a_list(m: Net, x: Tensor, n: Tensor) -> Any:
    states = [x]
    for _ in range(n.item()):
        x = x * 2 if len(states) > 4 else x + 1
        states.append(x)
    return x


def of_an_argument(m: Net, x: Tensor, n: Tensor) -> Any:
    for i in range(n.item()):
        x = decides(x, i)
    return x


HIDDEN = (
    of_an_object, of_an_attribute, of_a_closure, of_a_global, of_an_iterator,
    of_a_list, of_an_argument,
)  # fmt: skip


@pytest.mark.parametrize("function", HIDDEN, ids=lambda f: f.__name__)
def test_state_that_outlives_a_round_is_refused(function: Any) -> None:
    """Rounds that are alike at first say nothing of later ones then."""
    message = r"test_loops\.py:\d+: .*(changed to the next,|decides by|keeps 'rounds')"
    with pytest.raises(ExportError, match=message):
        export(Net(function), np.ones((2, 4), np.float32), np.int64(2))


def of_numbers_and_settings(m: Net, x: Tensor, n: Tensor) -> Any:
    """A counted number in a function that only reckons with it; constants around."""
    settings = {"rate": 0.25, "blocks": [m.a, m.a]}

    def step(x: Tensor, i: int) -> Tensor:
        for block in settings["blocks"]:  # type: ignore[attr-defined]
            x = ops.tanh(block(x))
        return scaled(x, i, settings["rate"])  # type: ignore[arg-type]

    for i in range(n.item()):
        x = step(x, i)
    return x


def test_what_stays_between_rounds_is_no_state() -> None:
    module = Net(of_numbers_and_settings)
    x = np.ones((2, 4), np.float32)
    made = export(module, x, np.int64(2))
    for rounds in (0, 1, 5):
        expected = module(Tensor(x), Tensor(np.int64(rounds)))
        (found,) = ran(made, x, np.int64(rounds))
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def of_several(m: Net, x: Tensor, n: Tensor) -> Any:
    while x.sum() > 1 and x.max() > 2:
        x = x / 2
    return x


def of_its_number(m: Net, x: Tensor, n: Tensor) -> Any:
    for i in range(n.item()):
        x = x + 1 if i == 7 else x * 2
    return x


def of_a_count(m: Net, x: Tensor, n: Tensor) -> Any:
    k = 0
    while x.sum() < 100:
        k += 1
        if k == 7:
            x = x * 2
        x = x + 1
    return x


def of_a_part(m: Net, x: Tensor, n: Tensor) -> Any:
    for i in range(n.item()):
        x = x + Tensor(np.float32(i // 4))
    return x


def growing(m: Net, x: Tensor, n: Tensor) -> Any:
    for _ in range(n.item()):
        x = ops.concat([x, x])
    return x


def by_number(m: Net, x: Tensor, n: Tensor) -> Any:
    y = x[:, 0]
    for i in range(n.item()):
        y = y + x[:, i]
    return y


def joined(m: Net, x: Tensor, n: Tensor) -> Any:
    states = [x]
    for _ in range(n.item()):
        states.append(states[-1] + 1)
    return ops.concat(states)


def squares(m: Net, x: Tensor, n: Tensor) -> Any:
    for i in range(n.item()):
        x = x + Tensor(np.float32(i * i))
    return x


def left(m: Net, x: Tensor, n: Tensor) -> Any:
    while x.sum() > 1:
        x = x / 2
        if x.max() < 0:
            return x
    return x


REFUSED = {
    of_several: "join them with &",
    of_its_number: "decides by i in Python",
    of_a_count: "decides by k in Python",
    of_a_part: "decides by i in Python",
    growing: r"tensor \(2, 4\), then \(4, 4\), then \(8, 4\); .*ops\.stack",
    by_number: "getitem of other numbers",
    joined: r"ops\.stack\(list\) alone",
    squares: "do not grow evenly",
    left: r"expected",
}


@pytest.mark.parametrize("function", REFUSED, ids=lambda f: f.__name__)
def test_what_is_refused_says_where(function: Any) -> None:
    with pytest.raises(
        ExportError, match=rf"test_loops\.py:\d+: .*{REFUSED[function]}"
    ):
        export(Net(function), np.ones((2, 4), np.float32), np.int64(2))
