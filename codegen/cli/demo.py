"""Generate, verify, run and train the bundled model, in a few seconds.

A digit classifier is generated from its ONNX file, shown, verified, used, fine-tuned
for a task it was not made for, saved and loaded again. No network is used and nothing
is kept unless --keep names a folder.
"""

from __future__ import annotations

import argparse
from pathlib import Path

HELP = "tell the whole story on the model that ships inside"


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--keep",
        type=Path,
        metavar="DIR",
        help="write the generated and the tuned files there and keep them",
    )


def run(options: argparse.Namespace) -> int:
    from burnish.codegen.errors import UsageError
    from burnish.codegen.tools import demo

    if options.keep and options.keep.exists() and not options.keep.is_dir():
        raise UsageError(f"--keep: expected a folder, got the file {options.keep}")
    demo.print_steps(options.keep)
    return 0
