"""Write fine-tuned weights back into the ONNX graph that their module came from.

The graph stays as it is; numbers that training did not change keep their bits. What the
graph cannot hold is refused by name.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from burnish.codegen.cli.parsing.parser import new_file

HELP = "write fine-tuned weights back into the ONNX file they came from"


def arguments(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    add(
        "weights",
        type=Path,
        metavar="WEIGHTS",
        help="what the module's save_file wrote",
    )
    add(
        "--onto",
        dest="model",
        type=Path,
        metavar="ORIGINAL",
        required=True,
        help="the ONNX file that the module was generated from",
    )
    new_file(command)
    add("--json", action="store_true", help="print one JSON object instead of text")


def run(options: argparse.Namespace) -> int:
    from burnish.codegen import writers
    from burnish.codegen.tools import console

    done = writers.onto(options.weights, options.model, options.out)
    if options.json:
        console.emit(done)
        return 0
    for file in done.files:
        console.line(file)
    console.say(f"{done.changed} of {done.tensors} tensors have other numbers")
    return 0
