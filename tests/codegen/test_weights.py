"""Weights reach the file in blocks: the same bytes, and little memory at any size."""

from __future__ import annotations

import importlib.util
import mmap
import sys
from pathlib import Path
from types import ModuleType

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from burnish.codegen.weights import streaming as b

MEMORY = Path(__file__).parents[2] / "benchmarks" / "memory.py"


@given(
    st.lists(st.integers(0, 9), max_size=4).flatmap(
        lambda shape: st.tuples(st.just(shape), st.permutations(range(len(shape))))
    ),
    st.sampled_from(["float32", "float64", "int8", "bool", "int64"]),
    st.booleans(),
)
def test_blocks_are_the_bytes_of_the_whole(laid, dtype, half):
    shape, order = laid
    values = np.arange(np.prod(shape, dtype=int)).astype(dtype).reshape(shape)
    array = values.transpose(order)
    stored = np.dtype("float16" if half and dtype.startswith("float") else dtype)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(b, "BLOCK", 64)
        found = b"".join(b.blocks(array, stored))
    assert found == np.ascontiguousarray(array).astype(stored).tobytes()


def test_narrow_elements_fill_whole_bytes():
    array = np.arange(999).astype(ml_dtypes.float4_e2m1fn).reshape(333, 3).T
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(b, "BLOCK", 64)
        found = b"".join(b.blocks(array, array.dtype))
    (whole,) = b.blocks(array, array.dtype)
    assert found == bytes(whole)


def test_pages_are_read_again_after_they_were_given_back(tmp_path):
    path = tmp_path / "data"
    path.write_bytes(np.arange(100_000, dtype=np.int32).tobytes())
    with path.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    view = np.frombuffer(mapped, np.int32, 99_000, 4000)
    b.give_back(view[::-3])
    assert view[0] == 1000
    assert view[-1] == 99_999


def test_writable_arrays_keep_their_values():
    mapped = mmap.mmap(-1, 1 << 16)
    view = np.frombuffer(mapped, np.int32)
    view[:] = 7
    b.give_back(view)
    b.give_back(view.copy())
    assert (view == 7).all()


@pytest.fixture
def memory() -> ModuleType:
    spec = importlib.util.spec_from_file_location("memory", MEMORY)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.skipif(sys.platform == "win32", reason="no resource module on Windows")
def test_memory_does_not_grow_with_the_file(memory, tmp_path):
    small, large = tmp_path / "small.onnx", tmp_path / "large.onnx"
    memory.write(small, 1)
    memory.write(large, 200)
    used = [
        memory.peak("generate", str(path), "-o", str(tmp_path))
        for path in (small, large)
    ]
    assert used[1] - used[0] < 120
