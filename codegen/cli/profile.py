"""Say where a generated module's time and memory go: by module and by operator.

The model runs once to warm up and then --runs times, on random inputs or on those
given. Every operator is timed separately, on a GPU too.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from burnish.codegen.cli.parsing.pairs import files, inputs, sizes
from burnish.codegen.cli.parsing.parser import natural, positive

HELP = "say where a generated module's time and memory go"


def arguments(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    add("module", type=Path, metavar="MODULE", help="the generated file (.py)")
    add("--weights", type=Path, metavar="FILE", help="other weights than its own")
    inputs(command)
    add(
        "--runs",
        type=positive,
        default=10,
        dest="count",
        metavar="N",
        help="how often, after one run to warm up (default: 10)",
    )
    add("--train", action="store_true", help="with gradients, of the outputs' sum")
    add("--device", default="cpu", metavar="NAME", help="cpu or cuda (default: cpu)")
    add(
        "--operators",
        type=positive,
        default=10,
        metavar="N",
        help="how many operators the table lists (default: 10)",
    )
    add(
        "--depth",
        type=natural,
        metavar="N",
        help="how far modules are listed below the model (default: all)",
    )
    add("--trace", type=Path, metavar="FILE", help="write a trace for Perfetto")
    add("--html", type=Path, metavar="FILE", help="write a page")
    add("--json", action="store_true", help="print one JSON object instead of text")


def run(options: argparse.Namespace) -> int:
    from burnish.codegen.errors import keep_inputs
    from burnish.codegen.tools import console, profile_module
    from burnish.profiling.shown import text

    read = [p for p in (options.module, options.weights) if p is not None]
    read.append(options.module.with_suffix(".safetensors"))
    given = files(options.input)
    written = [p for p in (options.trace, options.html) if p is not None]
    keep_inputs(written, [*read, *given.values()])
    found = profile_module.profiled(
        options.module,
        weights=options.weights,
        inputs=given,
        dims=sizes(options.dim),
        runs=options.count,
        train=options.train,
        device=options.device,
    )
    if options.trace is not None:
        found.profile.save_trace(options.trace)
    if options.html is not None:
        profile_module.page(found, options.html)
    if options.json:
        console.emit(profile_module.summarised(found))
    else:
        shown = ", ".join(f"{name} {each}" for name, each in found.inputs.items())
        console.line(f"{options.module.name} on {shown}")
        table = text(found.profile, options.operators, options.count, options.depth)
        for each in table.split("\n"):
            console.line(each)
    return 0
