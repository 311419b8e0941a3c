import sys

import numpy as np
import pytest

from burnish import Tensor, check_closeness
from burnish.errors import InputError

ONE = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.001, 7.002, 8.003, 9.004, 10.1])
OTHER = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.001, 8.002, 9.003, 10.004])
REPORT = """\
closeness of 10 elements, shape (10,), float64
  1e-01  10 / 10  100.00%  [PASS] all elements are within tolerance
  1e-02  10 / 10  100.00%  [PASS] all elements are within tolerance
  1e-03   9 / 10   90.00%  [WARN] most elements are within tolerance
  1e-04   6 / 10   60.00%  [FAIL] significant differences
"""


def test_the_report_of_the_example(capsys):
    shares = check_closeness(Tensor(ONE), OTHER)
    assert capsys.readouterr().out.startswith(REPORT)
    assert list(shares.values()) == [1, 1, 0.9, 0.6, 0.5, 0.5, 0.5, 0.5]


def test_words_are_coloured_on_a_terminal_alone(capsys, monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    check_closeness(ONE, OTHER)
    report = capsys.readouterr().out
    for code, word in ((32, "PASS"), (33, "WARN"), (31, "FAIL")):
        assert f"\x1b[{code}m[{word}]\x1b[0m" in report
    monkeypatch.setenv("NO_COLOR", "1")
    check_closeness(ONE, OTHER)
    assert "\x1b" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("one", "other", "share"),
    [
        ([np.nan, np.inf], [np.nan, np.inf], 1.0),
        ([np.inf, 1.0], [-np.inf, 1.0], 0.5),
        ([True, False], [True, True], 0.5),
        ([], [], 1.0),
        (2.0, 2.0, 1.0),
    ],
)
def test_special_values(one, other, share, capsys):
    assert set(check_closeness(one, other).values()) == {share}
    assert ("PASS" in capsys.readouterr().out) == (share == 1)


def test_other_dtypes_are_named_and_other_shapes_refused(capsys):
    check_closeness(Tensor(ONE).float(), ONE)
    assert "shape (10,), float32 and float64" in capsys.readouterr().out
    with pytest.raises(InputError, match=r"got \(10,\) and \(2,\)"):
        check_closeness(ONE, ONE[:2])
