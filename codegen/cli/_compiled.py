"""`burnish generate --compiled`: plans for calls of the generated model."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from burnish.codegen.cli.parsing.pairs import choices, files
from burnish.codegen.errors import UsageError

if TYPE_CHECKING:
    from burnish.codegen.compiled import Call, Planned


def arguments(command: argparse.ArgumentParser) -> None:
    """Add --compiled, and what says which calls are planned."""
    add = command.add_argument
    add(
        "--compiled",
        action="store_true",
        help="plan calls ahead of time too: NAME.plan.safetensors, NAME.kernels.so",
    )
    add(
        "--dim",
        action="append",
        default=[],
        metavar="NAME=SIZE,...",
        help="sizes of an open dimension to plan for; may be repeated",
    )
    add(
        "--input",
        action="append",
        default=[],
        metavar="NAME=FILE.npy",
        help="an input's values to plan with; may be repeated",
    )


def calls(options: argparse.Namespace) -> list[list[Call]]:
    """The calls to plan of each model; [] without --compiled.

    Raises UsageError for options that it cannot go together with.
    """
    if not options.compiled:
        for word in ("dim", "input"):
            if getattr(options, word):
                raise UsageError(f"--{word}: expected --compiled beside it, got none")
        return []
    for word in ("standalone", "embed"):
        if getattr(options, word):
            raise UsageError(
                f"--compiled: expected a module with its weights in a file beside it, "
                f"got --{word}"
            )
    if not options.weights or options.existing == "diff":
        got = "--diff" if options.weights else "--no-weights"
        raise UsageError(f"--compiled: expected to write weights, got {got}")
    return [_calls_of(model, options) for model in options.models]


def _calls_of(model: Path, options: argparse.Namespace) -> list[Call]:
    from burnish.codegen import compiled
    from burnish.serialize import is_weights

    if model.is_dir() or (model.exists() and is_weights(model)):
        raise UsageError(
            f"--compiled: expected a model file with a graph, got {model}; "
            f"burnish.compile plans others when they are called"
        )
    return compiled.calls(model, dims=choices(options.dim), inputs=files(options.input))


def planned(source: Path, of: list[Call], existing: str) -> tuple[Planned, list[Path]]:
    """Plan the calls of a module that was written; also the files kept as .bak."""
    from burnish.codegen.compiled import check_owned, compiled
    from burnish.codegen.output.ownership import keeping

    with keeping(check_owned(source, existing)) as kept:
        return compiled(source, of), kept
