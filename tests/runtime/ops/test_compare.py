import numpy as np
import pytest

from burnish import ops
from tests.harness.operators import case

ODD = np.array([0.0, np.nan, np.inf, -np.inf, 1.0])
MASK = np.array([True, False, True, False])
CASES = [
    case(ops.is_finite, ODD, expect=np.isfinite, grad=False),
    case(ops.is_close, ODD, ODD + 1e-7, expect=np.isclose, grad=False),
    case(ops.equal, (3, 4), (4,), dtypes=("int64", "float32"), expect=np.equal),
    case(ops.not_equal, (3, 4), (4,), dtypes=("int64",), expect=np.not_equal),
    case(ops.greater, (3, 4), (4,), expect=np.greater, grad=False),
    case(ops.greater_or_equal, (3, 4), 1, dtypes=("int64",), expect=np.greater_equal),
    case(ops.less, (3, 4), (4,), expect=np.less, grad=False),
    case(ops.less_or_equal, (3, 4), 1, dtypes=("int64",), expect=np.less_equal),
    case(ops.logical_and, (9,), (9,), dtypes=("bool",), expect=np.logical_and),
    case(ops.logical_or, (9,), (9,), dtypes=("bool",), expect=np.logical_or),
    case(ops.logical_xor, (9,), (9,), dtypes=("bool",), expect=np.logical_xor),
    case(ops.logical_not, (9,), dtypes=("bool",), expect=np.logical_not),
    case(ops.where, MASK, (3, 4), (3, 1), expect=np.where),
    case(ops.where, MASK, (4,), 0.0, expect=lambda c, a, b: a * c),
    case(ops.is_nan, ODD, expect=np.isnan, grad=False),
    case(ops.is_inf, ODD, expect=np.isinf, grad=False),
    case(ops.is_inf, ODD, detect_negative=False, expect=np.isposinf, grad=False),
    case(ops.is_inf, ODD, detect_positive=False, expect=np.isneginf, grad=False),
    case(
        ops.is_inf,
        ODD,
        detect_positive=False,
        detect_negative=False,
        expect=lambda x: np.zeros(5, bool),
        grad=False,
    ),
    case(ops.bitwise_and, (9,), (9,), dtypes=("int32", "uint8"), expect=np.bitwise_and),
    case(ops.bitwise_or, (9,), (9,), dtypes=("int32", "bool"), expect=np.bitwise_or),
    case(ops.bitwise_xor, (9,), (9,), dtypes=("int32",), expect=np.bitwise_xor),
    case(ops.bitwise_not, (9,), dtypes=("int32", "bool"), expect=np.bitwise_not),
    case(
        ops.bit_cast,
        np.arange(6, dtype="int32").reshape(2, 3),
        dtype="float32",
        expect=lambda x: x.view("float32"),
    ),
    case(
        ops.bit_shift,
        (9,),
        2,
        direction="LEFT",
        dtypes=("uint8",),
        expect=np.left_shift,
    ),
    case(
        ops.bit_shift,
        (9,),
        2,
        direction="RIGHT",
        dtypes=("uint8",),
        expect=np.right_shift,
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_operator(case):
    case.check()
