"""Rewrite an ONNX file for a newer opset; the numbers stay the same."""

from __future__ import annotations

import argparse
from pathlib import Path

from burnish.codegen.cli.parsing.parser import new_file, whole

HELP = "rewrite an old ONNX file for opset 16 or newer"


def arguments(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    add("model", type=Path, metavar="OLD", help="the ONNX file")
    new_file(command)
    add("--opset", type=whole, metavar="N", help="the opset to reach (default: 16)")
    add("--json", action="store_true", help="print one JSON object instead of text")


def run(options: argparse.Namespace) -> int:
    from burnish.codegen.tools import console, upgrade

    done = upgrade.upgrade(options.model, options.out, options.opset)
    if options.json:
        console.emit(done)
        return 0
    for note in done.notes:
        console.say(f"note: {note}")
    for file in done.files:
        console.line(file)
    console.say(f"opset {done.before} -> {done.after}")
    console.say(f"next: burnish generate {done.files[0]}")
    return 0
