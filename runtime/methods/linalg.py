"""Linear algebra methods of tensors; matrices are the last two axes."""

from __future__ import annotations

from burnish import ops
from burnish.autodiff import Variable
from burnish.methods._bind import method


class LinalgMethods(Variable):
    """Products, diagonals, inverses; factorizations are functions of `burnish.ops`."""

    __slots__ = ()

    matmul = method(lambda: ops.matmul)
    dot = method(lambda: ops.dot)
    outer = method(lambda: ops.outer)
    cross = method(lambda: ops.cross)
    diag = method(lambda: ops.diag)
    diagonal = method(lambda: ops.diagonal)
    trace = method(lambda: ops.trace)
    det = method(lambda: ops.det)
    inverse = method(lambda: ops.inverse)
    cov = method(lambda: ops.cov)
