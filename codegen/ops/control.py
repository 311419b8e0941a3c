"""If, Loop and Scan as Python's `if`, `while` and `for`."""

from __future__ import annotations

import onnx_ir as ir

from burnish.codegen.ops.rule.expressions import (
    call,
    known,
    number,
    operand,
    tensor,
    whole,
)
from burnish.codegen.ops.rule.registry import NodeContext, Result, onnx_op
from burnish.codegen.ops.rule.traits import OWN_SHAPE, RESIZE
from burnish.codegen.ops.rule.words import is_device, made
from burnish.codegen.program import (
    Assign,
    BinOp,
    Block,
    Call,
    Expression,
    If,
    Literal,
    Loop,
    Method,
    Slice,
    Subscript,
    Value,
)

_ENDLESS = 2**31 - 1
"""The trip count from which on a loop runs until its condition is false."""


@onnx_op("If", traits=OWN_SHAPE)
def if_(
    cond: Expression, *, else_branch: ir.Graph, then_branch: ir.Graph, node: NodeContext
) -> Result:
    then = _tensors(node.lift_block(then_branch, ()))
    otherwise = _tensors(node.lift_block(else_branch, ()))
    targets = _targets(node, 0, len(node.outputs))
    condition = cond if is_device(cond) else number(cond)
    node.emit(If(targets, (), operand(condition), then, otherwise))
    return targets


def _tensors(block: Block) -> Block:
    block.results = [whole(result) for result in block.results]
    return block


def _targets(node: NodeContext, start: int, end: int) -> tuple[Value, ...]:
    return tuple(
        Value(name, dtype, shape)
        for name, dtype, shape in zip(
            node.outputs[start:end],
            node.dtypes[start:end],
            node.shapes[start:end],
            strict=True,
        )
    )


def _inside(value: ir.Value, like: Expression | None = None) -> Value:
    """The name that a body has for one of its inputs."""
    dtype = None if like is None else like.dtype
    if value.dtype is not None and value.dtype != ir.DataType.STRING:
        dtype = value.dtype.numpy().name
    shape = None
    if value.shape is not None:
        shape = tuple(d if isinstance(d, int) else d.value for d in value.shape)
    return Value(value.name or "", dtype, shape)


@onnx_op("Loop", traits=OWN_SHAPE | RESIZE)
def loop(
    M: Expression | None = None,
    cond: Expression | None = None,
    *v_initial: Expression,
    body: ir.Graph,
    node: NodeContext,
) -> Result:
    """A `for` where the condition never changes, else a `while`."""
    count = _count(M)
    counter, asked, *entering = body.inputs
    keeps = _never_stops(body, cond)
    carried = [
        _inside(value, initial)
        for value, initial in zip(entering, v_initial, strict=True)
    ]
    initial = [whole(value) for value in v_initial]
    index = Value(counter.name or "i", "int64", (), host=True)
    going = Value(asked.name or "going", "bool", ())
    inputs = (index, Literal(True) if keeps else going, *carried)
    block = node.lift_block(body, inputs)
    done, *results = (whole(result) for result in block.results)
    places = slice(0, len(carried))
    block.results = [*([] if keeps else [done]), *results]
    condition = None if keeps else _condition(cond, asked)
    counted: tuple[Value, ...] = ()
    if count is None and counter.uses():
        counted = (index,)
        after = BinOp("+", index, Literal(1))
        block.results.insert(len(block.results) - len(results) + len(carried), after)
    states = _targets(node, 0, len(carried))
    lists = tuple(Value(name) for name in node.outputs[len(carried) :])
    node.emit(
        Loop(
            (*states, *(Value("count", host=True) for _ in counted), *lists),
            (),
            count=count,
            condition=condition,
            going=None if keeps else going,
            index=index if count is not None and counter.uses() else None,
            carried=(*carried, *counted),
            initial=(*initial[places], *(Literal(0) for _ in counted)),
            collected=len(lists),
            body=block,
        )
    )
    runs = count is None or (isinstance(count, Literal) and count.value > 0)
    once = _is_true(cond) and runs
    elements = [None if once else _inside(v) for v in body.outputs[1 + len(carried) :]]
    return (
        *states,
        *(_stacked(each, 0, like) for each, like in zip(lists, elements, strict=True)),
    )


def _count(M: Expression | None) -> Expression | None:
    """How often at most; None for any number of times."""
    if M is None:
        return None
    count = number(M)
    if isinstance(count, int) and count >= _ENDLESS:
        return None
    return operand(count)


def _never_stops(body: ir.Graph, cond: Expression | None) -> bool:
    """Whether the condition is true from the start and stays so."""
    if not _is_true(cond):
        return False
    result = body.outputs[0]
    while True:
        if result is body.inputs[1]:
            return True
        if result.const_value is not None:
            return bool(result.const_value.numpy().reshape(()).item())
        maker = result.producer()
        if maker is None or maker.op_type != "Identity":
            return False
        result = maker.inputs[0]  # type: ignore[assignment]


def _is_true(cond: Expression | None) -> bool:
    """Whether a loop's condition is known to be true at the start."""
    if cond is None:
        return True
    start = known(cond)
    return start is not None and bool(start.reshape(()).item())


def _condition(cond: Expression | None, asked: ir.Value) -> Expression:
    """The condition at the start: a tensor where the body computes with it."""
    if cond is not None:
        return tensor(cond, "bool")
    plain = Literal(True)
    used = asked.uses() or asked.is_graph_output()
    return tensor(plain, "bool") if used else plain


def _stacked(
    items: Value, axis: int, element: Value | None, backwards: int = 0
) -> Expression:
    """`ops.stack(items)`; with an `element`, of no items an array of its kind.

    Sizes that the file leaves open are 0 then, and an array of unknown rank has one
    axis, as onnxruntime has it.
    """
    turned = Subscript(items, (Slice(None, None, Literal(-1)),))
    listed = turned if backwards else items
    empty = None
    if element is not None and element.dtype:
        sizes = [d if isinstance(d, int) else 0 for d in element.shape or ()]
        sizes.insert(axis % (len(sizes) + 1), 0)
        dtype = None if element.dtype == "float32" else element.dtype
        empty = made("zeros", *sizes, dtype=dtype)
    return call("stack", listed, axis=axis, empty=empty)


@onnx_op("Scan", since=9, traits=OWN_SHAPE | RESIZE)
def scan(
    *initial_state_and_scan_inputs: Expression,
    body: ir.Graph,
    num_scan_inputs: int,
    scan_input_axes: list[int] | None = None,
    scan_input_directions: list[int] | None = None,
    scan_output_axes: list[int] | None = None,
    scan_output_directions: list[int] | None = None,
    node: NodeContext,
) -> Result:
    """A `for` over the elements of the inputs, side by side."""
    given = initial_state_and_scan_inputs
    states = len(given) - num_scan_inputs
    axes = scan_input_axes or [0] * num_scan_inputs
    directions = scan_input_directions or [0] * num_scan_inputs
    scanned = [
        _elements(value, axis, direction)
        for value, axis, direction in zip(given[states:], axes, directions, strict=True)
    ]
    carried = [_inside(v, x) for v, x in zip(body.inputs, given[:states], strict=False)]
    parts = tuple(_inside(value) for value in body.inputs[states:])
    block = node.lift_block(body, (*carried, *parts))
    block.results = [whole(result) for result in block.results]
    index, items = parts[0], scanned[0]
    if len(parts) > 1:
        index, items = Value("parts"), Call("zip", tuple(scanned))
        block.statements.insert(0, Assign(parts, (), index))
    targets = _targets(node, 0, states)
    lists = tuple(Value(name) for name in node.outputs[states:])
    node.emit(
        Loop(
            (*targets, *lists),
            (),
            items=items,
            index=index,
            carried=tuple(carried),
            initial=tuple(map(whole, given[:states])),
            collected=len(lists),
            body=block,
        )
    )
    backwards = scan_output_directions or [0] * len(lists)
    along = scan_output_axes or [0] * len(lists)
    first = given[states]
    length = first.shape[axes[0]] if first.shape else None
    once = isinstance(length, int) and length > 0
    elements = [None if once else _inside(v) for v in body.outputs[states:]]
    return (
        *targets,
        *(
            _stacked(each, axis, like, back)
            for each, axis, like, back in zip(
                lists, along, elements, backwards, strict=True
            )
        ),
    )


def _elements(x: Expression, axis: int, direction: int) -> Expression:
    """x with `axis` first, backwards where the direction is 1."""
    value = tensor(x)
    if axis < 0:
        axis += x.rank or 0
    if axis:
        rest = [i for i in range(x.rank or 0) if i != axis]
        order = tuple(map(Literal, (axis, *rest)))
        value = Method(value, "transpose", order)
    if direction:
        value = Method(value, "flip", (Literal(0),))
    return value
