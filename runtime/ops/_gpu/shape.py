"""Operators that move values: concatenation, embedding, views."""

from __future__ import annotations

from math import prod

from burnish.backend.cuda import kernels, layout
from burnish.backend.cuda.calls import called
from burnish.ops._gpu.call import plain
from burnish.ops.arrays import index, shape
from burnish.ops.sequences import embedding


@shape.concat_of.on("cupy", takes_bfloat16=True)
def _(*arrays, axis=0):
    first = arrays[0]
    rank = first.ndim
    if rank < 3 or axis not in (1, 1 - rank) or not any(map(layout.is_last, arrays)):
        return plain(shape.concat_of, *arrays, axis=axis)
    beside = (len(first), *first.shape[2:])
    alike = all(
        a.ndim == rank
        and a.dtype == first.dtype
        and (len(a), *a.shape[2:]) == beside
        and a.size
        for a in arrays
    )
    if not alike or len(arrays) * first.nbytes >= kernels.LONG:
        return plain(shape.concat_of, *arrays, axis=axis)
    return layout.joined(arrays)


@embedding.embedding.prepared
def _(ids, weight, *, padding_idx=None):
    return layout.prepared_rows(ids, weight) if type(ids) is type(weight) else None


_reshape = shape.reshape.value


@shape.reshape.on("cupy", takes_bfloat16=True)
def _(x, *, shape, keep_zeros=False):
    if x._c_contiguous or keep_zeros:
        return _reshape(x, shape, keep_zeros)
    y = called(_rearranged, (x,), {"shape": shape})
    return _reshape(x, shape) if y is None else y


def _rearranged(x, *, shape):
    known = prod(n for n in shape if n != -1)
    if shape.count(-1) == 1 and known:
        shape = tuple(x.size // known if n == -1 else n for n in shape)
    fits = min(shape, default=0) >= 0 and prod(shape) == x.size
    return layout.prepared_reshape(x, shape) if fits else None


for _op in (
    embedding.embedding,
    shape.transpose,
    shape.split,
    index.getitem,
):
    _op.takes_bfloat16.add("cupy")  # they move values
