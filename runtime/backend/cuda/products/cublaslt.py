"""Matrix products by cublasLt, with a bias and an activation in the same kernel.

Row-major matrices are column-major ones transposed, so that cublasLt is asked for
y.T = b.T @ a.T. Products of single precision are computed in single precision (no
TF32) unless a plan says otherwise, those of half precision are summed in it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from math import prod
from typing import Any, NamedTuple

from burnish.backend.cuda.calls import Run, called
from burnish.backend.cuda.libraries import workspace
from burnish.backend.cuda.products.matrices import broadcast, described, flat, laid_out
from burnish.backend.cuda.products.product import TYPES, Product, product

_MANY = 1024  # products that are remembered in a thread


class _Held(threading.local):
    """State of a thread; descriptors hold the bias of one call."""

    def __init__(self) -> None:
        self.products: dict[Any, Product | None] = {}


_held = _Held()


def matmul(
    a: Any, b: Any, bias: Any = None, *, scale: float = 1.0, act: str = ""
) -> Any:
    """act(scale * a @ b + bias); a (..., m, k), b (..., k, n), bias (n,) -> (..., m, n)

    act: "gelu", by its tanh form, or nothing. None where cublasLt is missing or does no
    such product: other dtypes, vectors, empty arrays.
    """
    return called(prepared, (a, b, bias, scale, act), {})


def linear(x: Any, weight: Any, bias: Any = None, act: str = "") -> Any:
    """act(x @ weight.T + bias), or None; x (..., k), weight (n, k), bias (n,)"""
    return called(prepared_linear, (x, weight, bias, act), {})


def prepared(
    a: Any, b: Any, bias: Any = None, scale: float = 1.0, act: str = ""
) -> Run | None:
    """How to compute `matmul` of arrays alike; None where cublasLt does not."""
    found = described_product(a, b, bias, scale, act)
    return None if found is None else _runner(found, a.dtype, bias)


def prepared_linear(x: Any, weight: Any, bias: Any = None, act: str = "") -> Run | None:
    """How to compute `linear` of arrays alike; None where cublasLt does not."""
    if x.ndim < 2 or weight.ndim != 2 or x.shape[-1] != weight.shape[1]:
        return None
    found = described_product(x, weight.T, bias, 1.0, act)
    if found is None:
        return None
    return _runner(found, x.dtype, bias, lambda x, weight: (x, weight.T))


def prepared_slopes(g: Any, x: Any) -> Run | None:
    """How to compute g.T @ x of matrices alike; None where cublasLt does not."""
    found = described_product(g.T, x, None, 1.0, "")
    if found is None:
        return None
    return _runner(found, g.dtype, None, lambda g, x: (g.T, x))


def prepared_scores(q: Any, k: Any, scale: float) -> Run | None:
    """How to compute scale * q @ k.mT of arrays alike; None where cublasLt does not."""
    found = described_product(q, k.swapaxes(-1, -2), None, scale, "")
    if found is None:
        return None
    return _runner(found, q.dtype, None, lambda q, k: (q, k.swapaxes(-1, -2)))


class Described(NamedTuple):
    """A product of two arrays, and of all that are alike."""

    product: Product
    shape: tuple[int, ...]
    copied: Callable[[Any, Any], tuple[Any, Any]] | None
    """What copies both where their layout, or alignment, is none of cublasLt's."""


def _runner(
    found: Described,
    dtype: Any,
    bias: Any,
    turned: Callable[[Any, Any], tuple[Any, Any]] = lambda a, b: (a, b),
) -> Run:
    """turned: the matrices that are multiplied, of the two that are given."""
    from cupy import ndarray

    product, shape, copied = found
    launch, adds_bias = product.run, product.adds_bias
    moved = bias is not None and (bias.data.ptr & 15 or not bias._c_contiguous)

    def run(a: Any, b: Any, bias: Any = None, *_: Any) -> Any:
        if copied is not None:
            a, b = copied(*turned(a, b))
        if moved:
            bias = bias.copy()
        y = ndarray(shape, dtype)
        launch(a.data.ptr, b.data.ptr, y.data.ptr, bias)
        if bias is not None and not adds_bias:
            y += bias
        return y

    return run


def described_product(
    a: Any, b: Any, bias: Any, scale: float, act: str
) -> Described | None:
    """act(scale * a @ b + bias) as cublasLt computes it; None where it does not."""
    kind = a.dtype.char
    if kind not in TYPES or b.dtype.char != kind or a.ndim < 2 or b.ndim < 2:
        return None
    if a.shape[-1] != b.shape[-2] or not a.size or not b.size:
        return None
    if bias is not None and (bias.dtype.char != kind or bias.shape != b.shape[-1:]):
        return None
    lead = a.shape[:-1]
    batch = () if b.ndim == 2 else broadcast(a.shape[:-2], b.shape[:-2])
    if b.ndim > 2:
        lead = (*batch, a.shape[-2])

    def copied(a: Any, b: Any) -> tuple[Any, Any]:
        return laid_out(flat(a, b), batch), laid_out(b, batch)

    one, other = flat(a, b), b
    as_they_are = one is a or a._c_contiguous
    first, second = described(one, batch), described(other, batch)
    ends = a.data.ptr | b.data.ptr
    fine = max(256 if not ends & 255 else 16 if not ends & 15 else 1, a.itemsize)
    copies = None
    if first is None or second is None or not as_they_are:
        copies, (one, other) = copied, copied(a, b)
        first, second = described(one, batch), described(other, batch)
        assert first is not None
        assert second is not None
        fine = 16
    n, k = other.shape[-1], one.shape[-1]
    m, count = one.shape[-2], prod(batch)
    form = "tf32" if kind == "f" and workspace.rounds() else kind
    plain, device = bias is None, a.data.device_id
    key = (form, m, n, k, count, first, second, fine, plain, device, scale, act)
    products = _held.products
    if key not in products:
        if len(products) >= _MANY:
            products.clear()
        products[key] = product(*key)
    found = products[key]
    return None if found is None else Described(found, (*lead, n), copies)
