"""Trials of attention: run statements and `nn.MultiheadAttention` on sampled inputs.

Empirical: a form is accepted where the results are equal in several draws of several
sizes. Sizes that the exporter wrote down as numbers are kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import permutations, product, zip_longest
from typing import Any

import numpy as np

from burnish import Tensor, nn
from burnish.codegen.arrange.classes.interpreter import Numbers, Untried, run
from burnish.codegen.program import (
    Call,
    Expression,
    Layer,
    Literal,
    Slice,
    Statement,
    Subscript,
    UnaryOp,
    Value,
    every_expression,
)

_BATCH, _TIME = 3, (5, 7, 4)
"""Sizes of the first draw, all different: no axis is taken for another."""
_MASKED = 0.3  # of a drawn mask
_LARGEST = 4096  # an integer that is tried as a size
_TYPE = "float64"  # sums in another order differ least
_CLOSE = 2e-4
"""Relative and absolute: sums in another order differ less, other formulas more."""
_DRAWS = ((1, 0, 4.0), (2, 0, 0.25), (3, 2, 1.0), (4, 5, 1.0))
"""Further draws: the seed, how much larger sizes are, and the inputs' magnitude.

They reject a bound or a window that the first draw does not reach.
"""
_REACHED = _BATCH + max(larger for _, larger, _ in _DRAWS)
"""A length that every axis with a name exceeds or has in some draw."""


@dataclass(frozen=True)
class MaskForm:
    """An input as a mask of the layer: its place, and the argument that it is.

    low: added to the scores where booleans hold; None: the input as it is. A finite
    one leaves a query weights though every key is masked, as booleans do not.
    """

    place: int
    argument: str
    low: float | None = None


@dataclass(frozen=True)
class AttentionForm:
    """How a group is called as the layer.

    inputs: query, key, value by their places among the group's inputs, and for each
    whether its first two axes change places. weighs: the place of the attention's
    weights in the results.
    """

    embed_dim: int
    num_heads: int
    batch_first: bool
    inputs: tuple[tuple[int, bool], ...]
    mask: MaskForm | None
    is_causal: bool
    weighs: int | None
    order: tuple[int, ...] = ()  #: the layers of queries, keys and values


@dataclass(frozen=True)
class Projections:
    """The layers of a group: those of queries, keys and values, and the last one."""

    inward: tuple[Layer, ...]
    out: Layer

    @property
    def width(self) -> int:
        return int(self.out.args[0])

    @property
    def widths(self) -> tuple[int, int, int]:
        """Of queries, keys and values as they are given."""
        if len(self.inward) < 3:
            return (self.width,) * 3
        q, k, v = (int(layer.args[0]) for layer in self.inward)
        return q, k, v

    @property
    def has_bias(self) -> bool:
        """Whether the attention adds biases: to queries, keys and values at least."""
        return "bias" in self.inward[0].weights

    def ordered(self, order: Sequence[int]) -> Projections:
        """The layers inward in another order."""
        return replace(self, inward=tuple(self.inward[place] for place in order))


def sizes_to_try(
    statements: Sequence[Statement], inputs: Sequence[Value]
) -> Iterator[dict[str, int]]:
    """Numbers for the sizes that have names; such as exporters wrote down too."""
    places: dict[str, int] = {}
    for value in inputs:
        for axis, size in enumerate(value.shape or ()):
            if isinstance(size, str):
                places.setdefault(size, axis)
    names = list(places)
    plain = {name: (_BATCH, *_TIME)[i % 4] for i, name in enumerate(names)}
    yield plain
    for batch in (0, 1):  # by more than one name
        yield plain | {
            n: _BATCH if a == batch else plain[n] + 6 for n, a in places.items()
        }
    if len(names) <= 3:
        for size, name in product(sorted(_written(statements)), names):
            yield plain | {name: size}


def _written(statements: Sequence[Statement]) -> set[int]:
    """Integers in the statements, which may be sizes that the exporter fixed."""
    return {
        e.value
        for s in statements
        for e in every_expression(s)
        if isinstance(e, Literal) and type(e.value) is int and 1 < e.value < _LARGEST
    }


@dataclass
class _Draw:
    """A group's results on random weights and inputs."""

    layers: Projections
    modules: dict[int, nn.Linear]
    given: list[Tensor]
    wanted: list[np.ndarray]
    whole_rows: bool  #: are masked: the statements may give NaN there

    def agrees(self, way: AttentionForm) -> bool:
        """Whether the layer gives the same results."""
        layers, modules = self.layers, self.modules
        layer = nn.MultiheadAttention(
            layers.width,
            way.num_heads,
            bias=layers.has_bias,
            kdim=layers.widths[1],
            vdim=layers.widths[2],
            batch_first=way.batch_first,
            dtype=_TYPE,
        )
        _fill(layer, [modules[id(e)] for e in layers.inward], modules[id(layers.out)])
        try:
            made = _called(layer, way, self.given)
        except (ValueError, IndexError, TypeError):
            return False
        results = [
            made[1 if place == way.weighs else 0] for place in range(len(self.wanted))
        ]
        return all(
            result.shape == want.shape
            and np.allclose(self._known(result, want), want, _CLOSE, _CLOSE, True)
            for result, want in zip(results, self.wanted, strict=True)
        )

    def _known(self, result: np.ndarray, want: np.ndarray) -> np.ndarray:
        """The layer's result, but NaN where the statements mask all keys by -inf.

        A query without keys gets zeros of the layer.
        """
        return np.where(np.isnan(want), want, result) if self.whole_rows else result


def agreeing(
    statements: Sequence[Statement],
    inputs: Sequence[Value],
    outputs: Sequence[Value],
    layers: Projections,
    sizes: dict[str, int],
) -> AttentionForm | None:
    """The call of the layer whose results equal the statements' in every draw.

    Raises Untried where they are equal in the first draw alone.
    """

    def draw(
        seed: int, sizes: dict[str, int], scale: float, whole_rows: bool = False
    ) -> _Draw:
        """whole_rows: masks hide all of some rows, and numbers are zeros there."""
        rng = np.random.default_rng(seed)
        given = {v: _input(rng, v, sizes, scale, whole_rows) for v in inputs}
        return _drawn(rng, statements, given, outputs, layers, whole_rows)

    firsts = [draw(0, sizes, 1.0), draw(0, sizes, 1.0, True)]
    fixed = _written(statements)
    for way in _ways(statements, inputs, outputs, layers):
        if not all(first.agrees(way) for first in firsts):
            continue
        for seed, scale, other in _further(sizes, fixed):
            try:
                further = draw(seed, other, scale)
            except (ValueError, IndexError, TypeError, KeyError):
                continue  # not at these sizes
            if not further.agrees(way):
                raise Untried("it is the layer for some inputs only")
        return way
    return None


def _further(
    sizes: dict[str, int], fixed: set[int]
) -> Iterator[tuple[int, float, dict[str, int]]]:
    """Seeds, magnitudes and sizes of further draws.

    A number that is written down may be a size that the exporter fixed, or a mask's
    bound, which only other sizes show.
    """
    for seed, larger, scale in _DRAWS:
        grown = {name: size + larger for name, size in sizes.items()}
        held = {n: s if s in fixed else grown[n] for n, s in sizes.items()}
        yield seed, scale, grown
        if held != grown:
            yield seed, scale, held


def has_far_bounds(statements: Sequence[Statement]) -> bool:
    """Whether a mask or a window is longer than every draw."""
    return any(
        isinstance(bound, Literal)
        and type(bound.value) is int
        and abs(bound.value) >= _REACHED
        for s in statements
        for e in every_expression(s)
        for bound in _bounds(e)
    )


def _bounds(expression: Expression) -> Iterator[Expression | None]:
    """Diagonals of triangles, and ends of slices of axes that have no number."""
    match expression:
        case Call(function="ops.tril" | "ops.triu", args=args, options=options):
            yield from (*args[1:], *dict(options).values())
        case Subscript(target=target, keys=keys):
            sizes = target.shape if isinstance(target, Value) and target.shape else ()
            if isinstance(keys[0], Literal) and keys[0].value is ...:
                keys = keys[:0:-1]
                sizes = sizes[::-1]
            for key, size in zip_longest(keys, sizes[: len(keys)]):
                if isinstance(key, Slice) and not isinstance(size, int):
                    yield from (key.start, key.stop)


def _drawn(
    rng: np.random.Generator,
    statements: Sequence[Statement],
    given: Numbers,
    outputs: Sequence[Value],
    layers: Projections,
    whole_rows: bool,
) -> _Draw:
    modules = {
        id(e): nn.Linear(e.args[0], e.args[1], "bias" in e.weights, _TYPE)
        for e in (*layers.inward, layers.out)
    }
    for module in modules.values():
        for parameter in module.parameters():
            parameter.assign(_random(rng, parameter.shape) * 0.5)
    with np.errstate(all="ignore"):  # -inf - -inf, where a whole row is masked
        found = run(statements, given, modules)
    if any(output.host for output in outputs):
        raise Untried("it gives a size")
    wanted = [np.asarray(found[output].numpy()) for output in outputs]
    return _Draw(layers, modules, list(given.values()), wanted, whole_rows)


def _ways(
    statements: Sequence[Statement],
    inputs: Sequence[Value],
    outputs: Sequence[Value],
    layers: Projections,
) -> Iterator[AttentionForm]:
    """Every way of calling the layer that inputs and results allow, likely first."""
    width, widths = layers.width, layers.widths
    lasts = {t.shape[-1] for s in statements for t in s.targets if t.shape}
    heads = [
        width // d for d in lasts if isinstance(d, int) and d <= width and not width % d
    ]
    wide = [i for i, v in enumerate(inputs) if v.shape and v.shape[-1] in widths]
    rest = [i for i in range(len(inputs)) if i not in wide]
    if len(rest) > 1 or not wide:
        return
    masks: list[MaskForm | None] = [None]
    if rest:
        lows = _lows(statements) if inputs[rest[0]].dtype == "bool" else []
        names = ("attn_mask", "key_padding_mask")
        masks = [MaskForm(rest[0], n, low) for low in (None, *lows) for n in names]
    weighs: list[int | None] = [*range(len(outputs))] if len(outputs) > 1 else [None]
    flips = [(False, False), (False, True), (True, False)]
    for mask, first, head, causal, place, order, flip in product(
        masks,
        (True, False),
        sorted(set(heads)),
        (False, True) if not rest else (False,),
        weighs,
        _orders(wide, inputs, widths),
        flips if len(wide) > 1 else flips[:1],
    ):
        q, k, v = order
        given = ((q, flip[0]), (k, flip[1]), (v, flip[1]))
        yield AttentionForm(width, head, first, given, mask, causal, place)


def _lows(statements: Sequence[Statement]) -> list[float]:
    """Negative numbers in the statements: what masked scores may be given."""
    numbers = [_number(e) for s in statements for e in every_expression(s)]
    return sorted({n for n in numbers if n is not None and -np.inf < n < 0})


def _number(expression: Expression) -> float | None:
    match expression:
        case Literal(value=float() as value):
            return value
        case UnaryOp(operator="-", operand=Literal(value=float() as value)):
            return -value
    return None


def _orders(
    wide: list[int], inputs: Sequence[Value], widths: tuple[int, int, int]
) -> list[tuple[int, int, int]]:
    """Which inputs are query, key and value: those with the widths of each."""
    if len(wide) == 1:
        orders = [(wide[0],) * 3]
    elif len(wide) == 2:
        orders = [(a, b, b) for a, b in (wide, wide[::-1])]
    else:
        orders = [(a, b, c) for a, b, c in permutations(wide[:3])]
    lasts = [(value.shape or (None,))[-1] for value in inputs]
    return [order for order in orders if tuple(lasts[i] for i in order) == widths]


def _called(
    layer: nn.MultiheadAttention, way: AttentionForm, given: list[Tensor]
) -> tuple[np.ndarray, np.ndarray]:
    q, k, v = (
        given[place].transpose(1, 0, 2) if flip else given[place]
        for place, flip in way.inputs
    )
    options: dict[str, Any] = {}
    if way.mask:
        mask, low = given[way.mask.place], way.mask.low
        options[way.mask.argument] = mask if low is None else mask.to(_TYPE) * low
    y, weights = layer(q, k, v, is_causal=way.is_causal, **options)
    assert weights is not None
    return y.numpy(), weights.numpy()


def _fill(
    layer: nn.MultiheadAttention, inward: list[nn.Module], out: nn.Module
) -> None:
    state = {f"out_proj.{name}": array for name, array in out.state_dict().items()}
    for name in inward[0].state_dict():
        parts = [part.state_dict()[name] for part in inward]
        if name == "weight" and f"in_proj_{name}" not in layer.state_dict():
            keys = (f"{part}_proj_weight" for part in "qkv")
            state |= dict(zip(keys, parts, strict=True))
        else:
            state[f"in_proj_{name}"] = np.concatenate(parts)
    if layer.bias:  # an exporter drops one of zeros
        state.setdefault("out_proj.bias", np.zeros(layer.embed_dim, _TYPE))
    layer.load_state_dict(state)


def _input(
    rng: np.random.Generator,
    value: Value,
    sizes: dict[str, int],
    scale: float,
    whole_rows: bool,
) -> Tensor:
    if value.host or value.shape is None or None in value.shape:
        raise Untried(value.hint)
    shape = [sizes[d] if isinstance(d, str) else d or 0 for d in value.shape]
    drawn: np.ndarray = _random(rng, shape) * scale
    if value.dtype == "bool":
        drawn = np.asarray(rng.random(shape) < _MASKED)
        drawn[..., 0] = False
    if whole_rows:  # every other one
        drawn.reshape(-1, *shape[-1:])[::2] = value.dtype == "bool"
    return Tensor(drawn)


def _random(rng: np.random.Generator, shape: Sequence[int]) -> np.ndarray:
    return rng.normal(size=shape).astype(_TYPE)
