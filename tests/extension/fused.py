"""relu(lhs @ rhs + bias) as one operator, the way a user of Burnish would write it.

The page docs/extension.md tells of it, block by block.
"""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np

from burnish import ops
from burnish.backend import namespace
from burnish.errors import InputError
from burnish.operator import operator


@operator
def matmul_add_relu(lhs, rhs, bias):
    """relu(lhs @ rhs + bias): (..., m, k), (..., k, n), bias up to (..., m, n)"""
    check(lhs, rhs)
    return namespace(lhs).maximum(lhs @ rhs + bias, 0)


def check(lhs, rhs):
    if lhs.ndim < 2 or rhs.ndim < 2 or lhs.shape[-1] != rhs.shape[-2]:
        raise InputError(
            f"matmul_add_relu: expected (..., m, k) and (..., k, n), "
            f"got {lhs.shape} and {rhs.shape}"
        )


def reference(lhs, rhs, bias):
    return ops.relu(ops.matmul(lhs, rhs) + bias)


def masked(g, y):
    """What of a gradient comes through the relu."""
    return g * (y > 0)


@matmul_add_relu.vjp("lhs")
def _(g, y, lhs, rhs, bias):
    return ops.sum_to(masked(g, y) @ rhs.mT, shape=lhs.shape)


@matmul_add_relu.vjp("rhs")
def _(g, y, lhs, rhs, bias):
    return ops.sum_to(lhs.mT @ masked(g, y), shape=rhs.shape)


@matmul_add_relu.vjp("bias")
def _(g, y, lhs, rhs, bias):
    return ops.sum_to(masked(g, y), shape=bias.shape)


@matmul_add_relu.on("numpy")
def _(lhs, rhs, bias):
    check(lhs, rhs)
    y = np.matmul(lhs, rhs, dtype=np.result_type(lhs, rhs, bias))
    y += bias
    return np.maximum(y, 0, out=y)


TILE = 16
ELEMENTS = {"float32": "float", "float64": "double"}


def source(tile, element):
    """The kernel's text for one size of tile and one type of element."""
    import jinja2

    text = Path(__file__).with_name("fused.cu.jinja").read_text("utf-8")
    template = jinja2.Template(text, undefined=jinja2.StrictUndefined)
    return template.render(tile=tile, element=element)


@functools.cache
def compiled(tile, element):
    import cupy

    return cupy.RawKernel(source(tile, element), "matmul_add_relu")


@matmul_add_relu.on("cupy")
def _(lhs, rhs, bias):
    import cupy

    check(lhs, rhs)
    (m, k), n = lhs.shape[-2:], rhs.shape[-1]
    batch = np.broadcast_shapes(lhs.shape[:-2], rhs.shape[:-2])
    count, dtype = int(np.prod(batch)), cupy.result_type(lhs, rhs, bias)
    tiles = (-(-n // TILE), -(-m // TILE), count)
    if dtype.name not in ELEMENTS or 0 in tiles or max(tiles[1:]) > 65535:
        return matmul_add_relu.value(lhs, rhs, bias)
    lhs, rhs, bias = (
        cupy.ascontiguousarray(cupy.broadcast_to(array, batch + shape), dtype)
        for array, shape in ((lhs, (m, k)), (rhs, (k, n)), (bias, (m, n)))
    )
    y = cupy.empty((*batch, m, n), dtype)
    sizes = tuple(map(np.int32, (m, k, n)))
    kernel = compiled(TILE, ELEMENTS[dtype.name])
    kernel(tiles, (TILE, TILE), (lhs, rhs, bias, y, *sizes))
    return y
