"""Say what a model file holds: operators, coverage, shapes, parameters, FLOPs.

Of a weights file or folder (safetensors, PyTorch): names, shapes, dtypes and bytes;
values are not read. Of a folder with config.json also the class and its sizes. Nothing
is converted or written. The exit code is 1 when an operator has no import rule, or when
a configuration is refused.

With --html or --against the model's source is made and run once: a page of its modules,
with shapes, costs and weights; and what two models differ in.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from burnish.codegen.cli import _page as page
from burnish.codegen.cli import _weights as weights
from burnish.codegen.cli.parsing.pairs import inputs, sizes

if TYPE_CHECKING:
    from burnish.codegen.tools.inspect_model import Inspection

HELP = "say what a model file holds and whether all of it can be converted"


def arguments(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    add("model", type=Path, metavar="MODEL", help="the model file")
    inputs(command)
    add(
        "--inert",
        action="store_true",
        help="read objects of unknown classes in a pickle as records that do nothing",
    )
    add(
        "--html",
        type=Path,
        nargs="?",
        const=Path(),
        metavar="FILE",
        help="write a page to look at the model (default: NAME.html)",
    )
    add("--against", type=Path, metavar="OTHER", help="say what another model changes")
    add("--json", action="store_true", help="print one JSON object instead of text")


def run(options: argparse.Namespace) -> int:
    from burnish.codegen.errors import UsageError
    from burnish.codegen.tools import console, inspect_model
    from burnish.serialize import is_weights

    if options.html is not None or options.against is not None:
        return page.run(options)
    if options.input:
        raise UsageError(
            "--input: expected --html or --against, which run the model, got neither"
        )
    if options.model.exists() and is_weights(options.model):
        return weights.run(options.model, options.inert, options.json)
    found = inspect_model.inspect(options.model, dims=sizes(options.dim))
    if options.json:
        console.emit(found)
    else:
        _print(found)
    return 0 if found.convertible else 1


def _print(found: Inspection) -> None:
    from burnish.codegen.tools.console import count, line, say, table

    by = f" by {found.producer}" if found.producer else ""
    line(f"{Path(found.model).name}: opset {found.opset}{by}")
    print(f"sha256 {found.sha256}\n")
    ports = [(port.name, str(port), "input") for port in found.inputs]
    ports += [(port.name, str(port), "output") for port in found.outputs]
    table(("name", "shape", "kind"), ports)
    print()
    table(
        ("operator", "opset", "nodes", "import rule"),
        [
            (
                f"{operator.domain}::{operator.op_type}".removeprefix("::"),
                operator.version,
                operator.count,
                "yes" if operator.supported else f"no: {', '.join(operator.nodes)}",
            )
            for operator in found.operators
        ],
    )
    print()
    table(
        ("weights", "tensors", "parameters", "bytes"),
        [(w.dtype, w.tensors, w.parameters, w.bytes) for w in found.weights],
    )
    print()
    nodes = f"{count(found.nodes, 'node')}, {found.coverage:.0%} with an import rule"
    print(f"{nodes}: {'can' if found.convertible else 'cannot'} be converted")
    assumed = "".join(f", {name} counted as 1" for name in found.assumed)
    line(f"{found.flops:,} FLOPs a pass{assumed}")
    if found.uncounted:
        say(f"note: not counted, for want of shapes: {', '.join(found.uncounted)}")
    for note in found.notes:
        say(f"note: {note}")
    if found.convertible:
        say(f"next: burnish generate {found.model}")
