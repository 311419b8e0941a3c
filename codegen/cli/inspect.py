"""Say what a model file holds: operators, coverage, shapes, parameters, FLOPs."""

from __future__ import annotations

import argparse
from pathlib import Path

HELP = "say what a model file holds and whether all of it can be converted"


def arguments(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    add("model", type=Path, metavar="MODEL", help="the model file")
    add("--json", action="store_true", help="print one JSON object instead of text")


def run(options: argparse.Namespace) -> int:
    return 0
