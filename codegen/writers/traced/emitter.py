"""Emitter: builds an ONNX graph, node by node, with names, scopes and sizes."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import onnx_ir as ir

from burnish.capture.line import refs
from burnish.capture.ref import Ref
from burnish.codegen.errors import ExportError
from burnish.codegen.scopes import CLASSES, SCOPES
from burnish.codegen.weights.constants import KIND, PERSISTENT
from burnish.codegen.writers.traced.sizes import Size, Varying, captures_of
from burnish.codegen.writers.traced.tape import Block, Done, Path
from burnish.nn.core.param import Stored

OPSETS = {"": 20, "ai.onnx.ml": 4}
_LATER = {"BitCast": 26}  # operators that a later opset brings
_WITH = {"block_size": 21, "output_dtype": 21, "round_mode": 24}  # and attributes
_LARGE = 64  # elements from which on a constant is kept beside the nodes


class Emitter:
    """Nodes in order. The call that is being written gives them their scope."""

    def __init__(self, inputs: Sequence[ir.Value], root: str, apart: bool = False):
        self.apart = apart  # whether each call of a module has constants of its own
        self.paths: dict[ir.Node, Path] = {}
        self.inputs = list(inputs)
        self.root = root
        self.nodes: list[ir.Node] = []
        self.initializers: list[ir.Value] = []
        self.values: dict[int, ir.Value] = {}
        self.constants: dict[int, Any] = {}
        self.arguments: list[Ref] = []
        self.shared: dict[int, Path] = {}  # the calls that all readers of it are in
        self.call: Done | None = None
        self.write: Callable[[Done], None]  # how a call is written
        self._counts: Counter[str] = Counter()
        self._labels = itertools.count()
        self._constants: dict[Any, ir.Value] = {}
        self._axes: dict[tuple[int, int, int], ir.Value] = {}

    # --- what writers are made of ---

    def __call__(
        self, op: str, *inputs: Any, outputs: int = 1, domain: str = "", **attrs: Any
    ) -> Any:
        """A node; inputs are values, Refs, arrays, numbers or None."""
        given = [None if each is None else self.value(each) for each in inputs]
        while given and given[-1] is None:
            given.pop()
        made = [
            ir.convenience.convert_attribute(key, each)
            for key, each in attrs.items()
            if each is not None
        ]
        name = self._name(op)
        values = [ir.Value(name=f"{name}_output_{i}") for i in range(outputs)]
        node = ir.Node(domain, op, given, made, outputs=values, name=name)
        self._scope(node)
        self._append(node)
        return values[0] if outputs == 1 else tuple(values)

    def value(self, item: Any) -> ir.Value:
        """The graph value of an argument."""
        if isinstance(item, ir.Value):
            return item
        if isinstance(item, Ref):
            if item.place not in self.values:
                self.values[item.place] = self._outside(item.place)
            return self.values[item.place]
        if isinstance(item, Size):
            return self("Squeeze", self.size(item), self.ints([0]))
        if isinstance(item, Varying):
            return self.varying(item)
        return self.constant(np.asarray(item))

    def _outside(self, place: int) -> ir.Value:
        """A constant of Python's, in the inmost module that all its readers are in."""
        call, shared = self.call, self.shared.get(place)
        if call is not None and shared is not None and not self.apart:
            inside: dict[str, Any] = {}
            if shared != call.path:  # sizes are taken of the arguments then
                inside = {"args": (), "options": {}}
            self.call = call._replace(path=shared, **inside)
        made = self.value(self.constants[place])
        self.call = call
        return made

    def held(self, item: Any) -> np.ndarray:
        """The numbers of a table that ONNX has as an attribute."""
        if not isinstance(item, Ref):
            return np.asarray(item)
        if item.place in self.constants:
            return np.asarray(self.constants[item.place])
        kept = self.value(item).const_value
        if kept is None:
            raise self.cannot("a table that is computed")
        return kept.numpy()

    def constant(self, array: np.ndarray, name: str | None = None) -> ir.Value:
        """A constant; equal ones are one value."""
        key: Any = (
            self._within(),
            array.dtype.str,
            array.dtype.name,
            array.shape,
            array.tobytes(),
        )
        if array.dtype.kind in "OU":
            key = (*key[:4], str(array.tolist()))
        if key not in self._constants:
            self._constants[key] = self._constant(array, name)
        return self._constants[key]

    def _constant(self, array: np.ndarray, name: str | None) -> ir.Value:
        count = next(self._labels)
        label = name or f"val_{count}"
        held = tensor(array, label)
        if array.size >= _LARGE or name is not None:
            return self.initializer(label, held)
        return self.fixed(label, held)

    def fixed(self, label: str, held: Any) -> ir.Value:
        """A constant that is a node: no weight."""
        value = ir.Value(name=label)
        node = ir.Node(
            "", "Constant", [], [ir.AttrTensor("value", held)], outputs=[value],
            name=f"{label}/Constant",
        )  # fmt: skip
        self._append(node)
        return value

    def stored(self, name: str, item: Stored) -> ir.Value:
        """A parameter or buffer, by the name that the module has for it."""
        value = self.initializer(name, tensor(np.asarray(item.data), name))
        value.metadata_props[KIND] = "PARAMETER" if item.learns else "BUFFER"
        if not item.learns:
            value.metadata_props[PERSISTENT] = str(item.persistent)
        return value

    def initializer(self, name: str, held: Any) -> ir.Value:
        value = ir.Value(
            name=name,
            shape=ir.Shape(held.shape),
            type=ir.TensorType(held.dtype),
            const_value=held,
        )
        self.initializers.append(value)
        return value

    def ints(self, numbers: Iterable[int]) -> ir.Value:
        """A vector of whole numbers; those that depend on dynamic axes are computed."""
        numbers = list(numbers)
        if not any(isinstance(n, Size) for n in numbers):
            return self.constant(np.asarray(numbers, np.int64).reshape(-1))
        parts: list[ir.Value] = []
        for dynamic, run in itertools.groupby(numbers, lambda n: isinstance(n, Size)):
            if dynamic:
                parts.extend(self.size(n) for n in run)  # type: ignore[arg-type]
            else:
                parts.append(self.ints(run))
        return parts[0] if len(parts) == 1 else self("Concat", *parts, axis=0)

    def counted(self, count: Any) -> ir.Value:
        """0, 1, 2, ... up to a number, which may depend on dynamic axes."""
        return self("Range", np.int64(0), self.value(count), np.int64(1))

    def cast(self, item: Any, dtype: Any, was: Any = None) -> ir.Value:
        """With another dtype."""
        was = getattr(item, "dtype", was)
        if not isinstance(item, ir.Value) and not isinstance(
            item, Ref | Size | Varying
        ):
            return self.value(np.asarray(item, dtype))
        if not isinstance(item, ir.Value) and was is not None and was == dtype:
            return self.value(item)
        return self("Cast", item, to=int(data_type(dtype)))

    def reshape(self, x: Any, shape: Sequence[int], was: Sequence[int] = ()) -> Any:
        """x with another shape; was: the shape that it has."""
        empty = 1 if any(type(n) is int and n == 0 for n in shape) else None
        sizes = shape if empty else _copied(shape, was)
        return self("Reshape", x, self.ints(sizes), allowzero=empty)

    @property
    def current(self) -> Done:
        """The call that is being written."""
        assert self.call is not None
        return self.call

    @property
    def rank(self) -> int:
        """How many axes the first argument of the call has."""
        return len(self.current.args[0].shape)

    # --- conditions ---

    def body(
        self, label: str, takes: Sequence[ir.Value], make: Callable[[], Iterable[Any]]
    ) -> ir.Graph:
        """The nodes and results of `make` as a graph that sees the outer one."""
        around = self.nodes, self.values, self._constants, self._axes, self.call
        shared, self.shared = self.shared, {}  # a body is inside of one module
        self.nodes, self.values = [], dict(self.values)
        self._constants, self._axes = dict(self._constants), dict(self._axes)
        results: list[ir.Value] = []
        for each in make():
            value = self.value(each)
            if value.producer() not in self.nodes or any(value is r for r in results):
                value = self("Identity", value)
            results.append(value)
        made = ir.Graph(list(takes), results, nodes=self.nodes, name=label)
        self.nodes, self.values, self._constants, self._axes, self.call = around
        self.shared = shared
        return made

    def block(self, block: Block) -> Iterable[Any]:
        """Emit the calls of a block; returns its results."""
        call = self.call
        for each in block.calls:
            self.write(each)
        self.call = call
        return list(block.results)

    def taken(self, ref: Ref, what: str = "taken") -> ir.Value:
        """A body's input that replaces `ref`."""
        shape = ir.Shape([n if type(n) is int else None for n in ref.shape])
        value = ir.Value(name=f"{what}_{next(self._labels)}", shape=shape)
        value.type = ir.TensorType(data_type(ref.dtype))
        return value

    # --- sizes ---

    def size(self, size: Size) -> ir.Value:
        """A dynamic size as a vector of one, out of the axes of values."""
        near = self._near()
        for ref in near:
            for axis, n in enumerate(ref.shape):
                if n == size:
                    return self.axis(ref, axis)
        axes = {n: (ref, i) for ref in reversed(near) for i, n in enumerate(ref.shape)
                if isinstance(n, Size)}  # fmt: skip
        made = self._linear(size, axes) or self._product(size, axes)
        if made is None:
            raise self.cannot(f"a size, {size!r} in captures, depends on dynamic axes")
        return made

    def axis(self, ref: Ref, axis: int) -> ir.Value:
        """The length of an axis, as a vector of one."""
        key = (self._within(), ref.place, axis)
        if key not in self._axes:
            self._axes[key] = self("Shape", ref, start=axis, end=axis + 1)
        return self._axes[key]

    def _near(self) -> list[Ref]:
        """Tensors whose axes are known here: the call's own, then the arguments."""
        own = refs((self.current.args, self.current.options))
        return [ref for ref in own if ref.place in self.values] + self.arguments

    def _linear(self, size: Size, axes: dict[Size, Any]) -> ir.Value | None:
        """size = (factor * axis + offset) // divisor"""
        for axis, place in axes.items():
            (a, b), (m, n) = axis.captures[:2], size.captures[:2]
            if a == b:
                continue
            factor, offset = (n - m) / (b - a), 0.0
            offset = m - factor * a
            for divisor in (1, 2, 3, 4, 8, 16, 32):
                by, plus = factor * divisor, offset * divisor
                if not (float(by).is_integer() and float(plus).is_integer()):
                    continue
                found = (axis * int(by) + int(plus)) // divisor
                if found == size:
                    return self._computed(place, int(by), int(plus), divisor)
        return None

    def _computed(self, place: Any, by: int, plus: int, divisor: int) -> ir.Value:
        made = self.axis(*place)
        if by != 1:
            made = self("Mul", made, self.ints([by]))
        if plus:
            made = self("Add", made, self.ints([plus]))
        return made if divisor == 1 else self("Div", made, self.ints([divisor]))

    def _product(self, size: Size, axes: dict[Size, Any]) -> ir.Value | None:
        """size = a product of axes and a number"""
        for count in (2, 3, 4):
            for chosen in itertools.combinations(axes, count):
                whole = math.prod(chosen[1:], start=chosen[0])
                ratios = {
                    n / m
                    for n, m in zip(
                        size.captures,
                        captures_of(whole, len(size.captures)),
                        strict=True,
                    )
                }
                ratio = ratios.pop()
                if ratios or not (ratio >= 1 and ratio.is_integer()):
                    continue
                made = self.axis(*axes[chosen[0]])
                for each in chosen[1:]:
                    made = self("Mul", made, self.axis(*axes[each]))
                if ratio != 1:
                    made = self("Mul", made, self.ints([int(ratio)]))
                return made
        return None

    # --- constants that differ between captures ---

    def varying(self, item: Varying) -> ir.Value:
        """A constant that Python made out of dynamic sizes, if its rule is plain."""
        from burnish.codegen.writers.traced.varying import written

        made = written(self, item)
        if made is None:
            raise self.cannot("a constant was made out of sizes that are dynamic")
        return made

    @property
    def results(self) -> list[Ref]:
        """The results of the call that is being written."""
        return refs(self.current.results)

    @property
    def result(self) -> Ref:
        return self.results[0]

    # --- names, scopes, errors ---

    def cannot(self, why: str) -> ExportError:
        """The error for the call that is being written."""
        call = self.current
        where = f"{call.path[-1][0]}, " if call.path and call.path[-1][0] else ""
        return ExportError(
            f"export: {where}{call.name}: {why}, which ONNX has no node for"
        )

    def _append(self, node: ir.Node) -> None:
        self.paths[node] = self._path()
        self.nodes.append(node)

    def _within(self) -> int:
        """The scope in which nodes share constants: the graph, or one module's call."""
        return self._path()[-1].number if self.apart and self._path() else 0

    def _path(self) -> Path:
        return self.call.path if self.call is not None else ()

    def _name(self, op: str) -> str:
        path = self._path()
        inside = path[-1][0] if path else ""
        base = f"/{inside}/{op}" if inside else f"/{op}"
        self._counts[base] += 1
        count = self._counts[base]
        return base if count == 1 else f"{base}_{count - 1}"

    def _scope(self, node: ir.Node) -> None:
        levels = [(at.path, type(at.module)) for at in self._path() if at.path]
        names = ["", *(path for path, _ in levels), node.name]
        kinds = [
            self.root,
            *(f"{kind.__module__}.{kind.__qualname__}" for _, kind in levels),
            node.op_type,
        ]
        node.metadata_props[SCOPES] = repr(names)
        node.metadata_props[CLASSES] = repr(kinds)


def _copied(shape: Sequence[int], was: Sequence[int]) -> list[int]:
    """A shape with 0 for a dynamic size that stays, -1 for the only other one."""
    made = list(shape)
    if not any(isinstance(n, Size) for n in made) or 0 in made:
        return made
    for i, n in enumerate(made):
        if isinstance(n, Size) and i < len(was) and was[i] == n:
            made[i] = 0
    left = [i for i, n in enumerate(made) if isinstance(n, Size)]
    if len(left) == 1 and -1 not in made:
        made[left[0]] = -1
    return made


def data_type(dtype: Any) -> ir.DataType:
    """ONNX's word for a dtype."""
    dtype = np.dtype(dtype)
    if dtype.kind in "OU":
        return ir.DataType.STRING
    return ir.DataType.from_numpy(dtype)


def opsets(nodes: Iterable[ir.Node]) -> dict[str, int]:
    """The opset of ONNX, and of the other domains of its own that nodes are of."""
    nodes = list(nodes)
    used = {"", *(node.domain for node in nodes)}
    found = {domain: opset for domain, opset in OPSETS.items() if domain in used}
    for node in nodes:
        later = [opset for name, opset in _WITH.items() if name in node.attributes]
        found[""] = max(found[""], *later, _LATER.get(node.op_type, 0))
    return found


def tensor(array: np.ndarray, name: str) -> Any:
    """An array as ONNX holds it."""
    if array.dtype.kind in "OU":
        encoded = np.asarray([str(v).encode() for v in array.ravel()], object)
        return ir.StringTensor(encoded.reshape(array.shape), name=name)
    if array.dtype == ml_dtypes.bfloat16:
        return ir.Tensor(array, dtype=ir.DataType.BFLOAT16, name=name)
    return ir.Tensor(np.ascontiguousarray(array).reshape(array.shape), name=name)
