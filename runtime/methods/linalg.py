"""Linear algebra methods of tensors; matrices are the last two axes."""

from __future__ import annotations

from burnish import ops
from burnish.autodiff import Variable
from burnish.methods._bind import method


class LinalgMethods(Variable):
    """Products, diagonals, inverses; factorizations are functions of `burnish.ops`."""

    __slots__ = ()

    matmul = method(ops.matmul)
    dot = method(ops.dot)
    outer = method(ops.outer)
    cross = method(ops.cross)
    diag = method(ops.diag)
    diagonal = method(ops.diagonal)
    trace = method(ops.trace)
    det = method(ops.det)
    inverse = method(ops.inverse)
    cov = method(ops.cov)
