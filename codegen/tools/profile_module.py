"""Profile a generated module: make its model and its inputs, run it, write the page."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from burnish import Tensor, nn, profile, seed
from burnish._engine.pytree import leaves
from burnish._files.atomic import atomic_write
from burnish.autodiff import backward
from burnish.backend import Device
from burnish.codegen.errors import UsageError, VerifyError, spelled
from burnish.codegen.extensions.environment import filled
from burnish.codegen.feeds import described
from burnish.codegen.loaded import imported, model_of
from burnish.codegen.tools.module_inputs import SIZES, arrays
from burnish.profiling import Profile, Row
from burnish.profiling.shown import cells, milliseconds, modules, size, summary

_ROW = 22  # pixels


@dataclass(frozen=True)
class Profiled:
    """A profile of several runs. inputs: by name, dtype and shape."""

    module: str
    inputs: Mapping[str, str]
    runs: int
    profile: Profile


def profiled(
    file: Path,
    *,
    weights: Path | None = None,
    inputs: Mapping[str, Path] | None = None,
    dims: Mapping[str, int] | None = None,
    runs: int = 10,
    train: bool = False,
    device: str = "cpu",
) -> Profiled:
    """Run a generated module's model once to warm up, then `runs` times.

    inputs: NumPy files instead of random values. dims: sizes of open dimensions. train:
    backward too, from the sum of what the model gives. Raises UsageError for inputs
    that nothing describes, VerifyError where the model does not run on them.
    """
    if not file.is_file() or file.suffix != ".py":
        raise UsageError(f"{file}: expected a generated module (.py)")
    with imported(file) as module:
        model = model_of(module, file, weights)
        model = model.to(Device(device).autodiff() if train else Device(device))
        call = _training if train else _inference
        first: VerifyError | None = None
        for open_size in SIZES:
            given = arrays(model, inputs or {}, dims or {}, open_size)
            try:
                made = _run(model, given, call, runs)
            except Exception as error:  # the module may be edited: it raises anything
                first = first or _problem(file, given, error)
                continue
            shapes = {name: described(each) for name, each in given.items()}
            return Profiled(str(file), shapes, runs, made)
    assert first is not None
    raise first


def _run(
    model: nn.Module,
    inputs: Mapping[str, np.ndarray],
    call: Callable[[Any, Mapping[str, Tensor]], object],
    runs: int,
) -> Profile:
    given = {name: Tensor(each, device=model.device) for name, each in inputs.items()}
    seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of random inputs
        call(model, given)
        with profile() as made:
            for _ in range(runs):
                call(model, given)
    return made


def _inference(model: Any, given: Mapping[str, Tensor]) -> object:
    return model(**given)


def _training(model: Any, given: Mapping[str, Tensor]) -> object:
    """Backward from the sum of every output."""
    results = [y for y in leaves(model(**given)) if y.dtype.kind == "f"]
    if not results:
        raise VerifyError("expected an output of floating-point numbers to train")
    return backward(sum((y.sum() for y in results[1:]), start=results[0].sum()))


def _problem(
    file: Path, inputs: Mapping[str, np.ndarray], error: Exception
) -> VerifyError:
    given = ", ".join(f"{name} {described(each)}" for name, each in inputs.items())
    made = VerifyError(
        f"{file}: expected it to run on {given}, got {type(error).__name__}: {error}; "
        f"set sizes with {spelled('dims={name: size}', '--dim NAME=SIZE')} or inputs "
        f"with {spelled('inputs={name: path}', '--input NAME=FILE.npy')}"
    )
    made.__cause__ = error
    return made


# --- output ---


def summarised(found: Profiled) -> dict[str, Any]:
    """The object that --json prints: times in milliseconds and bytes, of one run."""
    made, runs = found.profile, found.runs
    return {
        "module": found.module,
        "inputs": found.inputs,
        "runs": runs,
        "milliseconds": made.total / 1e6 / runs,
        "parameter_bytes": made.parameters,
        "result_bytes_at_most": made.live,
        "modules": [_row(row, runs) for row in made.modules()],
        "operators": [_row(row, runs) for row in made.operators()],
    }


def _row(row: Row, runs: int) -> dict[str, Any]:
    return {
        "name": row.name,
        "class": row.detail,
        "depth": row.depth,
        "calls": row.calls / runs,
        "own_milliseconds": row.own / 1e6 / runs,
        "total_milliseconds": row.total / 1e6 / runs,
        "result_bytes": row.allocated // runs,
        "live_bytes_at_most": row.live,
    }


def page(found: Profiled, target: Path) -> Path:
    """Write one HTML file: modules as nested bars, and both tables; its path."""
    made, runs = found.profile, found.runs
    rows = made.modules()
    text = filled(
        "profile.html.jinja",
        None,
        title=Path(found.module).name,
        inputs=", ".join(f"{name} {each}" for name, each in found.inputs.items()),
        summary=summary(made, runs),
        bars=list(_bars(rows, runs)),
        height=_ROW * (1 + max(row.depth for row in rows)),
        modules=[
            (row.depth, cells)
            for row, cells in zip(rows, modules(made, runs), strict=True)
        ],
        operators=[cells(row, made.total, runs) for row in made.operators()],
    )
    with atomic_write(target) as file:
        file.write(text.encode())
    return target


def _bars(rows: Sequence[Row], runs: int) -> Iterator[dict[str, str]]:
    """A bar for each module, as wide as its share of the time, below its parent's."""
    whole = sum(row.total for row in rows if row.depth == 0) or 1
    ends: list[float] = [0.0]
    for row in rows:
        del ends[row.depth + 1 :]
        left, width = ends[row.depth], 100 * row.total / whole
        ends[row.depth] += width
        ends.append(left)
        name = row.name or row.detail
        yield {
            "left": f"{left:.3f}",
            "width": f"{width:.3f}",
            "top": str(_ROW * row.depth),
            "name": name.rpartition(".")[2],
            "about": (
                f"{name} {row.detail if row.name else ''}: "
                f"{milliseconds(row.total / runs)} ms, {milliseconds(row.own / runs)} "
                f"its own, results {size(row.allocated / runs)}"
            ),
        }
