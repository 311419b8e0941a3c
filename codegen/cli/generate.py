"""Write Python source and its weights for each model.

A model m.onnx, or a folder m with config.json and weights as transformers saves them,
becomes m.py and m.safetensors in DIR. Import m and call m.Model.from_file(). Weights
alone (m.pt, m.safetensors, a folder of them) give the modules; what they do not tell of
forward is an nn.Unwritten in the source.

Without MODEL: every module that the [[tool.burnish.model]] tables of the project's
pyproject.toml name, where something changed.
"""

from __future__ import annotations

import argparse
import shlex
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

from burnish.codegen.cli import _compiled, _project
from burnish.codegen.cli.parsing.parser import flags
from burnish.codegen.errors import already, noting, others

if TYPE_CHECKING:
    from burnish.codegen.compiled import Call
    from burnish.codegen.output.generated import Generated
    from burnish.codegen.output.ownership import Settled
    from burnish.codegen.tools.console import Listener
    from burnish.codegen.web import folder as web

EXISTING = {
    "diff": "show what would change in the source, write nothing",
    "force": "replace files that were changed or are not ours; they stay as .bak",
    "merge": "bring changes made to the source into the new one",
}
"""How to treat files that exist already."""

HELP = "write a model as Python source and a weights file"


@dataclass(frozen=True)
class Written:
    """The files generated from one model file; `--json` prints a list of these.

    kept: the files that were there before, under their new names. conflicts: places in
    the source that are marked, because both sides changed. unknown: operators that
    methods to fill in stand for, and their nodes. plans: the arguments of the calls
    that --compiled plans; unplanned: why none could be.
    """

    model: str
    module: str
    parameters: int
    files: list[Path]
    kept: list[Path]
    conflicts: int
    notes: list[str]
    unknown: dict[str, list[str]]
    plans: list[str]
    unplanned: list[str]


def arguments(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    add(
        "models",
        nargs="*",
        type=Path,
        metavar="MODEL",
        help="a model file or folder (default: those of the project)",
    )
    add(
        "-o",
        "--out",
        type=Path,
        metavar="DIR",
        help="the folder to write to; it is made (default: the current folder)",
    )
    add("--name", help="the module's name (default: the model file's)")
    flags(
        command,
        half="store weights in half precision",
        embed="carry the weights inside the package",
    )
    add(
        "--quantize",
        choices=("q8", "q4"),
        help="store matrices in 8 or 4 bits; verify says what that changes",
    )
    flags(
        command,
        dequantize="the float model that a quantized file was made of, to fine-tune",
    )
    add(
        "--no-weights",
        dest="weights",
        action="store_false",
        help="the source alone: its weights come from elsewhere",
    )
    add(
        "--no-simplify",
        dest="simplify",
        action="store_false",
        help="keep the graph as the file has it",
    )
    flags(
        command,
        flat="one class, whatever the file's structure",
        typed="source with annotations for type checkers",
        standalone="one file for NumPy alone: the model, and what of burnish it uses",
        selftest="golden inputs and outputs in the source: python -m MODULE --selftest",
        allow_unknown="unsupported operators become methods to fill in",
    )
    _compiled.arguments(command)
    add("--template-dir", type=Path, metavar="DIR", help="templates that replace ours")
    add(
        "--rules",
        action="append",
        default=[],
        metavar="MODULE",
        help="a Python module that declares operators with @onnx_op",
    )
    there = command.add_mutually_exclusive_group()
    for name, text in EXISTING.items():
        there.add_argument(
            f"--{name}",
            dest="existing",
            action="store_const",
            const=name,
            default="keep",
            help=text,
        )
    flags(
        command,
        web="write a page too, NAME_web/index.html, that runs the model in a browser",
        watch="stay, and generate the project's modules again when a file changes",
        explain="say on stderr what was decided and why",
        json="print one JSON object instead of text",
    )


def run(options: argparse.Namespace) -> int:
    from burnish.codegen import pipeline
    from burnish.codegen.compiled import check_owned
    from burnish.codegen.errors import UsageError
    from burnish.codegen.model_gen import refuse_one_name_twice
    from burnish.codegen.project import rules
    from burnish.codegen.tools import console

    if not options.models:
        return _project.run(options)
    _refuse_together(options)
    options.out = options.out or Path()
    if options.name and len(options.models) > 1:
        raise UsageError(
            f"--name: expected one model to name, got {len(options.models)}"
        )
    if options.template_dir and not options.template_dir.is_dir():
        raise UsageError(f"--template-dir: {options.template_dir} is not a folder")
    rules.load(options.rules)
    with console.progress() as listen:
        calls = _compiled.calls(options)
        made = _generated(options, listen)
        refuse_one_name_twice(made)
        if options.existing == "diff":
            places = [(options.out / f"{each.name}.py", each.text) for each in made]
            return _project.show_diffs(places, options.json)
        with noting(lambda: others(len(made))):
            settled = [pipeline.settle(g, options.out, options.existing) for g in made]
            pages = [_page(each, options) for each in settled] if options.web else []
            for each in settled if calls else ():
                check_owned(each.source, options.existing)
        written: list[Written] = []
        for number, each in enumerate(settled):
            listen("writing files", number, len(made))
            with noting(lambda: already([f for w in written for f in w.files])):
                files, kept = pipeline.put(each)
            if pages:
                more, old = _write_page(pages[number], each)
                files, kept = [*files, *more], [*kept, *old]
            result = _written(options.models[number], each, files, kept)
            written.append(result)
            if calls:
                listen("planning", number, len(made))
                _plan(result, each, calls[number], options.existing)
    if options.json:
        console.emit({"generated": written})
    else:
        for result in written:
            _report(result, options.weights)
    return int(any(result.conflicts or result.unplanned for result in written))


def _plan(result: Written, of: Settled, calls: list[Call], existing: str) -> None:
    """Plan the calls of a module that was written, and add what became of them."""
    planned, kept = _compiled.planned(of.source, calls, existing)
    result.files.extend(planned.files)
    result.kept.extend(kept)
    result.plans.extend(planned.plans if planned.files else ())
    result.unplanned.extend(planned.reasons)
    result.notes.extend(planned.notes)


def _page(settled: Settled, options: argparse.Namespace) -> web.Page:
    """The page of a module that is about to be written."""
    from burnish.codegen.web.folder import planned

    return planned(
        settled.generated.name,
        settled.text,
        settled.folder,
        loader="from_embedded" if options.embed else "from_file",
        force=options.existing == "force",
    )


def _write_page(page: web.Page, of: Settled) -> tuple[list[Path], list[Path]]:
    """Write the page of a module that was written."""
    from burnish.codegen.web.folder import write

    return write(page, [of.source, *([of.stored] if of.has_weights else [])])


def _refuse_together(options: argparse.Namespace) -> None:
    from burnish.codegen.errors import UsageError

    if options.watch:
        raise UsageError(
            "--watch: expected no MODEL: it watches those of the project's tables; "
            "burnish init MODEL writes one"
        )
    if options.web and options.existing == "diff":
        raise UsageError("--web: expected to write files, got --diff")
    for word in ("embed", "quantize", "web"):
        if getattr(options, word) and not options.weights:
            raise UsageError(f"--{word}: expected weights, got --no-weights")


def _generated(options: argparse.Namespace, listen: Listener) -> list[Generated]:
    """All of them before one is written, so that a failure leaves nothing half-done."""
    from burnish.codegen import pipeline
    from burnish.codegen.tools import console

    words = [each.name for each in fields(pipeline.Options)]
    settings = pipeline.Options(**{word: getattr(options, word) for word in words})
    made = []
    with noting(lambda: others(len(options.models))):
        for model in options.models:
            made.append(
                pipeline.generate(
                    model,
                    settings,
                    template_dir=options.template_dir,
                    progress=listen,
                    explain=console.say if options.explain else None,
                )
            )
    return made


def _written(
    model: Path, settled: Settled, files: list[Path], kept: list[Path]
) -> Written:
    made = settled.generated
    return Written(
        str(model),
        made.name,
        made.parameters,
        files,
        kept,
        settled.conflicts,
        list(made.notes),
        dict(made.unknown),
        [],
        [],
    )


def _report(result: Written, has_weights: bool) -> None:
    from burnish.codegen.tools import console
    from burnish.serialize import is_weights

    source = str(result.files[0])
    for note in result.notes:
        console.say(f"note: {note}")
    for path in result.files:
        console.line(path)
    for path in result.kept:
        console.say(f"kept: {path}")
    if result.conflicts:
        conflicts = console.count(result.conflicts, "conflict")
        console.say(f"{source}: {conflicts}, marked <<<<<<< and >>>>>>>")
    for kind in result.plans:
        console.say(f"planned: {kind}")
    for reason in result.unplanned:
        console.say(f"not planned: {source}: {reason}; burnish.compile runs it")
    console.say(console.count(result.parameters, "parameter"))
    open_ends = result.unknown or result.conflicts or not has_weights
    if not (open_ends or is_weights(result.model)):
        console.say(f"next: {shlex.join(['burnish', 'verify', result.model, source])}")
