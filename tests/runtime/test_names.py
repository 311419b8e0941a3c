"""Names that NumPy or PyTorch has too: same arguments in the same order, same meaning.

Every public function of `burnish.ops` and `burnish.nn` and every layer is looked up in
NumPy, then in PyTorch; one of those that have the name has to agree. Options that have
no meaning here (`out`, `inplace`) are left out; others may be missing at the end.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from burnish import ops

pytestmark = pytest.mark.oracle
torch = pytest.importorskip("torch")
F = torch.nn.functional

EXCEPTIONS = {
    "stft": "no complex numbers: pairs in the last axis, frames first, as ONNX",
    "istft": "no complex numbers: pairs in the last axis, frames first, as ONNX",
    "norm": "one p for vectors, as F.normalize; no matrix norms",
    "unfold": "a tensor's method in PyTorch; F.unfold is im2col",
    "diag_embed": "always the last two axes",
    "batch_norm": "of given statistics; nn.BatchNorm2d has those of training",
}
"""Functions that neither agrees with, and why."""

WORDS = {
    **dict.fromkeys(("dim", "dims", "axes", "dim0", "axis0", "shifts"), "axis"),
    **dict.fromkeys(("input", "a", "x1", "A", "m", "v", "ary", "arr", "array"), "x"),
    **dict.fromkeys(("tensor", "self", "arrays", "tensors", "operands", "xi"), "x"),
    **dict.fromkeys(("other", "b", "x2", "B", "vec2", "exponent", "y"), "b"),
    **dict.fromkeys(("query", "key", "value", "q", "k_", "condition"), "x"),
    **dict.fromkeys(("keepdim",), "keepdims"),
    **dict.fromkeys(("reps", "repetitions"), "repeats"),
    **dict.fromkeys(("start_dim", "end_dim"), "axis"),
    **dict.fromkeys(("start_axis", "end_axis", "axis1", "axis2", "dim1"), "axis"),
    **dict.fromkeys(("split_size_or_sections",), "sizes"),
}
ABSENT = {"out", "inplace", "dtype", "where", "casting", "order", "subok", "signature"}
ABSENT |= {"size_average", "reduce", "device", "layout", "requires_grad", "pin_memory"}
ABSENT |= {"ddof"}  # NumPy's older word for correction
ABSENT |= {"_stacklevel", "generator", "overwrite_input", "copy", "kind", "initial"}


def signature(function: Any) -> inspect.Signature | None:
    """A function's signature, from its documentation where Python has none."""
    try:
        found = inspect.signature(function)
    except (TypeError, ValueError):
        found = None
    if found and not all(
        p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in found.parameters.values()
    ):
        return found
    match = re.search(r"^\s*(?:[\w.]+)\((.*?)\)\s*->", function.__doc__ or "", re.M)
    if not match:
        return None
    words = re.sub(r"\b(bool|int|float) (\w)", r"\2", match[1])
    words = re.sub(r":[^,=)]*(\[[^\]]*\])?[^,=)]*", "", words)
    words = words.replace("torch.strided", "None").replace("in_place", "_")
    try:
        scope: dict[str, Any] = {}
        exec(f"def made({words}): ...", scope)
    except (SyntaxError, NameError):
        return None
    return inspect.signature(scope["made"])


def differences(ours: inspect.Signature, theirs: inspect.Signature) -> Iterator[str]:
    """What a caller who knows the other signature would be wrong about."""
    mine = list(ours.parameters.values())
    known = [p for p in theirs.parameters.values() if p.name not in ABSENT]
    both = zip(_in_order(mine), _in_order(known), strict=False)
    for place, (a, b) in enumerate(both):
        if place and WORDS.get(a.name, a.name) != WORDS.get(b.name, b.name):
            yield f"argument {place} is {a.name}, not {b.name}"
        elif _differs(a.default, b.default):
            yield f"{a.name} is {a.default}, not {b.default}"
    named = {p.name: p for p in known}
    for a in mine:
        b = named.get(a.name)
        if b is not None and _differs(a.default, b.default):
            yield f"{a.name}= is {a.default}, not {b.default}"


def _in_order(parameters: list[inspect.Parameter]) -> list[inspect.Parameter]:
    later = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD)
    return [p for p in parameters if p.kind not in later]


def _differs(ours: Any, theirs: Any) -> bool:
    """None, and NumPy's mark of no value, leave the choice to the function."""
    if theirs is inspect.Parameter.empty or theirs is None:
        return False
    if type(theirs).__name__ == "_NoValueType":
        return False
    return bool(ours is inspect.Parameter.empty or ours != theirs)


def peers(name: str, *homes: Any) -> dict[str, Callable[..., Any]]:
    """What NumPy and PyTorch call by a name, by where it is."""
    found = {home.__name__: getattr(home, name, None) for home in homes}
    return {
        place: f for place, f in found.items() if callable(f) and not inspect.isclass(f)
    }


def functions(package: Any) -> list[str]:
    names = (name for name in package.__all__ if name.islower())
    return [n for n in names if not inspect.isclass(getattr(package, n))]


def agreeing(ours: Any, found: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Those whose signature agrees, and what differs from the others."""
    own = inspect.signature(ours)
    agree, told = {}, []
    for place, theirs in found.items():
        other = signature(theirs)
        if other is None:
            continue
        wrong = list(differences(own, other))
        told += [f"{place}: {line}" for line in wrong]
        if not wrong:
            agree[place] = theirs
    return agree, told


HOMES = (np, np.linalg, F, torch, torch.special, torch.linalg)
SHARED = [name for name in functions(ops) if peers(name, *HOMES)]


@pytest.mark.parametrize("name", SHARED)
def test_a_function_takes_what_its_name_says(name):
    agree, told = agreeing(getattr(ops, name), peers(name, *HOMES))
    assert (bool(told) and not agree) == (name in EXCEPTIONS), told


X = np.random.default_rng(0).uniform(0.1, 0.9, (3, 4)).astype(np.float32)
Y = X[::-1].copy()
SQUARE = X[:, :3] + 2 * np.eye(3, dtype=np.float32)
WHOLE = np.array([[1, 2, 5], [4, 3, 6]])
TRUE = X > 0.5
IMAGE = np.random.default_rng(1).uniform(-1, 1, (2, 4, 3, 3)).astype(np.float32)
CHANNELS = X[0], X[1]
PLACES = np.argsort(X, 1)

EXAMPLES: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("det", "inverse", "lu", "lu_factor"), (SQUARE,)),
    **dict.fromkeys(("bitwise_and", "bitwise_or", "bitwise_xor"), (WHOLE, WHOLE + 1)),
    **dict.fromkeys(("logical_and", "logical_or", "logical_xor"), (TRUE, ~TRUE)),
    **dict.fromkeys(("narrow",), (X, 1, 1, 2)),
    **dict.fromkeys(("hann_window", "hamming_window", "blackman_window"), (8, False)),
    **dict.fromkeys(("dot", "outer"), CHANNELS),
    **dict.fromkeys(("concat", "stack"), ([X, Y], -1)),
    **dict.fromkeys(("max", "min", "sum", "mean", "prod", "std", "var"), (X, 1)),
    **dict.fromkeys(("all", "any"), (TRUE, 1)),
    **dict.fromkeys(("tril", "triu", "diag", "diagonal"), (X, 1)),
    **dict.fromkeys(("reshape", "broadcast_to"), (X[:, :1], (3, 1))),
    "acosh": (X + 1,),
    "clip": (X, 0.3, 0.6),
    "affine_grid": (X[:2].reshape(1, 2, 4)[:, :, :3], (1, 1, 3, 4)),
    "batch_norm": (IMAGE, *CHANNELS, *CHANNELS),
    "bitwise_not": (WHOLE,),
    "chunk": (X, 2, 1),
    "compress": (TRUE[0], X, 1),
    "cross": (SQUARE, SQUARE[::-1].copy()),
    "cumprod": (X, 1),
    "cumsum": (X, 1),
    "dropout": (X, 0.0),
    "einsum": ("ij,kj->ik", X, Y),
    "embedding": (WHOLE - 1, np.ones((6, 2), np.float32), 2),
    "flatten": (IMAGE, 1),
    "grid_sample": (IMAGE, IMAGE[:, :2, :, :2].copy()),
    "group_norm": (IMAGE, 2, *CHANNELS),
    "instance_norm": (IMAGE,),
    "interpolate": (IMAGE, 5),
    "layer_norm": (X, (4,), *CHANNELS),
    "linear": (X, Y),
    **dict.fromkeys(("softmax", "log_softmax", "softmin"), (X, 1)),
    "logsumexp": (X, 1),
    "masked_fill": (X, TRUE, 2.0),
    "matmul": (X, Y.T.copy()),
    "moveaxis": (IMAGE, 1, -1),
    "multinomial": (np.eye(3, dtype=np.float32), 1),
    "one_hot": (WHOLE,),
    "pad": (X, ((1, 0), (2, 1)), "reflect"),
    "permute": (IMAGE, (0, 2, 3, 1)),
    "prelu": (IMAGE, X[0]),
    "rms_norm": (X, (4,)),
    "roll": (X, 1, 1),
    "scaled_dot_product_attention": (X, Y, X[:, :2].copy(), TRUE[:, :3]),
    "solve": (SQUARE, X),
    "split": (X, [1, 3], 1),
    "squeeze": (X[:, None], 1),
    "swapaxes": (IMAGE, 1, -1),
    "take": (X, np.array([2, 0]), 1),
    "take_along_axis": (X, PLACES, 1),
    "threshold": (X, 0.5, 2.0),
    "tile": (X, (2, 1, 3)),
    "transpose": (X,),
    "unbind": (X, 1),
    "unfold": (),
    "unique_all": (WHOLE,),
    "unsqueeze": (X, 1),
    "where": (TRUE, X, Y),
}
"""Arguments in order for those that take more than one array; else X, or X and Y."""

SIGNS = {"qr", "lu", "lu_factor", "gru", "lstm", *EXCEPTIONS} - {"batch_norm"}
"""Chosen otherwise, or not compared: factors, and the exceptions."""


def example(name: str) -> tuple[Any, ...]:
    if name in EXAMPLES:
        return EXAMPLES[name]
    needed = inspect.signature(getattr(ops, name)).parameters.values()
    count = sum(p.default is inspect.Parameter.empty for p in needed)
    return (X, Y)[: max(count, 1)]


def value(found: Any) -> Any:
    """A result as arrays, of PyTorch's pairs of values and indices both."""
    if isinstance(found, tuple | list):
        return [value(part) for part in found]
    return found.numpy() if isinstance(found, torch.Tensor) else np.asarray(found)


def called(place: str, function: Any, given: tuple[Any, ...]) -> Any:
    if not place.startswith("torch"):
        return value(function(*given))
    as_torch = torch.utils._pytree.tree_map(
        lambda a: torch.tensor(a) if isinstance(a, np.ndarray) else a, given
    )
    return value(function(*as_torch))


def same(got: Any, want: Any) -> None:
    if isinstance(want, list):
        for one, other in zip(got, want, strict=True):
            same(one, other)
        return
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, 2e-5, 1e-6)


@pytest.mark.filterwarnings("ignore:Default grid_sample", "ignore:Implicit dimension")
@pytest.mark.parametrize("name", sorted({*SHARED} - SIGNS))
def test_a_function_does_what_its_name_says(name):
    """As one of those whose signature agrees, on the example's arguments in order."""
    ours, found = getattr(ops, name), peers(name, *HOMES)
    agree = agreeing(ours, found)[0] or found
    given, wrong = example(name), []
    got = value(ours(*given))
    for place, function in agree.items():
        try:
            want = called(place, function, given)
            same(got, want)
        except (AssertionError, TypeError, ValueError, RuntimeError) as error:
            wrong.append(f"{place}: {error}")
        else:
            return
    pytest.fail("\n".join(wrong))
