"""Every operator of the tables, captured with some values and run with others."""

import importlib
import pkgutil

import numpy as np
import pytest

import tests.runtime.ops
from burnish import Tensor, seed
from burnish.capture import capture
from burnish.errors import BurnishError, CaptureError
from tests.harness.operators import several
from tests.runtime.capture.harness import changed, equal, is_array

TABLES = [module.name for module in pkgutil.iter_modules(tests.runtime.ops.__path__)]
SIZED = {"slice", "top_k"}  #: what says a size is a number, not a tensor
COUNTED = {
    "max_roi_pool",
    "one_hot",
    "range",
    "roi_align",
    "unique_all",
    "unique_of",
}  #: values are their sizes


def cases():
    for name in TABLES:
        module = importlib.import_module(f"tests.runtime.ops.{name}")
        for number, row in enumerate(getattr(module, "CASES", ())):
            yield pytest.param(row, id=f"{name}-{number}-{row.op.__name__}")


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("row", list(cases()))
def test_operator(row):
    arrays = row.arrays(np.dtype(row.dtypes[0]))
    others = arrays if row.op.__name__ in COUNTED else [changed(a) for a in arrays]
    tensors = [i for i, a in enumerate(arrays) if is_array(a)]
    if row.op.__name__ in SIZED:
        tensors = tensors[:1]

    def called(*given):
        every = list(arrays)
        for place, each in zip(tensors, given, strict=True):
            every[place] = each
        return row.op(*every, **row.options)

    def given(values):
        return [Tensor(values[i]) for i in tensors]

    if not tensors:
        return
    if row.op.__name__ == "one_hot" and len(arrays) == 1:  # how many classes?
        with pytest.raises(CaptureError, match="a look at the values"):
            capture(called, *given(arrays))
        return
    program = capture(called, *given(arrays))
    try:
        seed(0)
        want = several(called(*given(others)))
    except BurnishError:  # the operator does not take such values
        others = arrays
        want = several(called(*given(arrays)))
    seed(0)
    got = several(program(*given(others)))
    for one, other in zip(got, want, strict=True):
        equal(one, other)
