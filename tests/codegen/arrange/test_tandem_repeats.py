"""Which word of a sequence of segments becomes a module."""

import pytest

from burnish.codegen.arrange.analysis.tandem_repeats import best_run

CASES = {
    "nothing repeats": ("abcd", None),
    "one word in a row": ("xaaay", "a"),
    "a longer word": ("xabababy", "ab"),
    "a word with its own repeat": ("aabaabaab", "aab"),
    "blocks between transitions": ("d" * 6 + "t" + "d" * 12 + "t" + "d" * 24, "d"),
    "the heavier of two": ("aaaaBB", "B"),
}


@pytest.mark.parametrize(("sequence", "word"), CASES.values(), ids=CASES)
def test_best_run(sequence, word):
    """An upper-case segment weighs ten."""
    weights = [10 if each.isupper() else 1 for each in sequence]
    run = best_run([ord(each) for each in sequence], weights)
    found = None if run is None else sequence[run.start : run.start + run.period]
    assert found == word
