"""There is a GPU; else this skips, with what is missing, for all tests beside it."""

import pytest

from tests.harness.operators import gpu_missing


def test_there_is_a_gpu():
    if (missing := gpu_missing()) is not None:
        pytest.skip(missing)
