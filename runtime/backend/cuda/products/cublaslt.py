"""Matrix products by cublasLt, with a bias and an activation in the same kernel.

Row-major matrices are column-major ones transposed, so that cublasLt is asked for
y.T = b.T @ a.T. Products of single precision are computed in single precision (no
TF32) unless a plan says otherwise, those of half precision are summed in it.
"""

from __future__ import annotations

import threading
from math import prod
from typing import Any

from burnish.backend.cuda.libraries import workspace
from burnish.backend.cuda.products.matrices import broadcast, described, flat, laid_out
from burnish.backend.cuda.products.product import TYPES, Product, product

_MANY = 1024  # products that are remembered in a thread


class _Held(threading.local):
    """State of a thread; descriptors hold the bias of one call."""

    def __init__(self) -> None:
        self.ready: dict[Any, Any] = {}
        self.linears: dict[Any, Any] = {}
        self.products: dict[Any, Product | None] = {}


_held = _Held()


def matmul(
    a: Any, b: Any, bias: Any = None, *, scale: float = 1.0, act: str = ""
) -> Any:
    """act(scale * a @ b + bias); a (..., m, k), b (..., k, n), bias (n,) -> (..., m, n)

    act: "gelu", by its tanh form, or nothing. None where cublasLt is missing or does no
    such product: other dtypes, vectors, empty arrays.
    """
    import cupy

    kind = a.dtype.char
    if bias is not None:
        if bias.dtype.char != kind:
            return None
        if bias.data.ptr & 15:
            bias = bias.copy()
    first, second = a.data, b.data
    place, other = first.ptr, second.ptr
    ends = place | other
    fine = 256 if not ends & 255 else 16 if not ends & 15 else 1
    key = (
        kind,
        b.dtype.char,
        a.shape,
        a.strides,
        b.shape,
        b.strides,
        bias is None,
        fine,
        first.device_id,
        scale,
        act,
        workspace.rounds(),
    )
    ready = _held.ready
    try:
        found = ready[key]
    except KeyError:
        if len(ready) >= _MANY:
            ready.clear()
            _held.products.clear()
        found = ready[key] = _prepared(a, b, bias, fine, scale, act)
    if found is None:
        return None
    product, shape, copies = found
    if copies is not None:
        a, b = copies(a, b)
        place, other = a.data.ptr, b.data.ptr
    y = cupy.ndarray(shape, a.dtype)
    product.run(place, other, y.data.ptr, bias)
    if bias is not None and not product.adds_bias:
        y += bias
    return y


def linear(x: Any, weight: Any, bias: Any = None, act: str = "") -> Any:
    """act(x @ weight.T + bias), or None; x (..., k), weight (n, k), bias (n,)"""
    import cupy

    first, second = x.data, weight.data
    place, other = first.ptr, second.ptr
    whole = x._c_contiguous and weight._c_contiguous and not (place | other) & 15
    kind, rounds = x.dtype.char, workspace.rounds()
    key = (kind, x.shape, weight.shape, bias is None, first.device_id, act, rounds)
    found = _held.linears.get(key) if whole else None
    alike = kind == weight.dtype.char and (bias is None or kind == bias.dtype.char)
    if found is None or not alike or (bias is not None and bias.data.ptr & 15):
        if x.ndim < 2 or x.shape[-1] != weight.shape[1]:
            return None
        y = matmul(x, weight.T, bias, act=act)
        if y is not None and whole:
            if len(_held.linears) >= _MANY:
                _held.linears.clear()
            _held.linears[key] = _prepared(x, weight.T, bias, 16, 1.0, act)
        return y
    product, shape, _ = found
    y = cupy.ndarray(shape, x.dtype)
    product.run(place, other, y.data.ptr, bias)
    if bias is not None and not product.adds_bias:
        y += bias
    return y


def _prepared(a: Any, b: Any, bias: Any, fine: int, scale: float, act: str) -> Any:
    """(product, shape of the result, what copies the arrays or None); None for none."""
    kind = a.dtype.char
    if kind not in TYPES or b.dtype.char != kind or a.ndim < 2 or b.ndim < 2:
        return None
    if not a.size or not b.size:
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
    copies = None
    if first is None or second is None or not as_they_are:
        copies, (one, other) = copied, copied(a, b)
        first, second = described(one, batch), described(other, batch)
        assert first is not None
        assert second is not None
        fine = 16
    n, k = other.shape[-1], one.shape[-1]
    m, count = one.shape[-2], prod(batch)
    sizes, fine = (m, n, k, count), max(fine, a.itemsize)
    form = "tf32" if kind == "f" and workspace.rounds() else kind
    plain, device = bias is None, a.data.device_id
    key = (form, *sizes, first, second, fine, plain, device, scale, act)
    products = _held.products
    if key not in products:
        products[key] = product(*key)
    found = products[key]
    return None if found is None else (found, (*lead, n), copies)
