"""Compare a generated module's numbers with the model file's, on the same inputs.

The reference is onnxruntime where it is installed, else ONNX's own evaluator. Inputs
are random; the exit code is 1 when an output differs by more than its limit.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

from burnish.codegen.cli.parsing.pairs import files, inputs, sizes
from burnish.codegen.cli.parsing.parser import distance, natural

ALLOWED = {
    "--half": (1e-2, "half precision"),  # each weight is rounded by up to 5e-4
    "--quantize q8": (0.05, "8 bits"),  # by up to 4e-3 of the largest of its row
    "--quantize q4": (0.3, "4 bits"),  # by up to 7e-2 of the largest of 32
}
"""Differences that weights of fewer bits may make, the largest last."""

HELP = "compare a generated module's numbers with the model file's"


def arguments(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    add("model", type=Path, metavar="MODEL", help="the model file")
    add(
        "module",
        nargs="?",
        type=Path,
        metavar="DIR_OR_MODULE",
        help="the generated file or its folder (default: generated anew, not kept)",
    )
    inputs(command)
    add(
        "--seed", type=natural, default=0, metavar="N", help="another draw (default: 0)"
    )
    add(
        "--rtol",
        type=distance,
        metavar="X",
        help="allowed difference relative to an output's largest number "
        "(default: 1e-4, more for weights of fewer bits)",
    )
    add("--json", action="store_true", help="print one JSON object instead of text")


def run(options: argparse.Namespace) -> int:
    from burnish.codegen import verify
    from burnish.codegen.tools import console

    settings: dict[str, Any] = {
        "inputs": files(options.input),
        "dims": sizes(options.dim),
        "seed": options.seed,
        "rtol": options.rtol,
    }
    if options.module is not None:
        settings["rtol"] = settings["rtol"] or _allowed(options.module, options.model)
        report = verify.verify(options.model, options.module, **settings)
    else:
        from burnish.codegen import pipeline

        with tempfile.TemporaryDirectory() as folder:
            with console.progress() as listen:
                made = pipeline.generate(options.model, progress=listen)
                pipeline.write(made, folder)
            module = Path(folder, f"{made.name}.py")
            report = verify.verify(options.model, module, **settings)
    if options.json:
        console.emit(report)
    else:
        console.comparison(report)
    return 0 if report.agrees else 1


def _allowed(module: Path, model: Path) -> float | None:
    """The difference that weights of fewer bits make; None for others."""
    from burnish.codegen.search import shown_name
    from burnish.codegen.signature import header_of, is_generated
    from burnish.codegen.tools import console

    sources = [module] if module.is_file() else sorted(module.glob("*.py"))
    headers = (header_of(s) for s in sources if is_generated(s))
    for header in filter(None, headers):
        found = [each for word, each in ALLOWED.items() if word in header.options]
        if header.model == shown_name(model) and found:
            limit, bits = found[-1]
            console.say(f"note: weights in {bits}, so {limit:g} is allowed")
            return limit
    return None
