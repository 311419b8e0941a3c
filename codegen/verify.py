"""Compare a generated module's numbers with the model file's, on the same inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from burnish import Tensor
from burnish.codegen import feeds
from burnish.codegen.errors import UsageError, VerifyError, spelled
from burnish.codegen.loaded import imported, model_of
from burnish.codegen.names.identifier import Identifier
from burnish.codegen.output.magnitude import magnitude
from burnish.codegen.passes.graph import RANDOM, all_nodes
from burnish.codegen.passes.shapes.fitting import fit
from burnish.codegen.readers import Source, read, reference

#: How far from the reference, relative to an output's largest number, is the same.
TOLERANCE = 1e-4
_COARSE = {"float16": 5e-3, "bfloat16": 4e-2}
ABSOLUTE = 1e-6
_QUANTIZERS = frozenset(
    ("DynamicQuantizeLSTM", "DynamicQuantizeLinear", "QLinearConv", "QLinearMatMul")
) | {"QuantizeLinear"}

#: The share of an output's scale that rounding may explain; more says nothing.
_MOST_ROUNDING = 0.1

#: How often the last bits of a reference are drawn at most: a code near the middle of
#: two turns in one draw of four, so few draws may turn none.
_TRIALS = 32


@dataclass(frozen=True)
class Compared:
    """One output beside the reference's."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    max_abs: float  #: largest difference
    max_rel: float  #: the same, relative to the reference's largest number but a mask's
    limit: float  #: what max_abs may be
    agrees: bool
    reason: str = ""


@dataclass(frozen=True)
class Report:
    """The result of `verify`; `agrees` decides the exit code."""

    model: str
    module: str
    reference: str
    inputs: dict[str, str]
    outputs: tuple[Compared, ...]
    notes: tuple[str, ...]
    agrees: bool


def verify(
    model: str | Path,
    module: str | Path,
    *,
    inputs: Mapping[str, Path] | None = None,
    dims: Mapping[str, int] | None = None,
    seed: int = 0,
    rtol: float | None = None,
) -> Report:
    """Run both on the same inputs.

    module: the generated file or its folder. inputs: .npy files by input name; others
    are drawn from `seed`. dims: sizes of open dimensions by name. rtol: allowed
    difference relative to each output's largest number, 1e-4 for float32.
    """
    source = read(model)
    file = _module_file(source, Path(module))
    fed, expected, by = _reference(source, inputs or {}, dims or {}, seed)
    got = _run(file, fed)
    names = [value.name or "" for value in source.model.graph.outputs]
    within = _coarsest(source) if rtol is None else rtol
    if len(got) != len(names):
        raise VerifyError(
            f"{file}: expected {len(names)} outputs ({', '.join(names)}), "
            f"got {len(got)}"
        )
    outputs = tuple(
        compare(name, mine, theirs, within)
        for name, mine, theirs in zip(names, got, expected, strict=True)
    )
    notes = [*source.notes, *_random(source)]
    if _rounds(source) and not all(output.agrees for output in outputs):
        outputs = _with_spread(source, fed, expected, outputs, notes)
    elif any(map(_may_be_rounding, outputs)):
        wide = reference.in_float64(source.path, fed) or []
        for i, output in enumerate(outputs if wide else ()):
            if _may_be_rounding(output):
                judged, note = _by_float64(output, got[i], expected[i], wide[i])
                outputs = (*outputs[:i], judged, *outputs[i + 1 :])
                notes.append(note)
    return Report(
        model=str(model),
        module=str(file),
        reference=by,
        inputs={name: feeds.described(array) for name, array in fed.items()},
        outputs=outputs,
        notes=tuple(notes),
        agrees=all(output.agrees for output in outputs),
    )


def _with_spread(
    source: Source,
    fed: reference.Feeds,
    expected: list[Any],
    outputs: tuple[Compared, ...],
    notes: list[str],
) -> tuple[Compared, ...]:
    """The outputs of a quantized model, with limits as onnxruntime's results spread."""
    exact = reference.by_definition(source.path, fed) or expected
    outputs = tuple(map(_within, outputs, map(_distance, expected, exact)))
    notes.append(
        "activations are quantized: the limit of each output is at least twice "
        "how far onnxruntime's results with and without its optimizations are apart"
    )
    if not any(map(_may_be_rounding, outputs)):
        return outputs
    moved = _with_noise(source.path, fed, exact, outputs)
    if moved != outputs:
        notes.append(
            "codes near the middle of two turn with the order of float32 sums: "
            "the limit is also twice how far onnxruntime's own result moves "
            "when last bits do, up to a tenth of the output"
        )
    return moved


def _coarsest(source: Source) -> float | None:
    """The tolerance for a model with a step in half precision; None for others."""
    values = (value for node in all_nodes(source.model) for value in node.outputs)
    kinds = {str(value.dtype).lower() for value in values}
    return max((_COARSE[kind] for kind in kinds & _COARSE.keys()), default=None)


def _rounds(source: Source) -> bool:
    """Whether activations are quantized: float rounding may change a code by one."""
    return any(node.op_type in _QUANTIZERS for node in all_nodes(source.model))


def _distance(a: Any, b: Any) -> float:
    """The largest difference of two float arrays of one shape; 0 for others."""
    (a, _), (b, _) = _joined(a), _joined(b)
    if a.dtype.kind != "f" or a.shape != b.shape or not a.size:
        return 0.0
    distance = np.abs(a.astype(np.float64) - b).max()
    return float(distance) if np.isfinite(distance) else 0.0


def _with_noise(
    path: Path, fed: reference.Feeds, plain: Sequence[Any], outputs: Sequence[Compared]
) -> tuple[Compared, ...]:
    """The verdicts where onnxruntime's own results move with the last bits so far.

    Draws end where all outputs agree.
    """
    judged = tuple(outputs)
    for moved in islice(reference.with_noise(path, fed), _TRIALS):
        judged = tuple(map(_within_noise, judged, map(_distance, moved, plain)))
        if not any(map(_may_be_rounding, judged)):
            break
    return judged


def _within_noise(output: Compared, moves: float) -> Compared:
    """The verdict where last bits move a right result so far."""
    if not _may_be_rounding(output):
        return output
    scale = output.max_abs / output.max_rel
    return _within(output, min(moves, _MOST_ROUNDING * scale / 2))


def _within(output: Compared, spread: float) -> Compared:
    """The verdict where two right results may be `spread` apart, and a third as far."""
    limit = 2 * spread
    if output.agrees or limit <= output.limit:
        return output
    agrees = output.max_abs <= limit
    reason = "" if agrees else output.reason
    return replace(output, limit=limit, agrees=agrees, reason=reason)


def _may_be_rounding(output: Compared) -> bool:
    """Whether float32 numbers stand where they should and differ."""
    is_float = output.dtype == "float32"
    return is_float and not output.agrees and np.isfinite(output.max_abs)


def _by_float64(
    output: Compared, got: Any, expected: Any, exact: Any
) -> tuple[Compared, str]:
    """The verdict of a float64 run where results differ, and a line on who is nearer.

    A module agrees that is within the output's limit of it, or not twice as far from it
    as the reference, whose own rounding is then what differs.
    """
    right = _joined(exact)[0]
    mine, theirs = (  # infinite where they differ in what is not finite
        compare(output.name, _joined(each)[0].astype("float64"), right).max_abs
        for each in (got, expected)
    )
    scale = output.max_abs / output.max_rel
    is_rounding = mine <= 2 * theirs <= _MOST_ROUNDING * scale
    note = (
        f"{output.name}: off a float64 run by {mine:.1e}, the reference by {theirs:.1e}"
    )
    if mine <= output.limit or is_rounding:
        output = replace(output, agrees=True, reason="")
    return output, note


def compare(name: str, got: Any, expected: Any, rtol: float | None = None) -> Compared:
    """One output beside the reference's; NaN equals NaN, whole numbers are exact.

    Dictionaries are compared as rows, with a column for each key of any of them; the
    tensors of a sequence as one array.
    """
    if _are_maps(got) and _are_maps(expected):
        keys = dict.fromkeys(key for row in (*expected, *got) for key in row)
        got, expected = (
            [[row.get(key) for key in keys] for row in rows] for rows in (got, expected)
        )
    (mine, shape), (theirs, wanted) = _joined(got), _joined(expected)
    dtype = str(theirs.dtype)

    def result(distance: float, scale: float, limit: float, reason: str) -> Compared:
        return Compared(
            name,
            mine.shape,
            str(mine.dtype),
            distance,
            distance / scale if scale else distance,
            limit,
            not reason,
            reason,
        )

    if shape != wanted:
        return result(np.inf, 0, 0, f"expected shape {wanted}, got {shape}")
    if mine.dtype != theirs.dtype:
        return result(np.inf, 0, 0, f"expected {dtype}, got {mine.dtype}")
    if theirs.dtype.kind in "OUSb":
        same = bool(np.array_equal(mine, theirs))
        return result(0.0 if same else np.inf, 0, 0, "" if same else "values differ")
    wide = np.complex128 if theirs.dtype.kind == "c" else np.float64
    a, b = mine.astype(wide), theirs.astype(wide)
    finite = np.isfinite(b)
    if not np.array_equal(a[~finite], b[~finite], equal_nan=True):
        return result(np.inf, 0, 0, "infinities or NaNs stand elsewhere")
    if not finite.any():
        return result(0.0, 0, 0, "")
    scale = magnitude(b[finite], a[finite] == b[finite])
    distance = float(np.abs(a[finite] - b[finite]).max())
    if theirs.dtype.kind in "iu":
        return result(distance, scale, 0.0, "values differ" if distance else "")
    factor = _COARSE.get(dtype, TOLERANCE) if rtol is None else rtol
    limit = ABSOLUTE + factor * scale
    reason = "" if distance <= limit else "differs by more than the limit"
    return result(distance, scale, limit, reason)


def _joined(value: Any) -> tuple[np.ndarray, Any]:
    """An output as an array, and its shape.

    Tensors of a sequence whose shapes differ stand one behind the other; of those the
    shape is a list.
    """
    shapes = [*map(np.shape, value)] if isinstance(value, list) else []
    if len(set(shapes)) > 1:
        return np.concatenate([*map(np.ravel, value)]), shapes
    array = np.asarray(value)
    return array, array.shape


def _are_maps(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(row, Mapping) for row in value)


def _reference(
    source: Source, given: Mapping[str, Path], dims: Mapping[str, int], seed: int
) -> tuple[reference.Feeds, list[Any], str]:
    """Inputs that the reference accepts, and its outputs."""
    tries = partial(feeds.tries, source.model, given=given, dims=dims, seed=seed)
    try:
        return reference.run(source.path, tries)
    except VerifyError as error:
        names = ", ".join(feeds.dimensions(source.model)) or "none"
        files = spelled("inputs={name: path}", "--input NAME=FILE.npy")
        wanted = str(fit(source.model, dims))
        asks = f"; its layers ask for {wanted}" if wanted else ""
        raise VerifyError(
            f"{error}; set the sizes that the model wants with "
            f"{spelled('dims={name: size}', '--dim NAME=SIZE')} (open: {names}"
            f"{asks}), or give inputs with {files}"
        ) from error


def _random(source: Source) -> list[str]:
    kinds = {n.op_type for n in all_nodes(source.model)} & (RANDOM - {"Dropout"})
    if not kinds:
        return []
    return [f"{', '.join(sorted(kinds))}: random, so outputs differ from run to run"]


# --- the generated module ---


def _module_file(source: Source, module: Path) -> Path:
    if module.is_dir():
        module = module / f"{Identifier.module(source.path.stem)}.py"
    if not module.is_file() or module.suffix != ".py":
        folder = module.parent if module.suffix else module
        raise UsageError(
            f"{module}: expected a generated module (.py), there is none; "
            f"run: burnish generate {source.path} -o {folder}"
        )
    return module


def _run(file: Path, fed: Mapping[str, np.ndarray]) -> Sequence[Any]:
    """The module's outputs in their order, tensors as arrays."""
    try:
        with imported(file) as module:
            outputs = model_of(module, file)(*(Tensor(a) for a in fed.values()))
    except VerifyError:
        raise
    except Exception as error:  # generated code may be edited, so it may raise anything
        given = ", ".join(map(feeds.described, fed.values()))
        raise VerifyError(
            f"{file}: expected it to run on {given}, got "
            f"{type(error).__name__}: {error}"
        ) from error
    several = outputs if isinstance(outputs, tuple) else (outputs,)
    return [o.numpy() if isinstance(o, Tensor) else o for o in several]
