"""Which words of a sequence of segments become modules."""

import pytest

from burnish.codegen.arrange.analysis.tandem_repeats import best_run, recurring

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


APART = {
    "nothing recurs": ("abcd", []),
    "a word with others between": ("xabyabz", [("ab", 2)]),
    "none overlap": ("aaaaa", [("aa", 2)]),
    "longer words too": ("abcxabc", [("ab", 2), ("bc", 2), ("abc", 2)]),
    "none is longer than asked": ("abcdxabcd", [("ab", 2), ("bc", 2), ("cd", 2)]),
}


@pytest.mark.parametrize(("sequence", "words"), APART.values(), ids=APART)
def test_recurring(sequence, words):
    longest = 2 if sequence.startswith("abcd") else 3
    found = recurring([ord(each) for each in sequence], longest)
    assert [(sequence[p[0] : p[0] + n], len(p)) for n, p in found] == words
