"""Tests that need a GPU: `pytest tests/runtime/gpu -n 0` runs them all on one.

Without a GPU their files are not read; one test says what is missing.
"""

from burnish.ops import _gpu as _gpu  # kernels that tests look up before any array
from tests.harness.operators import gpu_missing

if gpu_missing() is not None:
    collect_ignore_glob = ["test_[klopst]*.py"]
