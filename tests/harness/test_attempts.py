import pytest

from tests.harness.attempts import ATTEMPTS, measured


@pytest.mark.parametrize("slow", range(ATTEMPTS + 1))
def test_a_measured_test_may_fail_twice(slow):
    seen = []

    @measured
    def test(limit):
        seen.append(limit)
        assert len(seen) > slow

    if slow < ATTEMPTS:
        test(limit=1)
    else:
        with pytest.raises(AssertionError):
            test(limit=1)
    assert len(seen) == min(slow + 1, ATTEMPTS)


def test_other_errors_are_raised_at_once():
    seen = []

    @measured
    def test():
        seen.append(1)
        raise ValueError

    with pytest.raises(ValueError):  # noqa: PT011
        test()
    assert len(seen) == 1
