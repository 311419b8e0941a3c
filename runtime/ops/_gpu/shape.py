"""Operators that move values: concatenation, embedding, views."""

from __future__ import annotations

from burnish.backend.cuda import kernels, layout
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


@embedding.embedding.on("cupy", takes_bfloat16=True)
def _(ids, weight, *, padding_idx=None):
    fits = isinstance(ids, type(weight)) and ids.dtype.char in "il" and ids.size
    y = layout.taken(weight, ids) if fits and weight.ndim == 2 and weight.size else None
    return embedding.embedding.value(ids, weight) if y is None else y


_reshape = shape.reshape.value


@shape.reshape.on("cupy", takes_bfloat16=True)
def _(x, *, shape, keep_zeros=False):
    if not x._c_contiguous and x.size and not keep_zeros:
        y = x.view()
        try:
            y.shape = shape
        except (AttributeError, ValueError):  # it is no view
            x = layout.contiguous(x)
        else:
            return y
    return _reshape(x, shape, keep_zeros)


for _op in (shape.transpose, shape.split, index.getitem):
    _op.takes_bfloat16.add("cupy")  # they move values
