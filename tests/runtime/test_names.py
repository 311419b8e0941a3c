"""Names that NumPy or PyTorch has too: same arguments in the same order, same meaning.

Every public function of `burnish.ops` and `burnish.nn` and every layer is looked up in
NumPy, then in PyTorch; one of those that have the name has to agree. Options that have
no meaning here (`out`, `inplace`) are left out; others may be missing at the end.
"""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

from burnish import ops
from tests.harness.names import agreeing, functions, peers

pytestmark = pytest.mark.oracle
torch = pytest.importorskip("torch")
F = torch.nn.functional

EXCEPTIONS = {
    "stft": "no complex numbers: pairs in the last axis, frames first, as ONNX",
    "istft": "no complex numbers: pairs in the last axis, frames first, as ONNX",
    "irfft": "no complex numbers: pairs in the last axis",
    "norm": "one p for vectors, as F.normalize; no matrix norms",
    "unfold": "a tensor's method in PyTorch; F.unfold is im2col",
    "diag_embed": "always the last two axes",
}
"""Functions that neither agrees with, and why."""

HOMES = (np, np.linalg, np.fft, F, torch, torch.special, torch.linalg, torch.fft)
SHARED = [name for name in functions(ops) if peers(name, *HOMES)]


@pytest.mark.parametrize("name", SHARED)
def test_a_function_takes_what_its_name_says(name):
    agree, report = agreeing(getattr(ops, name), peers(name, *HOMES))
    assert (bool(report) and not agree) == (name in EXCEPTIONS), report


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

SIGNS = {"rfft", "qr", "lu", "lu_factor", "gru", "lstm", *EXCEPTIONS}
"""Chosen otherwise, or not compared: pairs, factors, and the exceptions."""


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
