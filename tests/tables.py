"""Write every table of docs/ that code makes: python -m tests.tables

Figures of speed are measured, each with its machine, by the files of benchmarks/.
"""

from __future__ import annotations

import subprocess
import sys

MODULES = ("tests.internals", "tests.test_burn_index", "tests.conformance.table")


def main() -> int:
    """Run the writers in turn; the first exit code that is not 0."""
    for module in MODULES:
        if code := subprocess.run([sys.executable, "-m", module]).returncode:
            return code
    return 0


if __name__ == "__main__":
    sys.exit(main())
