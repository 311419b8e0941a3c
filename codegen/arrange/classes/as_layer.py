"""One statement as an item of a Sequential: a layer, or a function's layer twin."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal as Literal_

from burnish.codegen.arrange.classes.members import (
    WeightPath,
    constructor,
)
from burnish.codegen.ops import twins
from burnish.codegen.program import (
    Assign,
    Attribute,
    Call,
    Expression,
    Layer,
    Literal,
    Method,
    ModuleCall,
    Scope,
    Shape,
    Statement,
    Value,
    Weight,
)

_TWINS = twins()
_POOLS = {"ops.max_pool": "MaxPool", "ops.avg_pool": "AvgPool"}
_PADS = {"constant": "ZeroPad", "reflect": "ReflectionPad", "edge": "ReplicationPad"}
#: ONNX's options of nearest interpolation as PyTorch computes it.
_NEAREST = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}


@dataclass(frozen=True)
class Note:
    """A decision on a scope: a kind of Reasons' records, its words and the scope.

    contract: the shapes of a class where the scope uses it. name: what the scope's
    attribute calls it; "" where the file names its author's class.
    """

    kind: Literal_["is_class", "is_branch", "is_little", "decide"]
    words: str
    scope: Scope
    contract: str = ""
    name: str = ""


@dataclass(frozen=True)
class Declined:
    """The reason why a group is no module of its own."""

    reason: str


@dataclass
class Submodule:
    """A module as its parent sees it: its constructor, weights, inputs and outputs.

    notes: what `--explain` says of it and of its parts, where it is used.
    """

    constructor: Expression
    weights: list[WeightPath]
    inputs: tuple[Value | Weight, ...]
    outputs: tuple[Value, ...]
    statements: set[Statement] = field(default_factory=set)
    notes: list[Note] = field(default_factory=list)

    def call(self, own: Expression) -> Assign:
        """The statement that calls it as the attribute `own`."""
        return Assign(self.outputs, (), ModuleCall(own, self.inputs))

    def calls(self, own: Expression) -> list[Statement]:
        """The statements of its call: one."""
        return [self.call(own)]


def function_part(statement: Statement) -> Submodule | None:
    """One statement as a module: a layer, or a function that has a module's form."""
    if not isinstance(statement, Assign) or len(statement.targets) != 1:
        return None
    expression, outputs = statement.expression, statement.targets
    if isinstance(expression, Layer):
        made, weights = constructor(expression), [*expression.weights.items()]
        values = tuple(v for v in expression.inputs if isinstance(v, Value))
        if len(values) != len(expression.inputs):
            return None
        return Submodule(made, weights, values, outputs, {statement})
    for form in _FORMS:
        found = form(expression, outputs[0].shape)
        if found is not None and isinstance(found[1], Value):
            return Submodule(found[0], [], (found[1],), outputs, {statement})
    return None


# --- functions ---

_Found = tuple[Call, Expression]
"""A layer's constructor and its inputs."""


def _function(made: Expression, _: Shape | None) -> _Found | None:
    """`ops.relu(x)` and others that have a layer with the same arguments."""
    if not isinstance(made, Call) or made.function not in _TWINS:
        return None
    kind, names = _TWINS[made.function].layer, _TWINS[made.function].names
    if len(made.args) != 1 or not {name for name, _ in made.options} <= names.keys():
        return None
    first = tuple(value for name, value in made.options if not names[name])
    named = tuple((names[name], value) for name, value in made.options if names[name])
    return Call(f"nn.{kind}", first, named), made.args[0]


def _usual(made: Expression, _: Shape | None) -> _Found | None:
    """A clip, a mean over places or a plain flatten as a layer."""
    match made:
        case Call(function="ops.clip", args=(x, Literal() as low, Literal() as high)):
            usual = (low.value, high.value) == (-1, 1)
            return Call("nn.Hardtanh", () if usual else (low, high)), x
        case Method(name="mean", target=x, args=(Literal(value=tuple() as axes),)) if (
            x.rank in (3, 4, 5)
            and dict(made.options).keys() == {"keepdims"}
            and {axis % x.rank for axis in axes} == set(range(2, x.rank))
        ):
            return Call(f"nn.AdaptiveAvgPool{x.rank - 2}d", (Literal(1),)), x
        case Call(function="ops.flatten", args=(x, Literal(value=1)), options=()):
            return Call("nn.Flatten"), x
    return None


def _pool(made: Expression, _: Shape | None) -> _Found | None:
    if not isinstance(made, Call) or not made.args:
        return None
    x, options = made.args[0], dict(made.options)
    if x.rank not in (3, 4, 5):
        return None
    if made.function == "ops.global_avg_pool":
        return Call(f"nn.AdaptiveAvgPool{x.rank - 2}d", (Literal(1),)), x
    size = options.pop("kernel_size", None)
    if made.function not in _POOLS or size is None:
        return None
    kind = f"nn.{_POOLS[made.function]}{x.rank - 2}d"
    return Call(kind, (size,), tuple(options.items())), x


def _padded(made: Expression, _: Shape | None) -> _Found | None:
    """Symmetric padding as a layer: `nn.ZeroPad2d` and the other padding layers."""
    match made:
        case Call(function="ops.pad", args=(x,)) if x.rank in (3, 4, 5):
            options = dict(made.options)
        case _:
            return None
    pads = options.pop("pad_width", None)
    mode = options.pop("mode", Literal("constant"))
    kind = _PADS.get(mode.value) if isinstance(mode, Literal) else None
    match pads:
        case Literal(value=((0, 0), (0, 0), *rest)) if kind and not options:
            sizes = {size for pair in rest for size in pair}
            flat = tuple(size for pair in reversed(rest) for size in pair)
            padding = flat[0] if len(sizes) == 1 else flat
            return Call(f"nn.{kind}{x.rank - 2}d", (Literal(padding),)), x
    return None


def _enlarged(made: Expression, _: Shape | None) -> _Found | None:
    """Nearest upsampling as `nn.Upsample`."""
    if not isinstance(made, Call) or made.function != "ops.resize_image":
        return None
    options = {n: e.value for n, e in made.options if isinstance(e, Literal)}
    scales = list(options.pop("scales", ()))
    by, x = set(scales[2:]), made.args[0]
    if len(options) + 1 < len(made.options) or options != _NEAREST:
        return None
    if scales[:2] != [1, 1] or len(by) != 1 or len(made.args) > 1:
        return None
    factor = by.pop()
    whole = int(factor) if factor == int(factor) else factor
    return Call("nn.Upsample", (), (("scale_factor", Literal(whole)),)), x


def _turned(made: Expression, _: Shape | None) -> _Found | None:
    """A transpose as `nn.Permute`."""
    order: list[object] = []
    match made:
        case Method(name="transpose", target=x, args=args):
            order = [a.value for a in args if isinstance(a, Literal)]
        case Attribute(name="mT", target=x) if x.rank:
            order = [*range(x.rank - 2), x.rank - 1, x.rank - 2]
        case _:
            return None
    fits = sorted(map(str, order)) == [str(i) for i in range(x.rank or 0)]
    return (Call("nn.Permute", (Literal(tuple(order)),)), x) if fits and order else None


def _reshaped(made: Expression, after: Shape | None) -> _Found | None:
    """A reshape behind the batch as `nn.Flatten` or `nn.Unflatten`."""
    if not isinstance(made, Method) or made.name != "reshape" or not after:
        return None
    x, before = made.target, made.target.shape
    if not before or before[0] is None or before[0] != after[0]:
        return None
    inner, outer = before[1:], after[1:]
    numbers = [size for size in (*inner, *outer) if isinstance(size, int)]
    if len(numbers) < len(inner) + len(outer):
        return None
    if len(outer) == 1 < len(inner) and math.prod(numbers[:-1]) == numbers[-1]:
        return Call("nn.Flatten"), x
    kept = len(before) - 1
    if kept and before[:kept] == after[:kept] and len(after) > len(before):
        return Call("nn.Unflatten", (Literal(-1), Literal(tuple(after[kept:])))), x
    return None


_FORMS: tuple[Callable[[Expression, Shape | None], _Found | None], ...] = (
    _function,
    _usual,
    _pool,
    _padded,
    _enlarged,
    _turned,
    _reshaped,
)
