"""Recognize `nn.MultiheadAttention` by running a group and the layer on one input.

Exporters write its projections, heads and views in a dozen ways. What a group computes
is compared with the layer's own result on random numbers, in the layouts and with the
masks that the layer takes; only where they agree does the group become the layer, with
the parameters' own names.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import permutations, product
from typing import Any

import numpy as np

from burnish import Tensor, nn
from burnish.codegen.arrange.classes.as_layer import Submodule
from burnish.codegen.arrange.classes.interpreter import Numbers, Untried, run
from burnish.codegen.arrange.classes.members import WeightPath
from burnish.codegen.program import (
    Assign,
    Call,
    Expression,
    Layer,
    Literal,
    Method,
    ModuleCall,
    Statement,
    Subscript,
    Value,
    Weight,
    walk,
)

_BATCH, _TIME = 3, (5, 7, 4)
_CLOSE = 2e-4
_OF_KERAS = frozenset(("attention_output", "key", "query", "value"))


@dataclass(frozen=True)
class AttentionForm:
    """How a group is called as the layer.

    inputs: query, key, value by their places among the group's inputs, and for each
    whether its first two axes change places. mask: the place of another input and the
    argument that it is. weighs: the place of the attention's weights in the results.
    """

    embed_dim: int
    num_heads: int
    batch_first: bool
    inputs: tuple[tuple[int, bool], ...]
    mask: tuple[int, str] | None
    is_causal: bool
    weighs: int | None
    order: tuple[int, ...] = ()  #: the layers of queries, keys and values


@dataclass(frozen=True)
class _Projections:
    """The layers of a group: those of queries, keys and values, and the last one."""

    inward: tuple[Layer, ...]
    out: Layer

    @property
    def width(self) -> int:
        return int(self.out.args[0])

    def ordered(self, order: Sequence[int]) -> _Projections:
        """The layers inward in another order."""
        return replace(self, inward=tuple(self.inward[place] for place in order))


def multihead(
    statements: Sequence[Statement], inputs: Sequence[Value], outputs: Sequence[Value]
) -> AttentionForm | None:
    """How the statements are called as the layer, if they are one."""
    layers = _projections(statements)
    if layers is None or len(outputs) > 2 or not 1 <= len(inputs) <= 4:
        return None
    orders = [*permutations(range(len(layers.inward)))]
    for sizes, order in product(_sizes(statements, inputs), orders):
        try:
            ordered = layers.ordered(order)
            found = _agreeing(statements, inputs, outputs, ordered, sizes)
        except Untried:
            return None
        except (ValueError, IndexError, TypeError, KeyError):
            continue  # not at these sizes
        if found is not None:
            return replace(found, order=order)
    return None


@dataclass(kw_only=True)
class Attention(Submodule):
    """A group that is the layer."""

    found: AttentionForm

    def calls(self, own: Expression) -> list[Statement]:
        """`self.attention(x, x, x, need_weights=False)[0]`"""
        found, outputs = self.found, self.outputs
        turned: dict[int, Value] = {}
        statements: list[Statement] = []
        inputs: list[Expression] = []
        for place, flip in found.inputs:
            given = self.inputs[place]
            if flip and place not in turned:
                t, n, e = given.shape or (None,) * 3
                turned[place] = Value("", given.dtype, (n, t, e))
                axes = (Literal(1), Literal(0), Literal(2))
                made = Method(given, "transpose", axes)
                statements.append(Assign((turned[place],), (), made))
            inputs.append(turned[place] if flip else given)
        options: list[tuple[str, Expression]] = []
        if found.mask:
            place, name = found.mask
            options.append((name, self.inputs[place]))
        if found.is_causal:
            options.append(("is_causal", Literal(True)))
        if found.weighs is None:
            options.append(("need_weights", Literal(False)))
        call = ModuleCall(own, tuple(inputs), tuple(options))
        if found.weighs is None:
            return [*statements, Assign(outputs, (), Subscript(call, (Literal(0),)))]
        both = (outputs[1 - found.weighs], outputs[found.weighs])
        return [*statements, Assign(both, (), call)]


def attention(
    statements: Sequence[Statement], inputs: Sequence[Value], outputs: Sequence[Value]
) -> Attention | None:
    """The statements as the layer, if they are one."""
    found = multihead(statements, inputs, outputs)
    if found is None:
        return None
    weights = weights_of(statements, found.order)
    options: list[tuple[str, Expression]] = []
    if "in_proj_bias" not in dict(weights):
        options.append(("bias", Literal(False)))
    if found.batch_first:
        options.append(("batch_first", Literal(True)))
    dtype = next(iter(dict(weights).values())).dtype
    if dtype != "float32":
        options.append(("dtype", Literal(dtype)))
    sizes = (Literal(found.embed_dim), Literal(found.num_heads))
    made = Call("nn.MultiheadAttention", sizes, tuple(options))
    inside = {id(statement) for statement in statements}
    given, results = tuple(inputs), tuple(outputs)
    return Attention(made, weights, given, results, inside, found=found)


def weights_of(
    statements: Sequence[Statement], order: Sequence[int]
) -> list[WeightPath]:
    """The parameters of the group under the layer's names for them."""
    projections = _projections(statements)
    assert projections is not None
    layers = projections.ordered(order)
    found = [("in_proj_weight", _stacked([e.weights["weight"] for e in layers.inward]))]
    if "bias" in layers.out.weights:
        found += [
            ("in_proj_bias", _stacked([e.weights["bias"] for e in layers.inward]))
        ]
    return [*found, *((f"out_proj.{n}", w) for n, w in layers.out.weights.items())]


def may_be(statements: Sequence[Statement]) -> bool:
    """Whether the layers have the names of PyTorch's attention, Keras' one, or none."""
    layers = _projections(statements)
    if layers is None:
        return False
    own = [w.path for e in layers.inward for w in e.weights.values()]
    out = [w.path for w in layers.out.weights.values()]
    if any(path.endswith((".weight", ".bias")) for path in own):
        return False
    if any(path.split(".")[-2:-1] == ["out_proj"] for path in out):
        return True
    scopes = {statement.scope for statement in statements}
    outer = min(map(len, scopes), default=0)
    inner = {scope[-1].name for scope in scopes if len(scope) > outer}
    alone = len(scopes) == 1 or inner <= _OF_KERAS
    return alone and not any(path.endswith((".weight", ".bias")) for path in out)


def _stacked(parts: list[Weight]) -> Weight:
    if len(parts) == 1:
        return parts[0]
    rows = sum(part.shape[0] for part in parts)
    return parts[0].changed(
        (rows, *parts[0].shape[1:]),
        lambda first: np.concatenate([first, *(part.read() for part in parts[1:])]),
    )


def _projections(statements: Sequence[Statement]) -> _Projections | None:
    """Linear layers whose rows are 3 * embed_dim in all, and one behind them."""
    found: list[Layer] = []
    for statement in statements:
        for root in statement.expressions():
            found += [e for e in walk(root) if isinstance(e, Layer)]
    if not 2 <= len(found) <= 4 or not all(map(_fits, found)):
        return None
    *inward, out = found
    width = out.args[0]
    rows = [e.args[1] for e in inward]
    square = all(e.args[0] == width for e in inward) and out.args[1] == width
    if not square or sum(rows) != 3 * width or (len(rows) == 2 and rows[0] != width):
        return None
    if len({"bias" in e.weights for e in found}) > 1:
        return None
    return _Projections(tuple(inward), out)


def _fits(layer: Layer) -> bool:
    """Whether its weight can be rows of the attention's own, (out, in).

    What rounds its input is a layer of its own: the attention's would round once for
    all of them.
    """
    rounds = any(name.startswith("on_input") for name in layer.weights)
    turned = layer.options.get("transposed")
    return layer.kind == "Linear" and not turned and not rounds


def _sizes(
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
    written = {
        e.value
        for s in statements
        for root in s.expressions()
        for e in walk(root)
        if isinstance(e, Literal) and type(e.value) is int and 1 < e.value < 4096
    }
    if len(names) <= 3:
        for size, name in product(sorted(written), names):
            yield plain | {name: size}


def _agreeing(
    statements: Sequence[Statement],
    inputs: Sequence[Value],
    outputs: Sequence[Value],
    layers: _Projections,
    sizes: dict[str, int],
) -> AttentionForm | None:
    """The call of the layer whose result equals the statements'."""
    rng = np.random.default_rng(0)
    modules = {
        id(e): nn.Linear(e.args[0], e.args[1], "bias" in e.weights)
        for e in (*layers.inward, layers.out)
    }
    for module in modules.values():
        for parameter in module.parameters():
            parameter.assign(_random(rng, parameter.shape) * 0.5)
    numbers: Numbers = {value: _input(rng, value, sizes) for value in inputs}
    found = run(statements, numbers, modules)
    wanted = [np.asarray(found[output].numpy()) for output in outputs]
    for way in _ways(statements, inputs, outputs, layers.width):
        layer = nn.MultiheadAttention(
            layers.width,
            way.num_heads,
            bias="bias" in layers.out.weights,
            batch_first=way.batch_first,
        )
        _fill(layer, [modules[id(e)] for e in layers.inward], modules[id(layers.out)])
        try:
            made = _called(layer, way, [numbers[value] for value in inputs])
        except (ValueError, IndexError, TypeError):
            continue
        results = [
            made[1 if place == way.weighs else 0] for place in range(len(wanted))
        ]
        if all(
            result.shape == want.shape
            and np.allclose(result, want, _CLOSE, _CLOSE, equal_nan=True)
            for result, want in zip(results, wanted, strict=True)
        ):
            return way
    return None


def _ways(
    statements: Sequence[Statement],
    inputs: Sequence[Value],
    outputs: Sequence[Value],
    width: int,
) -> Iterator[AttentionForm]:
    """Every way of calling the layer that inputs and results allow, likely first."""
    lasts = {t.shape[-1] for s in statements for t in s.targets if t.shape}
    heads = [
        width // d for d in lasts if isinstance(d, int) and d <= width and not width % d
    ]
    wide = [i for i, v in enumerate(inputs) if v.shape and v.shape[-1] == width]
    rest = [i for i in range(len(inputs)) if i not in wide]
    if len(rest) > 1 or not wide:
        return
    masks: list[tuple[int, str] | None] = [None]
    if rest:
        masks = [(rest[0], name) for name in ("attn_mask", "key_padding_mask")]
    weighs: list[int | None] = [*range(len(outputs))] if len(outputs) > 1 else [None]
    flips = [(False, False), (False, True), (True, False)]
    for mask, first, head, causal, place, order, flip in product(
        masks,
        (True, False),
        sorted(set(heads)),
        (False, True) if not rest else (False,),
        weighs,
        _orders(wide),
        flips if len(wide) > 1 else flips[:1],
    ):
        q, k, v = order
        given = ((q, flip[0]), (k, flip[1]), (v, flip[1]))
        yield AttentionForm(width, head, first, given, mask, causal, place)


def _orders(wide: list[int]) -> list[tuple[int, int, int]]:
    """Which inputs are query, key and value."""
    if len(wide) == 1:
        return [(wide[0],) * 3]
    if len(wide) == 2:
        return [(a, b, b) for a, b in (wide, wide[::-1])]
    a, b, c = wide[:3]
    return [(a, b, c), (a, c, b), (b, a, c), (b, c, a), (c, a, b), (c, b, a)]


def _called(
    layer: nn.MultiheadAttention, way: AttentionForm, given: list[Tensor]
) -> tuple[np.ndarray, np.ndarray]:
    q, k, v = (
        given[place].transpose(1, 0, 2) if flip else given[place]
        for place, flip in way.inputs
    )
    options: dict[str, Any] = {}
    if way.mask:
        options[way.mask[1]] = given[way.mask[0]]
    y, weights = layer(q, k, v, is_causal=way.is_causal, **options)
    assert weights is not None
    return y.numpy(), weights.numpy()


def _fill(
    layer: nn.MultiheadAttention, inward: list[nn.Module], out: nn.Module
) -> None:
    state = {f"out_proj.{name}": array for name, array in out.state_dict().items()}
    for name in inward[0].state_dict():
        parts = [part.state_dict()[name] for part in inward]
        state[f"in_proj_{name}"] = np.concatenate(parts)
    layer.load_state_dict(state)


def _input(rng: np.random.Generator, value: Value, sizes: dict[str, int]) -> Tensor:
    if value.host or value.shape is None or None in value.shape:
        raise Untried(value.hint)
    shape = [sizes[d] if isinstance(d, str) else d or 0 for d in value.shape]
    if value.dtype == "bool":
        masked = rng.random(shape) < 0.3
        masked[..., 0] = False
        return Tensor(masked)
    return Tensor(_random(rng, shape))


def _random(rng: np.random.Generator, shape: Sequence[int]) -> np.ndarray:
    return rng.normal(size=shape).astype(np.float32)
