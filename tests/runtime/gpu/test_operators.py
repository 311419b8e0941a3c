"""Every operator's table on a GPU: values and gradients as NumPy's, and no waiting."""

import importlib
from pathlib import Path

import numpy as np
import pytest

from burnish import Device
from tests.harness.operators import Case
from tests.harness.waiting import waits
from tests.runtime import ops as tables

FILES = sorted(Path(tables.__file__).parent.glob("test_*.py"))
CASES: list[Case] = []
for file in FILES:
    if "CASES = [" in file.read_text("utf-8"):
        page = importlib.import_module(f"{tables.__name__}.{file.stem}")
        CASES += [case for case in page.CASES if isinstance(case, Case) and case.gpu]

READ = {
    "compress": "how many there are",
    "constant_of_shape": "its numbers are a shape",
    "ctc_paths": "lengths of targets and frames",
    "dynamic_time_warping": "how long the path is",
    "lu": "pivots of blocks",
    "max_roi_pool": "how large the greatest region is",
    "multiclass_nms": "how many boxes are left",
    "non_max_suppression": "how many boxes are left",
    "non_zero": "how many there are",
    "one_hot": "its depth is a size",
    "one_hot_of": "its depth is a size",
    "pairwise_coupling": "until it converges",
    "range": "its numbers are a size",
    "roi_align": "how large the greatest region is",
    "slice": "its numbers are a shape",
    "tree_ensemble": "until no row moves on",
    "unique_all": "how many there are",
    "unique_of": "how many there are",
}
"""Operators that have to know values on the host, and which."""


def reads(case):
    """Whether an operator of the table has to wait, by its name or its options."""
    options, name = case.options, case.op.__name__
    if name == "top_k":
        return isinstance(case.inputs[1], np.ndarray)
    if options.get("reduction") in ("mul", "max", "min"):
        return True  # one turn for each index that comes again
    index = options.get("index", ())
    parts = index if isinstance(index, tuple) else (index,)
    masks = any(getattr(part, "dtype", None) == np.dtype(bool) for part in parts)
    return name in READ or masks


@pytest.mark.parametrize("case", CASES, ids=str)
def test_values_and_gradients(case):
    case.check_gpu()


def moved(case, dtype, record=()):
    """What the case is given, on the GPU; which of it is recorded."""
    device = Device("cuda")
    return [
        case.leaves([device.put(a)], [0] if i in record else [])[0]
        if isinstance(a, np.ndarray)
        else a
        for i, a in enumerate(case.arrays(np.dtype(dtype)))
    ]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_no_operator_waits(case):
    if reads(case):
        pytest.skip("it has to read values")
    arrays = case.arrays(np.dtype(case.dtypes[0]))
    if any(getattr(a, "dtype", np.dtype(int)).kind == "O" for a in arrays):
        pytest.skip("strings live on the host")
    given = moved(case, case.dtypes[0])
    assert not waits(lambda: case.op(*given, **case.options))
    if not case.has_gradients():
        return
    arrays, places = case.differentiable()
    weights = [Device("cuda").put(w) for w in case.weights(arrays)]
    leaves = moved(case, np.float64, places)
    assert not waits(lambda: case.loss(leaves, weights).backward())
