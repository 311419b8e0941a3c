"""What `test_steps` takes for the same state, without a GPU."""

import numpy as np
import pytest

from tests.runtime.gpu.test_steps import alike


@pytest.mark.parametrize(
    ("name", "value", "made", "is_alike"),
    [
        ("velocity", [9.0, 0.003], [9.0, 0.003 + 2.9e-6], True),
        ("velocity", [9.0, 0.003], [9.0, 0.003 + 2e-4], False),
        ("weight", [0.3, 1e-5], [0.3, 1.15e-5], True),
        ("weight", [0.3, 1e-5], [0.3, 2e-5], False),
        ("square", [1e-7, 3e-12], [1e-7, 4e-12], True),
        ("square", [0.0, 0.0], [1e-7, 3e-9], False),
        ("square", [1e-7, 0.0], [1e-7, 3e-9], False),
        ("square", [1e-7, 1.0], [1e-7, 0.0], False),
        ("in_proj_bias", [1.0, 2.0, 3.0], [1.0, 0.0, 3.0], True),  # a key's
    ],
)
def test_states_alike(name, value, made, is_alike):
    one, other = ({name: np.array(each, "f4")} for each in (value, made))
    if is_alike:
        alike(one, other)
    else:
        with pytest.raises(AssertionError, match=name):
            alike(one, other)
