"""Rules of searches by themselves; tests/codegen/test_searches.py has onnxruntime's."""

import numpy as np
import pytest

from burnish import Tensor, generation
from burnish.errors import InputError
from burnish.searches.scores import Rules


def test_presence_is_subtracted_from_each_token():
    scores = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
    mask = np.array([[0, 1, 0], [1, 0, 1]], np.int32)
    rules = Rules(2, presence_mask=mask, presence_penalty=0.5)
    rules.apply(scores, np.zeros((2, 1), np.int32), is_first=True)
    np.testing.assert_array_equal(scores, [[1, 1.5, 3], [3.5, 5, 5.5]])


def test_a_sampling_that_keeps_no_token_says_so():
    ids = Tensor(np.zeros((1, 2), np.int32))
    with pytest.raises(InputError, match=r"expected more than 0.*no token"):
        generation.sampling(None, ids, 4, cache=(1, 1, 1), eos=1, pad=0)
