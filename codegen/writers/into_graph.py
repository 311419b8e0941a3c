"""Write fine-tuned weights back into the ONNX graph that their module came from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from burnish.codegen.account import few
from burnish.codegen.errors import ExportError, UsageError, about, keep_inputs
from burnish.codegen.output.generated import Options
from burnish.codegen.pipeline import planned
from burnish.codegen.readers import parts_of, read, valid_or_refused
from burnish.codegen.weights.dequantized import small
from burnish.codegen.weights.entries import Entry, entries
from burnish.codegen.weights.origin import Origin, track
from burnish.codegen.writers.graph_file import GraphFile
from burnish.codegen.writers.solve import solved
from burnish.serialize import Weights, is_weights, open_weights

#: How a module may have been generated; its weights are named accordingly.
_WAYS = (
    Options(),
    Options(flat=True),
    Options(simplify=False),
    Options(flat=True, simplify=False),
    Options(dequantize=True),
    Options(dequantize=True, flat=True),
)
_SHOWN = 5
_COUNTED = "num_batches_tracked"
"""PyTorch's counter of training steps: no tensor of an ONNX graph."""


@dataclass(frozen=True)
class Written:
    """The result of `onto`: how many tensors of the graph have new values."""

    files: tuple[str, ...]
    tensors: int
    changed: int


def onto(weights: str | Path, original: str | Path, out: str | Path) -> Written:
    """Write the model at `original` to `out`, with the numbers of a weights file.

    Numbers that are as they were keep their bits. Weights of a graph that has its data
    beside it are written beside `out`. Raises ExportError for weights that are not the
    model's, or that its graph cannot hold.
    """
    weights, original, out = Path(weights), Path(original), Path(out)
    _check_paths(weights, original, out)
    held = open_weights(weights)
    with about(original), valid_or_refused(original):
        origins, made = _matching(original, held)
        given = {e.path: _given(held, e) for e in made}
        new = solved(made, given)
        file = GraphFile(original)
        changed = _assign(file, origins, new)
        files = file.write(out)
    return Written(tuple(map(str, files)), len(origins), changed)


def _check_paths(weights: Path, original: Path, out: Path) -> None:
    if not is_weights(weights):
        raise UsageError(
            f"{weights}: expected a weights file, such as a module's save_file writes"
        )
    if original.is_dir() or is_weights(original):
        raise UsageError(
            f"{original}: expected the ONNX file that the module was generated from"
        )
    if not out.parent.is_dir():
        raise UsageError(f"{out}: expected a folder {out.parent}, there is none")
    keep_inputs([out, out.with_name(f"{out.name}.data")], [weights, original])


def _matching(original: Path, held: Weights) -> tuple[list[Origin], list[Entry]]:
    """The file's tensors, and the weights of the module that has those of the file."""
    first: ExportError | None = None
    for options in _WAYS:
        source = read(original)
        origins = track(source.model, *parts_of(source.model).values())
        _, plan = planned(source, options)
        every = entries(plan.weights, False)
        every = every if options.dequantize else small(every)
        made = [entry for entry in every if not _is_count(entry.path)]
        problem = _mismatch(held, made)
        if not problem:
            return origins, made
        first = first or ExportError(f"{held.where}: {problem}")
    assert first is not None
    raise first


def _is_count(path: str) -> bool:
    return path.rpartition(".")[2] == _COUNTED


def _mismatch(held: Weights, made: Sequence[Entry]) -> str:
    """Why the file cannot be this module's; "" where it can."""
    names = {entry.path for entry in made}
    problems = []
    if missing := names - held.keys():
        problems.append(f"has no {few(sorted(missing), _SHOWN)}")
    if others := {name for name in held if not _is_count(name)} - names:
        problems.append(f"has {few(sorted(others), _SHOWN)}, which the module has not")
    for entry in made:
        shape = entry.weight.shape
        if entry.path in held and held[entry.path].shape != shape:
            got = held[entry.path].shape
            problems.append(f"expected {entry.path} of shape {shape}, got {got}")
    if not problems:
        return ""
    return (
        "expected the weights of the module that is generated from the model file; "
        + "; ".join(problems)
    )


def _given(held: Weights, entry: Entry) -> np.ndarray:
    """The file's numbers for a weight, in its kind of numbers or a narrower one."""
    array = np.asarray(held[entry.path].read())
    kinds = [np.dtype(d).name for d in (array.dtype, entry.dtype)]
    whole = [("float" not in kind) for kind in kinds]
    if kinds[0] != kinds[1] and any(whole):
        raise ExportError(
            f"{entry.path}: expected {entry.dtype}, got {array.dtype} in {held.where}"
        )
    return array


def _assign(
    file: GraphFile, origins: Sequence[Origin], new: Mapping[Origin, np.ndarray]
) -> int:
    """Put new values into the file; how many of its tensors have some."""
    changed = 0
    for origin in origins:
        value = _value(origin, new)
        held = origin.held.numpy()
        for copy in origin.copies:
            own = _value(copy, new)
            if own.tobytes() != value.tobytes():
                file.split(origin.origin, own, copy.uses)
                changed += 1
        if value.tobytes() != held.tobytes():
            file.assign(origin.origin, held, value)
            changed += 1
    return changed


def _value(origin: Origin, new: Mapping[Origin, np.ndarray]) -> np.ndarray:
    """The new values of an origin, direct or computed from its replacement's."""
    held = np.asarray(origin.held.numpy())
    if origin.made_by is None:
        return new.get(origin, held)
    other, how = origin.made_by
    before = np.asarray(other.held.numpy())
    now = _value(other, new)
    if now.tobytes() == before.tobytes():
        made = held
    else:
        made = np.asarray(how(now.astype(_wide(now)))).astype(held.dtype)
    if origin in new and new[origin].tobytes() != made.tobytes():
        raise ExportError(
            f"{origin.origin!r} of the model file is read in two ways, whose weights "
            f"do not agree any more"
        )
    return made


def _wide(array: np.ndarray) -> np.dtype:
    """The dtype of computation; elements that only move keep their own."""
    return np.dtype(np.float64) if array.dtype.kind == "f" else array.dtype
