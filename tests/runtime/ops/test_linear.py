import functools

import numpy as np
import pytest

from burnish import Tensor, ops
from burnish.errors import InputError
from tests.harness.operators import case


def einsum(equation, *shapes):
    return case(
        functools.wraps(ops.einsum)(functools.partial(ops.einsum, equation)),
        *shapes,
        expect=lambda *a: np.einsum(equation, *a),
        rtol=1e-5,
    )


CASES = [
    case(ops.matmul, (3, 4), (4, 2), expect=np.matmul),
    case(ops.matmul, (4,), (4,), expect=np.matmul),
    case(ops.matmul, (4,), (2, 4, 3), expect=np.matmul),
    case(ops.matmul, (2, 3, 4), (4,), expect=np.matmul),
    case(ops.matmul, (2, 1, 3, 4), (5, 4, 2), expect=np.matmul),
    case(ops.matmul, (3, 0), (0, 2), expect=np.matmul),
    case(ops.matmul, (3, 4), (4, 2), dtypes=("int32",), expect=np.matmul),
    case(ops.linear, (2, 3, 4), (5, 4), (5,), expect=lambda x, w, b: x @ w.T + b),
    case(ops.linear, (4,), (5, 4), expect=lambda x, w: x @ w.T),
    case(ops.gemm, (3, 4), (4, 2), expect=np.matmul),
    case(
        ops.gemm,
        (4, 3),
        (2, 4),
        (2,),
        alpha=0.5,
        beta=2.0,
        trans_a=True,
        trans_b=True,
        expect=lambda a, b, c: 0.5 * a.T @ b.T + 2 * c,
    ),
    case(ops.outer, (3,), (4,), expect=np.outer),
    case(ops.det, (2, 3, 3), expect=np.linalg.det, rtol=1e-4),
    case(ops.inverse, (2, 3, 3), expect=np.linalg.inv, rtol=1e-3),
    einsum("ij,jk->ik", (2, 3), (3, 4)),
    einsum("ij,jk", (2, 3), (3, 4)),
    einsum("ba", (2, 3)),
    einsum("bij,bjk->bik", (2, 3, 4), (2, 4, 5)),
    einsum("...ij,...jk->...ik", (2, 3, 4), (4, 5)),
    einsum("...i,...i", (2, 1, 4), (3, 4)),
    einsum("i...->...", (2, 3)),
    einsum("ii->i", (3, 3)),
    einsum("ii", (3, 3)),
    einsum("iij,j->i", (3, 3, 2), (2,)),
    einsum("ij->", (2, 3)),
    einsum("ij,kj->k", (2, 3), (4, 3)),
    einsum("i,j->ij", (2,), (3,)),
    einsum("ij,jk,kl->il", (2, 3), (3, 4), (4, 2)),
    einsum("ij,ij->ij", (2, 1), (2, 3)),
    einsum(" b n i , b m i -> b n m", (2, 3, 4), (2, 5, 4)),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_operator(case):
    case.check()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: ops.matmul(np.zeros((2, 3)), np.zeros((4, 5))),
            r"got \(2, 3\) and \(4, 5\)",
        ),
        (lambda: ops.matmul(np.zeros(()), np.zeros(4)), r"got \(\) and \(4,\)"),
        (
            lambda: Tensor.zeros(2, 3, 4) @ Tensor.zeros(3, 4, 5),
            r"matmul: got \(2, 3, 4\), \(3, 4, 5\)",
        ),
        (
            lambda: ops.linear(np.zeros(3), np.zeros((2, 4))),
            r"x \(3,\) has 3 features, but weight \(2, 4\) takes 4",
        ),
        (lambda: ops.einsum("ij", np.zeros(3)), r"einsum 'ij': got \(3,\)"),
    ],
)
def test_mistakes_are_explained(call, words):
    with pytest.raises(InputError, match=words):
        call()
