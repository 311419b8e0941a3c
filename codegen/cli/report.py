"""Turn the directory of a training run into one HTML page with plots.

The run may still be going. The page needs nothing beside it.
"""

from __future__ import annotations

import argparse
from pathlib import Path

EXTRA = "train"  #: what a run needs, and so whoever looks at one has

HELP = "show a training run as one HTML page"


def arguments(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    add("run_dir", type=Path, metavar="RUN_DIR", help="the learner's directory")
    add(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        help="where to write the page (default: RUN_DIR/report.html)",
    )


def run(options: argparse.Namespace) -> int:
    from burnish.codegen.tools import console
    from burnish.codegen.tools.report import report

    console.line(report(options.run_dir, options.output))
    return 0
