"""Solve for the sizes of open dimensions at which a file's layers fit together.

Shapes are propagated in symbols. A weight, a table or a reshape fixes what a symbolic
size must be; convolutions and pools need an input that is large enough.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from burnish.codegen.account import Account
from burnish.codegen.ops import shapes_of
from burnish.codegen.ops.shapes.dims import Context, Dims, Sizes, declared
from burnish.codegen.passes import graph as g
from burnish.codegen.passes.shapes.propagate import propagate_sizes
from burnish.codegen.symbolic.known import Checked
from burnish.codegen.symbolic.sizes import Size, evaluated, names_in, parse, product

#: The largest size that is looked at.
_MOST = 4096

Equation = tuple[Size, int]


@dataclass(frozen=True)
class Fit:
    """Sizes that the layers want, by the names that the inputs give to dimensions.

    solved: the size that fits, the least of several. least: every result has elements
    from this size on. shapes: those of all results, in `symbols` of the dimensions.
    """

    solved: Mapping[str, int]
    least: Mapping[str, int]
    shapes: list[Dims]
    symbols: Mapping[str, str]

    def largest(self, sizes: Mapping[str, int]) -> int:
        """Elements of the largest result, as far as its shape is known."""
        given = {self.symbols[name]: size for name, size in sizes.items()}
        return max(
            (
                math.prod(max(evaluated(d, given) or 1, 1) for d in dims if d)
                for dims in self.shapes
            ),
            default=1,
        )

    def __str__(self) -> str:
        solved = [f"{name} = {size}" for name, size in self.solved.items()]
        return ", ".join(solved + [f"{n} >= {size}" for n, size in self.least.items()])


def open_dims(value: ir.Value) -> Iterator[tuple[int, str]]:
    """The axes of an input that a caller sizes, and their names."""
    for axis, dim in enumerate(value.shape or ()):
        if not isinstance(dim, int):
            name = str(dim.value) if dim.value is not None else f"{value.name}.{axis}"
            yield axis, name


def fit(model: ir.Model, known: Mapping[str, int]) -> Fit:
    """Solve for the dimensions that are not known; the model stays as it is."""
    copy, symbols = _in_symbols(model)
    shapes = [declared(v) for node in copy.graph for v in node.outputs]
    made = [dims for dims in shapes if dims is not None]
    fixed = {symbols[name]: size for name, size in known.items()}
    alternatives = [found for node in copy.graph if (found := _equations(node))]
    # equations of one unknown first; then images whose sides are equal
    for most, equations in itertools.product((1, 2), alternatives):
        for size, number in equations:
            free = names_in(size) - fixed.keys()
            if not 0 < len(free) <= most or not free <= set(symbols.values()):
                continue
            fits = _tried(size, free, fixed) == number
            if fits.any():
                fixed |= dict.fromkeys(free, int(fits.argmax()) + 1)
                break
    least = _least(made, set(symbols.values()), fixed)
    return Fit(
        {n: fixed[s] for n, s in symbols.items() if s in fixed and n not in known},
        {n: least[s] for n, s in symbols.items() if s in least},
        made,
        symbols,
    )


def _in_symbols(model: ir.Model) -> tuple[ir.Model, dict[str, str]]:
    """A copy with every shape in symbols that are no names of the file; and these."""
    copy, symbols = model.clone(), dict[str, str]()
    for value in copy.graph.inputs:
        dims: list[int | str | ir.SymbolicDim] = list(value.shape or ())
        for axis, name in open_dims(value):
            dims[axis] = symbols.setdefault(name, f"?open{len(symbols)}")
        value.shape = None if value.shape is None else ir.Shape(dims)
    propagate_sizes(copy, Account(), is_rounded=True)
    return copy, symbols


def _least(
    shapes: list[Dims], symbols: set[str], fixed: Mapping[str, int]
) -> dict[str, int]:
    """The symbols that must be above 1, and from where on every result has elements."""
    least: dict[str, int] = {}
    for size in {dim for dims in shapes for dim in dims if dim is not None}:
        free = names_in(size) - fixed.keys()
        if len(free) == 1 and free <= symbols:
            (name,) = free
            fits = _tried(size, free, fixed) >= 1
            if fits.any() and not fits[0]:
                least[name] = max(least.get(name, 1), int(fits.argmax()) + 1)
    return least


def _tried(size: Size, free: set[str], fixed: Mapping[str, int]) -> np.ndarray:
    """The size where all of `free` are 1, 2, ... `_MOST`."""
    values = dict.fromkeys(free, np.arange(1, _MOST + 1))
    found = evaluated(size, {**fixed, **values})
    return np.zeros(_MOST, np.int64) if found is None else found


def _equations(node: ir.Node) -> list[Equation]:
    """What sizes of a node's inputs must be; the first that has a solution counts."""
    rule = shapes_of(node.domain, node.op_type)
    dims, sizes = [declared(value) for value in node.inputs], Checked()
    if node.op_type == "Reshape" and dims[0] is not None:
        return _of_reshape(dims[0], g.integers(node.inputs[1]))
    try:
        if rule is not None:
            rule(node, dims, Context(_constants, sizes))
    except (LookupError, ValueError, ArithmeticError):
        return []  # shapes that contradict the operator say nothing
    pairs = (each for pair in sizes.pairs for each in (pair, pair[::-1]))
    return [
        (one, other.value)
        for one, other in pairs
        if one is not None and one.value is None and other and other.value is not None
    ]


def _constants(value: ir.Value | None) -> Sizes | None:
    found = g.integers(value)
    return None if found is None else [parse(number) for number in found]


def _of_reshape(dims: Dims, target: list[int] | None) -> list[Equation]:
    """The last axes of a tensor hold what the last numbers of its new shape say."""
    if target is None or None in dims:
        return []
    open_ones = [axis for axis, n in enumerate(target) if n <= 0]
    first = open_ones[-1] + 1 if open_ones else 0
    number = math.prod(target[first:])
    starts = range(bool(open_ones), len(dims)) if number > 1 else ()
    return [(product([d for d in dims[k:] if d]), number) for k in starts]
