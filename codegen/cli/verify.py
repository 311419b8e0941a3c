"""Compare a generated module's numbers with the ONNX reference, on the same inputs."""

from __future__ import annotations

import argparse
from pathlib import Path

HELP = "compare a generated module's numbers with the model file's"


def arguments(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    add("model", type=Path, metavar="MODEL", help="the model file")
    add(
        "module",
        nargs="?",
        type=Path,
        metavar="DIR_OR_MODULE",
        help="the generated file or its folder (default: generated here, not kept)",
    )
    add("--json", action="store_true", help="print one JSON object instead of text")


def run(options: argparse.Namespace) -> int:
    return 0
