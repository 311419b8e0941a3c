"""`python -m tests.fuzz SUBJECT [COUNT [FIRST]]`: see the package."""

from __future__ import annotations

import sys
import warnings

import numpy as np

from tests.fuzz import harness, subject


def main() -> int:
    """Examine files of a subject; how many were problems, 100 at most."""
    name, *rest = sys.argv[1:]
    count, first = (*map(int, rest), *(100_000, 0)[len(rest) :])
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    if count == 1:
        print(harness.repeated(subject(name), first))
        return 0
    runner = harness.examined(subject(name), range(first, first + count), loud=True)
    print(f"{count} files: {dict(runner.went)}, {len(runner.problems)} problems")
    return min(100, len(runner.problems))


if __name__ == "__main__":
    sys.exit(main())
