"""Lower the Graph to a Program: each node by its operator's rule, sizes as ints."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import onnx_ir as ir

from burnish.codegen.errors import CALL, WHY_NOT, ConversionError, UnsupportedError
from burnish.codegen.names import authorship
from burnish.codegen.ops import NodeContext, find, has_rule, unknown
from burnish.codegen.ops.quantized.quantize import ON_INPUT, rounded, rounding
from burnish.codegen.ops.rule.choices import check_choices
from burnish.codegen.ops.rule.expressions import Inline, UnfitError, whole
from burnish.codegen.ops.unknown import Unknown
from burnish.codegen.program import (
    Assign,
    Attribute,
    Block,
    Constant,
    Expression,
    Host,
    Literal,
    Program,
    Scope,
    Shape,
    Source,
    Statement,
    Subscript,
    Value,
    Weight,
    pruned,
    walk,
)
from burnish.codegen.scopes import is_placed, scope_of
from burnish.codegen.symbolic import host
from burnish.codegen.symbolic.sizes import Size, parse, size_of, truth_of
from burnish.codegen.weights import constants
from burnish.codegen.weights.sharing import unified
from burnish.errors import BurnishError

_MADE_BY_EXPORTERS = re.compile(
    r"(?:val_|onnx::|_val_|const|scalar_tensor|\d)|.*(?:/Constant|_const_|__)"
)
_TINY = 64
_TABLES = frozenset(("bool", "int32", "int64", "float16", "float32", "float64"))
_LARGEST_TABLE = 1 << 24
"""Bytes: the metadata of a weights file has no place for more."""
_MOST_COMPUTED = 16
"""Computed numbers that get a statement each: no shape or padding has more."""
_ANY = frozenset(("", "?", "-1", "none", "unk", "unknown", "dynamic", "dyn", "any"))


def lift(model: ir.Model, allow_unknown: bool = False) -> Program:
    """Lower the graph to the runtime's functions and layers.

    allow_unknown: what has no rule becomes a call of a method that is to be written.
    Raises UnsupportedError with every operator and attribute that has no rule.
    """
    _Lifter(model, {}).check_coverage(allow_unknown)
    sources: dict[ir.Value, Source] = {}
    while True:
        program = _Lifter(model, sources).program()
        apart = unified(program.body)
        if not apart:
            return program
        for source in apart:
            source.apart = True


class _Lifter:
    def __init__(self, model: ir.Model, sources: dict[ir.Value, Source]):
        self.model = model
        self.sources = sources
        self.opsets = dict(model.opset_imports)
        self.opsets.setdefault("burnish", 1)
        self._by_pytorch = authorship.is_by_pytorch(model.producer_name)
        self._resorted = authorship.sorts_nodes(model.producer_name)
        placed = sum(map(is_placed, model.graph)) if self._resorted else 0
        self._nameless = self._by_pytorch or 2 * placed > len(model.graph)
        self.known: dict[ir.Value, Expression] = {}
        self.statements: list[Statement] = []
        self.sizes: dict[Any, Expression] = {}
        self.measures: dict[Expression, Size] = {}
        self.unknown = Unknown()

    # --- before anything is written ---

    def check_coverage(self, allow_unknown: bool) -> None:
        """Every operator and attribute without a rule, in one report."""
        missing: dict[str, list[str]] = {}
        for node in self.model.graph.all_nodes():
            version = self._version(node)
            rule = find(node.domain, node.op_type, version)
            where, kind = _where(node), self._kind(node)
            if rule is None or not has_rule(node, version):
                if allow_unknown and unknown.fits_a_call(node):
                    continue
                if allow_unknown:
                    kind = (
                        f"{kind}, which no method can stand for: it has graphs inside"
                    )
                if why := node.metadata_props.get(WHY_NOT):
                    kind = f"{kind}, {why}"
                missing.setdefault(kind, []).append(where)
                continue
            for name in node.attributes.keys() - rule.attributes.keys():
                missing.setdefault(f"{kind}, attribute {name}", []).append(where)
            check_choices(node, where)
        if missing:
            raise UnsupportedError(missing)

    def _kind(self, node: ir.Node) -> str:
        domain, version = node.domain or "ai.onnx", self._version(node)
        return f"{domain}.{node.op_type} (opset {version})"

    def _version(self, node: ir.Node) -> int:
        return node.version or self.opsets.get(node.domain, 1)

    # --- the walk ---

    def program(self) -> Program:
        graph = self.model.graph
        inputs = []
        optional: dict[Value, Any] = {}
        for source in graph.inputs:
            if source.is_initializer():
                continue
            value = _value(source)
            self.known[source] = value
            inputs.append(value)
        body = self.block(graph)
        body.results = [whole(result) for result in body.results]
        outputs = [(_dtype(v), _shape(v)) for v in graph.outputs]
        names = [v.name or "" for v in graph.outputs]
        nodes = self.unknown.nodes
        body = pruned(body)
        return Program(inputs, optional, body, names, outputs, nodes, self._resorted)

    def block(self, graph: ir.Graph, inputs: tuple[Expression, ...] = ()) -> Block:
        """A graph's statements and results, with its inputs bound to `inputs`."""
        for value, expression in zip(graph.inputs, inputs, strict=False):
            self.known[value] = expression
        outer, self.statements = self.statements, []
        for node in graph:
            self._node(node)
        results = [self.read(v) or Literal(None) for v in graph.outputs]
        made, self.statements = self.statements, outer
        return Block(made, results)

    def _node(self, node: ir.Node) -> None:
        inputs = [None if v is None else self.read(v) for v in node.inputs]
        version = self._version(node)
        rule = find(node.domain, node.op_type, version)
        arrays = frozenset() if rule is None else rule.arrays
        held = node.attributes.values()
        attributes = {a.name: _attribute(a, a.name in arrays) for a in held}
        if node.domain == "":
            outputs = list(node.outputs)
            parts = host.evaluate(node.op_type, inputs, attributes, len(outputs))
            if parts and not any(map(_fills_a_tensor, parts)):
                for output, numbers in zip(outputs, parts, strict=False):
                    self._bind_host(output, numbers, scope_of(node))
                return
        scope = scope_of(node)
        if rule is None or not has_rule(node, version):
            kind = self._kind(node)
            self.unknown.met(kind, _where(node))
            made = self.unknown.called(kind, node, inputs, attributes)
            self._bind(tuple(node.outputs), made, scope)
            return
        given = {rule.attributes[name]: value for name, value in attributes.items()}
        if rule.wants_node:
            given["node"] = self._context(node, version, scope)
        with _naming(node, rule.function):
            result = _expressions(rule.function(*inputs, **given))
            quantization = node.metadata_props.get(ON_INPUT)
            if quantization and not isinstance(result, tuple):
                layer = rounding(result, quantization)
                inputs[0] = rounded(inputs[0], quantization)
                result = layer or _expressions(rule.function(*inputs, **given))
        outputs = list(node.outputs)
        if isinstance(result, tuple):
            for output, part in zip(outputs, result, strict=False):
                if part is not None:
                    self._bind((output,), part, scope)
        else:
            self._bind(tuple(outputs), result, scope)

    def _context(self, node: ir.Node, version: int, scope: Scope) -> NodeContext:
        def emit(statement: Statement) -> None:
            statement.scope = scope
            self.statements.append(statement)

        return NodeContext(
            node.name or "",
            version,
            tuple(v.name or "" for v in node.outputs),
            tuple(map(_dtype, node.outputs)),
            tuple(map(_shape, node.outputs)),
            self.block,
            emit,
            node.metadata_props.get(ON_INPUT),
        )

    def _bind(
        self, outputs: tuple[ir.Value, ...], expression: Expression, scope: Scope
    ) -> None:
        if isinstance(expression, Inline):
            self.known[outputs[0]] = _described(expression.expression, outputs[0])
            return
        if len(outputs) == 1 and isinstance(
            expression, Value | Weight | Constant | Host | Literal
        ):
            self.known[outputs[0]] = expression
            return
        targets = tuple(map(self._made, outputs))
        expression = self._with_sizes(expression, scope)
        self.statements.append(Assign(targets, scope, expression))
        self.known.update(zip(outputs, targets, strict=True))

    def _bind_host(self, output: ir.Value, numbers: Host, scope: Scope) -> None:
        """Give computed numbers a statement each, so that they are computed once."""
        named = np.empty(numbers.array.shape, object)
        for i, item in np.ndenumerate(numbers.array):
            named[i] = item
            if not isinstance(item, Value | Literal):
                named[i] = self._number(item, output.name or "", numbers.dtype, scope)
        self.known[output] = Host(named, numbers.dtype)

    def _number(
        self, expression: Expression, hint: str, dtype: str | None, scope: Scope
    ) -> Expression:
        """The expression for a computed integer; one name for one size in a module."""
        truth = truth_of(expression, self._measured)
        if truth is not None:
            return Literal(truth)
        size = size_of(expression, self._measured)
        if size is not None and size.value is not None:
            return Literal(size.value)
        key = (id(self.statements), scope, size or expression)
        if key not in self.sizes:
            same = (v for v in walk(expression) if self.measures.get(v) == size)
            known = None if size is None else next(same, None)
            self.sizes[key] = known or self._counted(expression, hint, dtype, scope)
        if size is not None:
            self.measures[self.sizes[key]] = size
        return self.sizes[key]

    def _counted(
        self, expression: Expression, hint: str, dtype: str | None, scope: Scope
    ) -> Value:
        nonnegative = host.not_negative(expression)
        value = Value(hint, dtype, (), host=True, nonnegative=nonnegative)
        self.statements.append(Assign((value,), scope, expression))
        return value

    def _measured(self, expression: Expression) -> Size | None:
        """The size that a number is, by its name in the file or in the passes."""
        match expression:
            case Subscript(
                target=Attribute(target=of, name="shape"), keys=(Literal() as i,)
            ):
                dim = of.shape[i.value] if of.shape else None
                return None if dim is None else parse(dim)
        return self.measures.get(expression)

    def _with_sizes(self, expression: Expression, scope: Scope) -> Expression:
        """The expression with one variable for each size that rules read."""
        if self._measured(expression) is not None:
            return self._number(expression, "", "int64", scope)
        return expression.rebuilt(lambda child: self._with_sizes(child, scope))

    # --- values of the file ---

    def _made(self, source: ir.Value) -> Value:
        """A value that a node makes; PyTorch's exporters count, they do not name."""
        value = _value(source)
        if self._nameless and not source.is_graph_output():
            value.hint = ""
        return value

    def read(self, value: ir.Value) -> Expression | None:
        """The expression of a graph value: computed, a weight, or a known constant."""
        if value not in self.known:
            self.known[value] = self._initializer(value)
        return self.known[value]

    def _initializer(self, value: ir.Value) -> Expression:
        tensor = value.const_value
        assert tensor is not None, f"{value.name} has no producer"
        shape = tuple(tensor.shape.numpy())
        dtype = np.dtype(tensor.dtype.numpy()).name
        trained = constants.trains(value)
        named = self._by_pytorch and constants.is_parameter(value)
        made = not named and _MADE_BY_EXPORTERS.match(value.name or "") is not None
        if tensor.dtype == ir.DataType.STRING:
            return Constant(_array(tensor))
        number = shape == () and (made or not trained)
        listed = not tensor.dtype.is_floating_point() and tensor.size <= _TINY
        if number or listed or (not trained and tensor.size == 1):
            return Constant(np.asarray(tensor.numpy()))
        name = authorship.as_given(value.name or "")
        transposed = self._by_pytorch and constants.is_transposed(value)
        return Weight(
            authorship.SAYS_NOTHING if authorship.is_tensorflows(name) else name,
            dtype,
            shape,
            lambda: np.asarray(tensor.numpy()),
            trained=trained and not constants.is_buffer(value),
            source=self.sources.setdefault(
                value, Source(tensor.size, named, transposed=transposed)
            ),
            persistent=trained or not self._is_table(value, tensor, dtype),
        )

    def _is_table(self, value: ir.Value, tensor: ir.TensorProtocol, dtype: str) -> bool:
        """Whether PyTorch would not save it, and it is no large or packed weight."""
        plain = dtype in _TABLES and tensor.nbytes <= _LARGEST_TABLE
        return self._by_pytorch and plain and not constants.is_saved(value)


@contextmanager
def _naming(node: ir.Node, rule: Callable[..., Any]) -> Iterator[None]:
    """Errors of a rule name the node; those of a user's rule name the rule too.

    What a rule of ours does not refuse itself is the model's fault or ours: ONNX's
    checker tells, in `valid_or_refused`.
    """
    try:
        yield
    except (BurnishError, ConversionError):
        raise
    except Exception as error:
        got = ", ".join(
            f"{v.dtype}{v.shape or ''}" if v else "none" for v in node.inputs
        )
        call = f" of {node.meta[CALL]!r}" if node.meta.get(CALL) else ""
        where = f"node {_where(node)!r}{call} ({node.op_type}), given {got:.200}"
        if isinstance(error, UnfitError):
            raise UnsupportedError(f"{where}: {error}") from None
        if rule.__module__.partition(".")[0] != "burnish":
            raise ConversionError(
                f"{where}: expected the rule {rule.__module__}.{rule.__qualname__} to "
                f"return an expression, got {type(error).__name__}: {error}"
            ) from error
        error.add_note(where)
        raise


def _expressions(result: Any) -> Any:
    """Check a rule's result; raises TypeError where it is no Expression."""
    several = isinstance(result, tuple)
    parts = [p for p in result if p is not None] if several else [result]
    if not all(isinstance(part, Expression) for part in parts):
        raise TypeError(f"it returned {result!r:.80}")
    return result


def _where(node: ir.Node) -> str:
    return node.name or f"-> {node.outputs[0].name}"


def _fills_a_tensor(numbers: Host) -> bool:
    """Whether operators on the device compute the numbers, not a statement for each."""
    items = {id(x): x for x in numbers.array.flat}.values()
    return sum(not isinstance(x, Value | Literal) for x in items) > _MOST_COMPUTED


def _described(expression: Expression, value: ir.Value) -> Expression:
    """The expression with the type that the graph infers for it."""
    object.__setattr__(expression, "dtype", _dtype(value))
    object.__setattr__(expression, "shape", _shape(value))
    return expression


_PRINTED = 1 << 12
"""Elements above which a list is a table, which no source spells out."""


def _attribute(attribute: ir.Attr, as_array: bool) -> Any:
    """An attribute as Python writes it; float32 in its own shortest form.

    as_array: for a rule that takes its elements as an array.
    """
    value = attribute.value
    if as_array:
        floats = attribute.type == ir.AttributeType.FLOATS
        return np.asarray(value, np.float32 if floats else np.int64)
    match attribute.type:
        case ir.AttributeType.FLOAT:
            return float(str(np.float32(value)))
        case ir.AttributeType.FLOATS:
            if len(value) > _PRINTED:
                return np.asarray(value, np.float32).tolist()
            return [float(str(np.float32(v))) for v in value]
        case ir.AttributeType.INTS | ir.AttributeType.STRINGS:
            return value.tolist() if isinstance(value, np.ndarray) else list(value)
        case ir.AttributeType.TENSOR:
            return Constant(_array(value))
    return value


def _array(tensor: ir.TensorProtocol) -> np.ndarray:
    """A tensor of the file as an array; strings as Python's."""
    array = np.asarray(tensor.numpy())
    if tensor.dtype != ir.DataType.STRING:
        return array
    words = [w.decode() if isinstance(w, bytes) else str(w) for w in array.ravel()]
    return np.asarray(words, object).reshape(array.shape)


def _value(source: ir.Value) -> Value:
    return Value(source.name or "", _dtype(source), _shape(source))


def _dtype(value: ir.Value) -> str | None:
    if value.dtype is None or not isinstance(value.type, ir.TensorType):
        return None
    if value.dtype == ir.DataType.STRING:
        return "object"
    return np.dtype(value.dtype.numpy()).name


def _shape(value: ir.Value) -> Shape | None:
    if value.shape is None or not isinstance(value.type, ir.TensorType | None):
        return None
    return tuple(d if isinstance(d, int) else _size(d.value) for d in value.shape)


def _size(name: str | None) -> str | None:
    """A symbolic size; what exporters write for "some size" names nothing."""
    return None if name is None or name.lower() in _ANY else name
