"""Docstrings of the steps to fill in: where they are, and the shapes around them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from burnish.codegen.program import (
    Call,
    ClassPlan,
    Conditional,
    Expression,
    ListOrTuple,
    Literal,
    Method,
    Repeat,
)
from burnish.codegen.render.words import text

_LONGEST = 54
_SAME = ("BatchNorm", "InstanceNorm", "LayerNorm", "RMSNorm", "PReLU", "Multihead")


def spelled_out(classes: list[ClassPlan]) -> None:
    """Give every step its words, in place; classes small to large."""
    shapes = _Shapes({plan.name: plan for plan in classes})
    for plan in classes:
        plan.members = [(name, _inside(made, shapes)) for name, made in plan.members]
        members = dict(plan.members)

        def worded(
            expression: Expression, members: Mapping[str, Expression] = members
        ) -> Expression:
            words = _words(expression)
            if words is None:
                return expression.rebuilt(worded)
            return _step(_described(words, members, shapes))

        plan.block = plan.block.rebuilt(worded)


def _step(words: str) -> Call:
    """The words as one line that fits beside a call."""
    if len(words) > _LONGEST:
        words = f"{words[: _LONGEST - 3].rstrip()}..."
    return Call("nn.Unwritten", (Literal(words),))


def _words(expression: Expression) -> tuple[object, ...] | None:
    """The parts that an `nn.Unwritten` keeps of its step; None for others."""
    match expression:
        case Call(function="nn.Unwritten", args=(Literal(value=tuple() as words),)):
            return words
    return None


def _inside(made: Expression, shapes: _Shapes) -> Expression:
    """A constructor with the steps of its Sequentials in words."""
    if isinstance(made, Call | Method):
        return replace(made, args=tuple(_worded(made.args, shapes)))
    if isinstance(made, ListOrTuple):
        return replace(made, items=tuple(_worded(made.items, shapes)))
    return made.rebuilt(lambda child: _inside(child, shapes))


def _worded(items: Sequence[Expression], shapes: _Shapes) -> Iterator[Expression]:
    for place, item in enumerate(items):
        words = _words(item)
        if words is None:
            yield _inside(item, shapes)
            continue
        before = [each for each in items[:place] if _words(each) is None]
        after = [each for each in items[place:] if _words(each) is None]
        given = shapes.of(before[-1], last=True) if before else "(...)"
        taken = shapes.of(after[0], last=False) if after else "what comes next"
        yield _step(f"{words[0]}: {given} -> {taken}")


def _described(
    words: tuple[object, ...], members: Mapping[str, Expression], shapes: _Shapes
) -> str:
    """An open step of a forward, and the attributes before and after it."""
    kind, *rest = map(str, words)
    held = [members[name] for name in rest if name in members]
    match kind:
        case "between":
            before, after = shapes.of(held[0], True), shapes.of(held[1], False)
            line = f"{rest[0]} -> {rest[1]}"
            longer = f"{rest[0]} {before} -> {rest[1]} {after}"
            if before == after:
                longer = f"{line}: {before}"
            return longer if len(longer) <= _LONGEST else line
        case "after":
            return (
                f"after {rest[0]} {shapes.of(held[0], True)}" if held else "all of it"
            )
        case "loose":
            after = f"{rest[-1]} {shapes.of(held[-1], False)}, one by one or each"
            return f"{rest[0]} -> {after}" if rest[0] else after
        case "attention":
            return f"attention of {', '.join(rest)} {shapes.of(held[-1], True)}"
        case "activation":
            return f"activation of {rest[0]} {shapes.of(held[0], True)}"
        case "tables":
            return f"rows of {', '.join(rest)} {shapes.of(held[0], True)}"
        case "whole":
            return "how these run"
    return f"use of {', '.join(rest)}"


@dataclass(frozen=True)
class _Shapes:
    """Shapes of modules' inputs and outputs, from their constructors."""

    classes: Mapping[str, ClassPlan]

    def of(self, made: Expression, last: bool) -> str:
        """The shape of a module's output (`last`) or input: `(N, 64, H, W)`."""
        if isinstance(made, Repeat):
            return self.of(made.item, last)
        if isinstance(made, Conditional):
            return self.of(made.then, last)
        if isinstance(made, ListOrTuple):
            return self._end(made.items, last)
        if not isinstance(made, Call):
            return "(...)"
        if made.function == "nn.Sequential":
            return self._end(made.args, last)
        if made.function in self.classes and made.function != "Conv1D":
            return self._own(made, last)
        size = _size(made, last)
        kind = made.function.removeprefix("nn.")
        if size is None:
            return "(...) of ids" if kind == "Embedding" else "(...)"
        axes = {"1d": ", L", "2d": ", H, W", "3d": ", D, H, W"}.get(kind[-2:])
        if axes is None or kind == "Conv1D":
            return f"(N, {size}, ...)" if kind == "GroupNorm" else f"(..., {size})"
        return f"(N, {size}{axes})"

    def _end(self, items: Sequence[Expression], last: bool) -> str:
        known = [item for item in items if _is_made(item)]
        return self.of(known[-1 if last else 0], last) if known else "(...)"

    def _own(self, made: Call, last: bool) -> str:
        """The first or last member's shape, with this call's sizes for its own."""
        plan = self.classes[made.function]
        words = self._end([member for _, member in plan.members], last)
        given = {k: text(Literal(v), {}) for k, v in plan.defaults.items()}
        sizes = zip(plan.parameters, made.args, strict=False)
        given |= {name: text(size, {}) for name, size in sizes}
        given |= {name: text(size, {}) for name, size in made.options}
        return re.sub(r"[a-z_]\w*", lambda m: given.get(m[0], m[0]), words)


def _is_made(item: Expression) -> bool:
    """Whether it is a module of known words: no step, no size, no parameter."""
    if isinstance(item, Call):
        return item.function not in ("nn.Unwritten", "nn.Param", "nn.Buffer")
    return isinstance(item, Repeat | Conditional | ListOrTuple)


def _size(made: Call, last: bool) -> str | None:
    """The feature sizes, as written in the constructor."""
    kind = made.function.removeprefix("nn.")
    words = [text(arg, {}) for arg in made.args]
    if kind.startswith(("Conv", "Linear")):
        return words[1 if last else 0]
    if kind.startswith(("LSTM", "GRU", "RNN")):
        return _recurrent(made, words) if last else words[0]
    if kind == "Embedding":
        return words[1] if last else None
    if kind == "GroupNorm":
        return words[1]
    if kind.startswith(_SAME):
        return words[0] if words else None
    return None


def _recurrent(made: Call, words: list[str]) -> str:
    options = {name: text(value, {}) for name, value in made.options}
    size = options.get("proj_size", words[1])
    if "bidirectional" not in options:
        return size
    return str(2 * int(size)) if size.isdigit() else f"2 * {size}"
