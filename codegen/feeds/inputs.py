"""Make inputs for a model: seeded, of the right dtype, with plausible sizes and ids."""

from __future__ import annotations

import itertools
import math
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
import onnx_ir as ir

from burnish.codegen.errors import UsageError, VerifyError, spelled
from burnish.codegen.feeds import prompts
from burnish.codegen.passes.graph import constant, integers
from burnish.codegen.passes.shapes.fitting import fit, open_dims

BATCH = 2
#: Behind it one row alone, the only batch that some files take.
_BATCHES = (BATCH, 1)
#: Tried in this order for open dimensions, until the reference runs; the last is sound.
SIZES = (8, 64, 224, 4096)
#: Those for images: 8 pixels are none behind a few strides.
_IMAGES = (64, 96, 224)
#: Those between, for files that take neither the shortest nor the longer ones.
_FURTHER = (16, 32, 128, 512)
#: Elements of an input that no test wants: each may be an id, a row of a table.
_LARGEST = 1 << 22
#: Elements of a result that the search among a file's numbers may make.
_MOST_WITHIN = 1 << 23
#: The numbers of a file that are tried as sizes, where no likely one runs.
_MOST_NUMBERS = 16
_HANDED_ON = frozenset(
    (
        *("Add", "Mul", "Sub"),  # as wraps of negative ids are written
        "Cast",
        "Clip",
        "Concat",
        "Expand",
        "Flatten",
        "Identity",
        "Reshape",
        "Slice",
        "Squeeze",
        "Transpose",
        "Unsqueeze",
        "Where",
    )
)


def dimensions(model: ir.Model, *, leading: bool = False) -> dict[str, bool]:
    """The open dimensions of the inputs by name; True for those that count a batch.

    leading: those of first axes count one, whatever their names.
    """
    found: dict[str, bool] = {}
    for value in model.graph.inputs:
        for axis, name in open_dims(value):
            known = found.get(name, False)
            first = axis == 0 and (leading or name == "N" or _is_image(value))
            found[name] = known or "batch" in name.lower() or first
    return found


def sizes(model: ir.Model) -> tuple[int, ...]:
    """Sizes to try for open dimensions, likely ones first."""
    return _IMAGES if any(map(_is_image, model.graph.inputs)) else SIZES


def tries(
    model: ir.Model,
    *,
    given: Mapping[str, Path],
    dims: Mapping[str, int],
    seed: int,
) -> Iterator[dict[str, np.ndarray]]:
    """Inputs of every size and batch to try, likely ones first, each once."""
    held = {n for v in model.graph.inputs if v.name in given for n in names_of(v)}
    left = {n: b for n, b in dimensions(model).items() if n not in dims.keys() | held}
    batches = _BATCHES if any(left.values()) else _BATCHES[:1]
    for plan in _plans(model, left, dims):
        wanted = {n: size for n, size in plan.fixed.items() if n in left} | dict(dims)
        for batch, size in itertools.product(batches, plan.lengths):
            for leading in (False, True):
                counts = dimensions(model, leading=leading)
                chosen = {n: batch if b else size for n, b in counts.items()} | wanted
                if _elements(model, chosen) <= _LARGEST and plan.fits(chosen):
                    yield make(
                        model,
                        given=given,
                        dims=wanted,
                        seed=seed,
                        size=size,
                        batch=batch,
                        leading=leading,
                    )
                    break


@dataclass(frozen=True)
class _Plan:
    """Sizes of open dimensions to try: those that are fixed, and one for all others.

    largest: elements of the largest result at sizes, where these are limited.
    """

    lengths: Sequence[int]
    fixed: Mapping[str, int] = field(default_factory=dict)
    largest: Callable[[Mapping[str, int]], int] | None = None

    def fits(self, chosen: Mapping[str, int]) -> bool:
        """Whether no result has too many elements."""
        return self.largest is None or self.largest(chosen) <= _MOST_WITHIN


def _plans(
    model: ir.Model, left: Mapping[str, bool], dims: Mapping[str, int]
) -> Iterator[_Plan]:
    """Likely sizes, then those that the layers ask for, then the numbers of the file.

    Last come the sizes between the likely ones.
    """
    likely = sizes(model)
    if not left:
        yield _Plan(likely[:1])
        return
    yield _Plan(likely)
    wanted = fit(model, dims)
    yield _Plan(list(dict.fromkeys((*likely, *wanted.least.values()))), wanted.solved)
    yield _Plan(_numbers(model, likely), wanted.solved, wanted.largest)
    yield _Plan(_FURTHER, wanted.solved)


def _elements(model: ir.Model, chosen: Mapping[str, int]) -> int:
    """Those along open dimensions, in the input that has the most."""
    counts = (
        math.prod(map(chosen.__getitem__, names_of(v))) for v in model.graph.inputs
    )
    return max(counts, default=1)


def _numbers(model: ir.Model, likely: Sequence[int]) -> list[int]:
    """The file's commonest integers, small ones first: a length may be fixed to one."""
    held = map(constant, model.graph.initializers.values())
    made = (ir.convenience.get_const_tensor(n.outputs[0]) for n in model.graph)
    counted: Counter[int] = Counter()
    for tensor in itertools.chain(held, made):
        if tensor is not None and tensor.dtype.is_integer() and tensor.size <= 8:
            counted.update(tensor.numpy().reshape(-1).tolist())
    common = (n for n, _ in counted.most_common() if 1 < n <= likely[-1])
    return sorted([n for n in common if n not in likely][:_MOST_NUMBERS])


def names_of(value: ir.Value) -> list[str]:
    """The names of an input's open dimensions."""
    return [name for _, name in open_dims(value)]


def _is_image(value: ir.Value) -> bool:
    """Whether it is a batch of images of any height and width, or of spectrograms."""
    axes = {axis for axis, _ in open_dims(value)}
    if value.shape is None or len(value.shape) != 4:
        return False
    convolved = any(node.op_type == "Conv" for node, _ in value.uses())
    return {2, 3} <= axes or {1, 2} <= axes or (convolved and bool(axes & {2, 3}))


def make(
    model: ir.Model,
    *,
    size: int,
    given: Mapping[str, Path],
    dims: Mapping[str, int],
    seed: int,
    batch: int = BATCH,
    leading: bool = False,
) -> dict[str, np.ndarray]:
    """One array an input; `given` ones are read, and fix the dimensions they have."""
    refuse_unknown(
        given, [v.name or "" for v in model.graph.inputs], spelled("inputs", "--input")
    )
    refuse_unknown(dims, list(dimensions(model)), spelled("dims", "--dim"))
    counts = dimensions(model, leading=leading)
    sizes = {name: batch if b else size for name, b in counts.items()}
    loaded = {name: load(name, path) for name, path in given.items()}
    for value in model.graph.inputs:
        if value.name in loaded:
            for axis, name in open_dims(value):
                if axis < loaded[value.name].ndim:
                    sizes[name] = loaded[value.name].shape[axis]
    sizes.update(dims)
    made = {
        value.name or "": loaded[value.name]
        if value.name in loaded
        else _array(value, sizes, seed)
        for value in model.graph.inputs
    }
    own = partial(_random, seed)
    return made | prompts.inputs(
        model, made, loaded, lambda value: _meaning(value)[1], own
    )


def refuse_unknown(names: Mapping[str, object], known: list[str], option: str) -> None:
    """Raise UsageError for names that the model does not have."""
    wrong = sorted(set(names) - set(known))
    if wrong:
        raise UsageError(
            f"{option}: expected one of {', '.join(known) or 'none'}, got "
            f"{', '.join(wrong)}"
        )


def load(name: str, path: Path) -> np.ndarray:
    """An input out of a NumPy file; UsageError where it cannot be read as one."""
    try:
        return np.load(path, allow_pickle=False)
    except EOFError:
        reason = "an empty file"
    except OSError as error:
        reason = error.strerror or "a file that ends too early"
    except ValueError:  # NumPy advises to unpickle, which nobody should
        reason = "another kind of file"
    where = spelled(f"inputs[{name!r}] = {path}", f"--input {name}={path}")
    raise UsageError(f"{where}: expected a NumPy file (.npy), got: {reason}")


def _array(value: ir.Value, sizes: Mapping[str, int], seed: int) -> np.ndarray:
    if value.shape is None or not isinstance(value.type, ir.TensorType):
        raise VerifyError(
            f"input {value.name!r}: expected a tensor of known rank, got {value.type}; "
            f"give it with {spelled('inputs={name: path}', '--input NAME=FILE.npy')}"
        )
    named = {axis: sizes[name] for axis, name in open_dims(value)}
    shape = tuple(
        dim if isinstance(dim, int) else named[axis]
        for axis, dim in enumerate(value.shape)
    )
    random = _random(seed, value.name or "")
    dtype = value.type.dtype
    if dtype is ir.DataType.STRING:
        return np.full(shape, "text", dtype=object)
    if dtype is ir.DataType.BOOL:
        made = np.asarray(random.random(shape) < 0.5)
    elif dtype.is_integer():
        made = np.asarray(_whole_numbers(value, shape, random))
    else:
        made = np.asarray(random.standard_normal(shape))
    return made.astype(dtype.numpy())  # an array: onnxruntime takes no NumPy scalars


def _random(seed: int, name: str) -> np.random.Generator:
    """An input's own source: it keeps its numbers when others come or go."""
    return np.random.default_rng([seed, zlib.crc32(name.encode())])


def _whole_numbers(
    value: ir.Value, shape: tuple[int, ...], random: np.random.Generator
) -> np.ndarray:
    special, limit = _meaning(value)
    if special is not None:
        return np.full(shape, special)
    if "mask" in (value.name or "").lower():
        return _padded(shape)
    return random.integers(0, limit, shape)


def _padded(shape: tuple[int, ...]) -> np.ndarray:
    """A mask of ones whose last row ends in padding, so that the mask matters."""
    mask = np.ones(shape, np.int64)
    if len(shape) > 1 and shape[-1] > 1:
        mask[(-1,) * len(shape)] = 0
    return mask


def _meaning(value: ir.Value) -> tuple[int | None, int]:
    """A number that the model compares with, and what ids must stay below."""
    special, limits = None, [100]
    seen: set[ir.Value] = set()
    todo = [value]
    found = False
    while todo:
        current = todo.pop()
        if current in seen:
            continue
        seen.add(current)
        for node, index in current.uses():
            if node.op_type == "Equal" and not value.shape:
                numbers = integers(node.inputs[1 - index])
                special = numbers[0] if numbers else special
            elif node.op_type == "Gather" and index == 1:
                limit = _rows(node)
                if limit is not None:
                    limits, found = [*(limits if found else ()), limit], True
            elif node.op_type in _HANDED_ON or node.op_type == "Gather":
                todo.extend(node.outputs)
    return special, max(1, min(limits))


def _rows(gather: ir.Node) -> int | None:
    table, axis = gather.inputs[0], gather.attributes.get("axis")
    tensor = constant(table)
    shape = tensor.shape if tensor is not None else table.shape if table else None
    if shape is None:
        return None
    rows = shape[axis.as_int() if axis else 0]
    return rows if isinstance(rows, int) else None


def described(array: np.ndarray) -> str:
    return f"{array.dtype}[{', '.join(map(str, array.shape))}]"
