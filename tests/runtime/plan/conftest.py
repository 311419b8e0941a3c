"""Plans need the library of kernels: where there is none there is nothing to test."""

import pytest

from burnish.kernels import library


@pytest.fixture(autouse=True)
def kernels():
    found = library()
    if found is None:
        pytest.skip("no C compiler here")
    return found
