"""Print programs as text: one statement a line, in Python's expressions.

    weight w "fc.weight": float32[4, 4]
    input x: float32[batch, 4]
    h: float32[batch, 4] = nn.Linear(4, 4, weight=w)(x)  # blocks.0:Block.fc
    y: float32[batch, 4] = (x + ops.tanh(h))  # blocks.0:Block
    return y
    output "y": float32[batch, 4]

Names of values are their hints, made unique; weights are declared, and have no data.
`_each` and the like stand for what Python's syntax does not tell apart.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from burnish.codegen.names.identifier import Identifier, Names
from burnish.codegen.program.expressions import (
    Attribute,
    BinOp,
    Call,
    Conditional,
    Keyed,
    Layer,
    ListOrTuple,
    Method,
    Slice,
    Subscript,
    UnaryOp,
    Unwritten,
)
from burnish.codegen.program.leaves import (
    Constant,
    Expression,
    Host,
    Literal,
    Name,
    Shape,
    Source,
    Value,
    Weight,
)
from burnish.codegen.program.statements import (
    Block,
    If,
    Level,
    Loop,
    Scope,
    Statement,
    every_expression,
)

if TYPE_CHECKING:
    from burnish.codegen.program.plan import Program

INDENT = "    "
RESERVED = ("self", "nn", "ops", "Tensor", "inf", "nan", "burnish")


def printed(program: Program) -> str:
    """The program as text, one statement a line."""
    return "\n".join(_Printer(program).lines(program)) + "\n"


class _Printer:
    def __init__(self, program: Program) -> None:
        every = list(every_expression(program.body))
        roots = {e.function.partition(".")[0] for e in every if isinstance(e, Call)}
        self.names = Names({*RESERVED, *roots})
        self.of: dict[int, str] = {}
        self.sources: dict[int, str] = {}
        self.every = every

    # --- names ---

    def value(self, value: Value) -> str:
        """The declaration of a value: `x "hint": float32[batch, 4]`."""
        name = self.names.new(Identifier.variable(value.hint or "value"))
        self.of[id(value)] = name
        hint = "" if name == value.hint else f" {value.hint!r}"
        words = [word for word in ("host", "nonnegative") if getattr(value, word)]
        kind = " ".join([*words, typed(value.dtype, value.shape)])
        return f"{name}{hint}: {kind}"

    def weight(self, weight: Weight) -> str:
        name = self.names.new(Identifier.variable(weight.path or "weight"))
        self.of[id(weight)] = name
        words = [] if weight.trained else ["fixed"]
        words += [] if weight.persistent else ["passing"]
        if (source := weight.source) is not None:
            words.append(self._source(source))
        kind = " ".join([*words, typed(weight.dtype, weight.shape)])
        return f"weight {name} {weight.path!r}: {kind}"

    def _source(self, source: Source) -> str:
        """`of s0(16, named)`: the same name for the same tensor of the file."""
        if id(source) in self.sources:
            return f"of {self.sources[id(source)]}"
        name = self.sources[id(source)] = f"s{len(self.sources)}"
        flags = [w for w in ("named", "apart", "transposed") if getattr(source, w)]
        return f"of {name}({', '.join([str(source.size), *flags])})"

    # --- statements ---

    def lines(self, program: Program) -> Iterator[str]:
        held = (
            (*e.weights.values(),) if isinstance(e, Layer) else (e,) for e in self.every
        )
        for weight in dict.fromkeys(chain.from_iterable(held)):
            if isinstance(weight, Weight):
                yield self.weight(weight)
        for value in program.inputs:
            default = ""
            if value in program.optional:
                default = f" = {literal(program.optional[value])}"
            yield f"input {self.value(value)}{default}"
        yield from self.block(program.body, "")
        for name, of in zip(program.output_names, program.outputs, strict=True):
            yield f"output {name!r}: {typed(*of)}"
        for operator, nodes in program.unknown.items():
            yield f"unknown {operator!r}: {', '.join(map(repr, nodes))}"

    def block(self, block: Block, indent: str) -> Iterator[str]:
        for statement in block.statements:
            yield from self.statement(statement, indent)
        results = ", ".join(map(self.expression, block.results))
        yield f"{indent}return {results}".rstrip()

    def statement(self, statement: Statement, indent: str) -> Iterator[str]:
        inner = indent + INDENT
        match statement:
            case If():
                made = [f"if {self.expression(statement.condition)}:"]
                made += self.block(statement.then, inner)
                made += [f"{indent}else:", *self.block(statement.otherwise, inner)]
            case Loop():
                made = ["loop:", *self._loop(statement, inner)]
            case _:
                made = [", ".join(map(self.expression, statement.expressions()))]
        targets = ", ".join(map(self.value, statement.targets))
        scope = f"  # {scoped(statement.scope)}" if statement.scope else ""
        yield f"{indent}{targets} = {made[0]}{scope}"
        yield from made[1:]

    def _loop(self, loop: Loop, indent: str) -> Iterator[str]:
        for word in ("count", "items", "condition"):
            given = getattr(loop, word)
            if given is not None:
                yield f"{indent}@{word} {self.expression(given)}"
        starts = [self.expression(start) for start in loop.initial]
        for word in ("going", "index"):
            value = getattr(loop, word)
            if value is not None:
                yield f"{indent}@{word} {self.value(value)}"
        for value, items in loop.beside:
            yield f"{indent}@beside {self.value(value)} = {self.expression(items)}"
        for value, start in zip(loop.carried, starts, strict=True):
            yield f"{indent}@carry {self.value(value)} = {start}"
        if loop.collected:
            yield f"{indent}@collected {loop.collected}"
        yield from self.block(loop.body, indent)

    # --- expressions ---

    def expression(self, e: Expression) -> str:
        """An expression that is an atom of Python's, in parentheses if need be."""
        match e:
            case Value() | Weight():
                return self.of[id(e)]
            case Literal():
                return literal(e.value)
            case Name():
                return e.text if e.text.startswith("self.") else f"_name({e.text!r})"
            case Constant():
                return f"_constant({e.dtype!r}, {literal(e.array.tolist())})"
            case Host():
                items = self._list(e.children())
                return f"_host({e.dtype!r}, {e.array.shape!r}, [{items}])"
            case BinOp():
                left, right = self.expression(e.left), self.expression(e.right)
                return f"({left} {e.operator} {right})"
            case UnaryOp():
                return f"_unary({e.operator!r}, {self.expression(e.operand)})"
            case Conditional():
                then, condition, otherwise = map(self.expression, e.children())
                return f"({then} if {condition} else {otherwise})"
            case ListOrTuple():
                return self._display(e)
            case Keyed():
                pairs = (f"{k!r}: {self.expression(v)}" for k, v in e.items)
                return f"{{{', '.join(pairs)}}}"
            case Slice():
                ends = {"start": e.start, "stop": e.stop, "step": e.step}
                given = [(n, end) for n, end in ends.items() if end is not None]
                return f"_slice({self._arguments((), given)})"
            case Subscript():
                keys = self._list(e.keys)
                return f"{self._target(e.target)}[{keys}{',' * (len(e.keys) == 1)}]"
        return self._called(e)

    def _called(self, e: Expression) -> str:
        match e:
            case Unwritten():
                given = self._arguments(e.args, e.options)
                known = (e.function, e.operator, e.gives, e.takes)
                return f"_unwritten({', '.join(map(repr, known))})({given})"
            case Call():
                return f"{e.function}({self._arguments(e.args, e.options)})"
            case Method():
                given = self._arguments(e.args, e.options)
                return f"{self._target(e.target)}.{e.name}({given})"
            case Attribute():
                return f"{self._target(e.target)}.{e.name}"
            case Layer():
                made = [*map(literal, e.args)]
                made += [f"{n}={literal(v)}" for n, v in e.options.items()]
                made += [f"{n}={self.of[id(w)]}" for n, w in e.weights.items()]
                return f"nn.{e.kind}({', '.join(made)})({self._list(e.inputs)})"
        raise TypeError(
            f"expected an expression of a program, got {type(e).__name__}: only "
            "classes have it"
        )

    def _list(self, items: Sequence[Expression]) -> str:
        return ", ".join(map(self.expression, items))

    def _arguments(
        self, args: Sequence[Expression], options: Sequence[tuple[str, Expression]]
    ) -> str:
        named = (f"{name}={self.expression(value)}" for name, value in options)
        return ", ".join([*map(self.expression, args), *named])

    def _target(self, target: Expression) -> str:
        made = self.expression(target)
        return f"({made})" if isinstance(target, Literal) else made

    def _display(self, e: ListOrTuple) -> str:
        items = self._list(e.items)
        comma = "," if e.brackets == "()" and len(e.items) == 1 else ""
        made = f"{e.brackets[0]}{items}{comma}{e.brackets[1]}"
        alike = all(isinstance(item, Literal) for item in e.items)
        return f"_each({made})" if alike else made


def literal(value: Any) -> str:
    """A plain value of Python's; infinities and NaN by name."""
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if value != value else "inf" if value > 0 else "-inf"
    if isinstance(value, list):
        return f"[{', '.join(map(literal, value))}]"
    if isinstance(value, tuple):
        return f"({', '.join(map(literal, value))}{',' * (len(value) == 1)})"
    return "..." if value is ... else repr(value)


def typed(dtype: str | None, shape: Shape | None) -> str:
    """`float32[batch, 4]`; `any` and `...` are unknown, and so is the size `_`."""
    if shape is None:
        return f"{dtype or 'any'}[...]"
    sizes = ("_" if d is None else str(d) if _is_plain(d) else repr(d) for d in shape)
    return f"{dtype or 'any'}[{', '.join(sizes)}]"


def _is_plain(size: int | str) -> bool:
    return isinstance(size, int) or (size.isidentifier() and size != "_")


def scoped(scope: Scope) -> str:
    """`blocks.0:Block#2.fc`: name, class and number of the call of each level."""
    return ".".join(map(_level, scope))


def _level(level: Level) -> str:
    name, kind = (_word(word) for word in (level.name, level.kind))
    call = f"#{level.call}" if level.call else ""
    return f"{name}{f':{kind}' if level.kind else ''}{call}"


def _word(text: str) -> str:
    """A name as it is, quoted where it holds what separates names."""
    return text if text and text.replace("_", "a").isalnum() else repr(text)
