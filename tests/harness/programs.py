"""Random programs over whole numbers, what they mean, and running their source.

`meaning` interprets a block statement by statement, without any names; `run` renders it
as one class, executes the text and calls it.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from burnish.codegen.program import (
    Assign,
    BinOp,
    Block,
    Call,
    ClassPlan,
    Conditional,
    Expression,
    If,
    ListOrTuple,
    Literal,
    Loop,
    Method,
    Statement,
    UnaryOp,
    Value,
)

_HINTS = (
    "",
    "",
    "",
    "x",
    "y",
    "hidden",
    "mask",
    "val_3",
    "print",
    "lambda",
    "i",
    "self",
)


def mixed(a: int, b: int) -> int:
    return (3 * a + 7 * b + 1) % 1009


def pair(a: int) -> tuple[int, int]:
    return (5 * a + 2) % 997, a % 11


FUNCTIONS = {"ops.mixed": mixed, "ops.pair": pair}


# --- meaning ---


def meaning(block: Block, env: dict[Value, Any]) -> list[Any]:
    """The block's results, its statements taken literally one after the other."""
    env = dict(env)
    for statement in block.statements:
        _do(statement, env)
    return [value(result, env) for result in block.results]


def _do(statement: Statement, env: dict[Value, Any]) -> None:
    match statement:
        case Assign(targets=(target,), expression=expression):
            env[target] = value(expression, env)
        case Assign(targets=targets, expression=expression):
            env.update(zip(targets, value(expression, env), strict=True))
        case If():
            chosen = statement.blocks()[0 if value(statement.condition, env) else 1]
            env.update(zip(statement.targets, meaning(chosen, env), strict=True))
        case Loop():
            env.update(zip(statement.targets, _loop(statement, env), strict=True))


def _loop(loop: Loop, env: dict[Value, Any]) -> list[Any]:
    state = [value(e, env) for e in loop.initial]
    lists: list[list[Any]] = [[] for _ in range(loop.collected)]
    rounds: Any = iter(int, 1)
    if loop.items is not None:
        rounds = value(loop.items, env)
    elif loop.count is not None:
        rounds = range(value(loop.count, env))
    going = loop.condition is None or value(loop.condition, env)
    for item in rounds:
        if not going:
            break
        inner = {**env, **dict(zip(loop.carried, state, strict=True))}
        if loop.going is not None:
            inner[loop.going] = going
        if loop.index is not None:
            inner[loop.index] = item
        results = meaning(loop.body, inner)
        if loop.going is not None:
            going, *results = results
        state = results[: len(state)]
        for each, element in zip(lists, results[len(state) :], strict=True):
            each.append(element)
    return [*state, *lists]


def value(e: Expression, env: dict[Value, Any]) -> Any:
    match e:
        case Value():
            return env[e]
        case Literal(value=plain):
            return plain
        case BinOp(operator="+", left=left, right=right):
            return value(left, env) + value(right, env)
        case BinOp(operator="-", left=left, right=right):
            return value(left, env) - value(right, env)
        case BinOp(operator="<", left=left, right=right):
            return value(left, env) < value(right, env)
        case UnaryOp(operand=operand):
            return -value(operand, env)
        case Conditional(then=then, condition=condition, otherwise=otherwise):
            return value(then if value(condition, env) else otherwise, env)
        case Call(function=function, args=args):
            return FUNCTIONS[function](*(value(a, env) for a in args))
        case Method(target=target):
            return value(target, env).conjugate()
        case ListOrTuple(items=items):
            return [value(item, env) for item in items]
    raise TypeError(e)


# --- random programs ---


@st.composite
def programs(draw: Any) -> tuple[list[Value], Block]:
    """Inputs and a block over them."""
    inputs = [_value(draw) for _ in range(draw(st.integers(1, 3)))]
    return inputs, _block(draw, inputs, draw(st.integers(1, 3)), 2)


def _value(draw: Any, host: bool | None = None) -> Value:
    hint = draw(st.sampled_from(_HINTS))
    if host is None:
        host = draw(st.integers(0, 4)) == 0
    return Value(hint, draw(st.sampled_from(["float32", "bool"])), None, host)


def _block(draw: Any, seen: list[Value], results: int, deep: int) -> Block:
    seen = list(seen)
    statements = []
    for _ in range(draw(st.integers(0, 6 if deep == 2 else 3))):
        statement = _statement(draw, seen, deep)
        statements.append(statement)
        lists = statement.collected if isinstance(statement, Loop) else 0
        seen += statement.targets[: len(statement.targets) - lists]
    return Block(statements, [_leaf(draw, seen) for _ in range(results)])


def _statement(draw: Any, seen: list[Value], deep: int) -> Statement:
    kind = draw(st.integers(0, 9 if deep else 6))
    if kind < 6:
        return Assign((_value(draw),), (), _expression(draw, seen))
    if kind == 6:
        targets = (_value(draw, False), _value(draw, False))
        return Assign(targets, (), Call("ops.pair", (_leaf(draw, seen),)))
    count = draw(st.integers(0 if kind > 7 else 1, 3))
    targets = tuple(_value(draw, False) for _ in range(count))
    if kind == 7:
        condition = BinOp("<", _leaf(draw, seen), Literal(draw(st.integers(0, 500))))
        then, otherwise = (_block(draw, seen, count, deep - 1) for _ in range(2))
        return If(targets, (), condition, then, otherwise)
    return _random_loop(draw, seen, targets, deep)


def _random_loop(
    draw: Any, seen: list[Value], targets: tuple[Value, ...], deep: int
) -> Loop:
    kind = draw(st.sampled_from(["count", "items", "while", "break"]))
    carried = tuple(_value(draw, False) for _ in targets)
    initial = tuple(_leaf(draw, seen) for _ in targets)
    collected = draw(st.integers(0, 2))
    lists = tuple(_value(draw, False) for _ in range(collected))
    index = _value(draw, True) if draw(st.booleans()) or kind == "items" else None
    inside = [*seen, *carried, *([index] if index and kind != "while" else [])]
    body = _block(draw, inside, len(targets) + collected, deep - 1)
    loop = Loop(
        (*targets, *lists), (), index=index, carried=carried, initial=initial,
        collected=collected, body=body,
    )  # fmt: skip
    if kind in ("count", "break"):
        loop.count = Literal(draw(st.integers(0, 3)))
    if kind == "items":
        loop.items = ListOrTuple(tuple(_leaf(draw, seen) for _ in range(2)))
    if kind == "break":
        loop.going, loop.condition = Value("going", "bool"), Literal(True)
        bound = Literal(draw(st.integers(0, 600)))
        body.results.insert(
            0, BinOp("<", _leaf(draw, [*inside, *body_seen(body)]), bound)
        )
    if kind == "while":  # ends by counting
        counter, after = Value("turn"), Value("turn")
        loop.index = None
        loop.going, loop.condition = Value("going", "bool"), Literal(True)
        loop.carried, loop.initial = (counter, *carried), (Literal(0), *initial)
        loop.targets = (Value("turns"), *loop.targets)
        body.statements.append(Assign((after,), (), BinOp("+", counter, Literal(1))))
        body.results[:0] = [BinOp("<", after, Literal(2)), after]
    return loop


def body_seen(block: Block) -> list[Value]:
    return [t for s in block.statements if isinstance(s, Assign) for t in s.targets]


def _leaf(draw: Any, seen: list[Value]) -> Expression:
    if draw(st.integers(0, 6)) == 0:
        return Literal(draw(st.integers(-2, 30)))
    return draw(st.sampled_from(seen[-5:] if draw(st.booleans()) else seen))


def _expression(draw: Any, seen: list[Value]) -> Expression:
    a, b, c = (_leaf(draw, seen) for _ in range(3))
    kind = draw(st.integers(0, 6))
    if kind == 0:
        return Conditional(a, BinOp("<", b, Literal(40)), BinOp("+", c, c))
    if kind == 1:
        return BinOp(draw(st.sampled_from("+-")), a, b)
    if kind == 2:
        return UnaryOp("-", a)
    if kind == 3:
        return a
    if kind == 4:
        return Method(a, "conjugate")
    return Call("ops.mixed", (a, b))


def as_class(inputs: list[Value], block: Block) -> ClassPlan:
    return ClassPlan("Model", [], inputs, block)
