"""Recognize `nn.MultiheadAttention` by running a group and the layer on sampled inputs.

Exporters write its projections, heads and views in a dozen ways. What a group computes
is compared with the layer's own result on random numbers, in the layouts and with the
masks that the layer takes; only where they agree does the group become the layer, with
the parameters' own names. The evidence is empirical: several draws of several sizes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import permutations, product

import numpy as np

from burnish.codegen.arrange.classes.as_layer import Submodule
from burnish.codegen.arrange.classes.attention_trial import (
    AttentionForm,
    MaskForm,
    Projections,
    agreeing,
    has_far_bounds,
    sizes_to_try,
)
from burnish.codegen.arrange.classes.interpreter import Untried
from burnish.codegen.arrange.classes.members import WeightPath
from burnish.codegen.program import (
    Assign,
    BinOp,
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
    every_expression,
)

_HALF = np.finfo(np.float16)
_OF_KERAS = frozenset(("attention_output", "key", "query", "value"))


def multihead(
    statements: Sequence[Statement], inputs: Sequence[Value], outputs: Sequence[Value]
) -> AttentionForm | None:
    """How the statements are called as the layer, if they are one."""
    layers = _projections(statements)
    if layers is None or len(outputs) > 2 or not 1 <= len(inputs) <= 4:
        return None
    if has_far_bounds(statements):
        return None
    if layers.out.weights["weight"].dtype == "float16":
        statements = [statement.rebuilt(_unrounded) for statement in statements]
    orders = [*permutations(range(len(layers.inward)))]
    for sizes, order in product(sizes_to_try(statements, inputs), orders):
        ordered = layers.ordered(order)
        if ordered.widths[0] != layers.width:
            continue
        try:
            found = agreeing(statements, inputs, outputs, ordered, sizes)
        except Untried:
            return None
        except (ValueError, IndexError, TypeError, KeyError):
            continue  # not at these sizes
        if found is not None:
            return replace(found, order=order)
    return None


def _unrounded(expression: Expression) -> Expression:
    """An expression whose scale of scores is not rounded to half precision.

    Each factor of queries and keys may be its root: size**-0.5 or size**-0.25.
    """
    if isinstance(expression, Layer):
        return expression
    if not isinstance(expression, Literal) or type(expression.value) is not float:
        return expression.rebuilt(_unrounded)
    for root in (0.5, 0.25):
        scale = abs(expression.value)
        size = round(scale ** (-1 / root)) if _HALF.tiny < scale < 1 else 1
        if size > 1 and math.isclose(scale, size**-root, rel_tol=_HALF.eps):
            return replace(
                expression, value=math.copysign(size**-root, expression.value)
            )
    return expression


@dataclass(kw_only=True)
class Attention(Submodule):
    """A group that is the layer."""

    found: AttentionForm

    def calls(self, own: Expression) -> list[Statement]:
        """`self.attention(x, x, x, need_weights=False)[0]`"""
        found, outputs = self.found, self.outputs
        transposed: dict[int, Value] = {}
        statements: list[Statement] = []
        inputs: list[Expression] = []
        for place, flip in found.inputs:
            given = self.inputs[place]
            if flip and place not in transposed:
                t, n, e = given.shape or (None,) * 3
                transposed[place] = Value("", given.dtype, (n, t, e))
                axes = (Literal(1), Literal(0), Literal(2))
                made = Method(given, "transpose", axes)
                statements.append(Assign((transposed[place],), (), made))
            inputs.append(transposed[place] if flip else given)
        options: list[tuple[str, Expression]] = []
        if found.mask:
            options.append((found.mask.argument, self._mask(found.mask)))
        if found.is_causal:
            options.append(("is_causal", Literal(True)))
        if found.weighs is None:
            options.append(("need_weights", Literal(False)))
        call = ModuleCall(own, tuple(inputs), tuple(options))
        if found.weighs is None:
            return [*statements, Assign(outputs, (), Subscript(call, (Literal(0),)))]
        both = (outputs[1 - found.weighs], outputs[found.weighs])
        return [*statements, Assign(both, (), call)]

    def _mask(self, form: MaskForm) -> Expression:
        """The input as it is, or as numbers to add: `mask.to("float32") * -1e4`."""
        given = self.inputs[form.place]
        if form.low is None:
            return given
        numbers = Method(given, "to", (Literal(self.weights[0][1].dtype),))
        return BinOp("*", numbers, Literal(form.low))


def attention(
    statements: Sequence[Statement],
    inputs: Sequence[Value],
    outputs: Sequence[Value],
    found: AttentionForm,
) -> Attention:
    """The statements as the layer that they were found to be."""
    weights = weights_of(statements, found.order)
    options: list[tuple[str, Expression]] = []
    if "in_proj_bias" not in dict(weights):
        options.append(("bias", Literal(False)))
    for name in ("k", "v"):
        own = dict(weights).get(f"{name}_proj_weight")
        if own is not None and own.shape[1] != found.embed_dim:
            options.append((f"{name}dim", Literal(own.shape[1])))
    if found.batch_first:
        options.append(("batch_first", Literal(True)))
    dtype = next(iter(dict(weights).values())).dtype
    if dtype != "float32":
        options.append(("dtype", Literal(dtype)))
    sizes = (Literal(found.embed_dim), Literal(found.num_heads))
    made = Call("nn.MultiheadAttention", sizes, tuple(options))
    inside = set(statements)
    given, results = tuple(inputs), tuple(outputs)
    return Attention(made, weights, given, results, inside, found=found)


def weights_of(
    statements: Sequence[Statement], order: Sequence[int]
) -> list[WeightPath]:
    """The parameters of the group under the layer's names for them."""
    projections = _projections(statements)
    assert projections is not None
    layers = projections.ordered(order)
    weights = [e.weights["weight"] for e in layers.inward]
    found = [("in_proj_weight", _stacked(weights))]
    if len({*layers.widths}) > 1:
        names = (f"{part}_proj_weight" for part in "qkv")
        found = [*zip(names, weights, strict=True)]
    out = dict(layers.out.weights)
    if layers.has_bias:
        biases = _stacked([e.weights["bias"] for e in layers.inward])
        found.append(("in_proj_bias", biases))
        out.setdefault("bias", _zeros(biases, layers.width))
    return [*found, *((f"out_proj.{n}", w) for n, w in out.items())]


def _zeros(like: Weight, width: int) -> Weight:
    """The bias behind attention that an exporter dropped because it is zero."""
    dtype = like.dtype
    path = like.path.replace("in_proj_bias", "out_proj.bias")
    return Weight(path, dtype, (width,), lambda: np.zeros(width, dtype))


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


def _projections(statements: Sequence[Statement]) -> Projections | None:
    """Linear layers whose rows are 3 * embed_dim in all, and one behind them.

    Three of them may take other widths than embed_dim: keys and values do.
    """
    every = (e for s in statements for e in every_expression(s))
    found = [e for e in every if isinstance(e, Layer)]
    if not 2 <= len(found) <= 4 or not all(map(_fits, found)):
        return None
    *inward, out = found
    width = out.args[0]
    rows = [e.args[1] for e in inward]
    square = all(e.args[0] == width for e in inward) or rows == [width] * 3
    if not square or out.args[1] != width or sum(rows) != 3 * width:
        return None
    if len(rows) == 2 and rows[0] != width:
        return None
    biases = {"bias" in e.weights for e in inward}
    if len(biases) > 1 or ("bias" in out.weights and biases != {True}):
        return None
    return Projections(tuple(inward), out)


def _fits(layer: Layer) -> bool:
    """Whether its weight can be rows of the attention's own, (out, in).

    What rounds its input is a layer of its own: the attention's would round once for
    all of them.
    """
    rounds = any(name.startswith("on_input") for name in layer.weights)
    transposed = layer.options.get("transposed")
    return layer.kind == "Linear" and not transposed and not rounds
