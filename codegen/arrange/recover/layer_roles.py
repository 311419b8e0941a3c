"""Roles of statement groups and of the layers in them: attention, MLP, q_proj, down."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence

from burnish.codegen.arrange.recover.excitation import EXCITE, excitations
from burnish.codegen.arrange.recover.segments import dense, expression, layers_of
from burnish.codegen.arrange.scopes.group_kind import given_name, without_rank
from burnish.codegen.arrange.scopes.grouping import is_rounding
from burnish.codegen.ops import Trait, functions
from burnish.codegen.program import (
    BinOp,
    Call,
    Expression,
    Flow,
    Layer,
    Statement,
    Value,
    callee,
)

_ATTENTION = "ops.scaled_dot_product_attention"
_GATES = functions(Trait.ACTIVATION)
_BASES = {
    "Linear": "linear",
    "Conv": "conv",
    "ConvTranspose": "up",
    "BatchNorm": "bn",
    "Embedding": "embed",
}
INCEPTION = "Inception"
_BRANCHES = 3
"""So many in an inception module; two tensors are joined in others, too."""
SEPARABLE_KINDS = ("InvertedResidual", "SeparableConv")
"""Blocks of a depthwise and a pointwise convolution, with an expansion or without."""


class Roles:
    """Reads roles off the data flow."""

    def __init__(self, flow: Flow):
        self.flow = flow

    # --- kinds of groups ---

    def attentions(self, statements: Sequence[Statement]) -> list[Statement]:
        """The statements that weigh values by scores."""
        inside = set(map(id, statements))
        found = []
        for statement in statements:
            called = callee(expression(statement))
            weighs = (
                called == "ops.softmax"
                and self._product_before(statement, inside)
                and self._product_behind(statement, inside)
            )
            if called == _ATTENTION or weighs:
                found.append(statement)
        return found

    def kind(self, statements: Sequence[Statement]) -> str:
        """A class name from the layers and operators inside."""
        attentions = self.attentions(statements)
        convs = [e for s in statements for e in layers_of(s) if is_conv(e)]
        count = sum(map(dense, statements))
        if excited := excitations(statements, self.flow):
            inside = {s for each in excited for s in each}
            rest = [s for s in statements if s not in inside]
            return self.kind(rest) if any(map(dense, rest)) else EXCITE
        if attentions:
            if len(attentions) > 1:
                return "DecoderLayer"
            own = self._attention_layers(attentions[0], set(map(id, statements)))
            return "EncoderLayer" if count - len(own) >= 2 else "Attention"
        if len(convs) >= 2:
            kind = _conv_kind(convs, _sums(statements))
            return (
                INCEPTION if kind == "ConvBlock" and self._joins(statements) else kind
            )
        linears = [e for s in statements for e in layers_of(s) if e.kind == "Linear"]
        return "MLP" if count == len(linears) > 1 else "Block"

    def _joins(self, statements: Sequence[Statement]) -> bool:
        """Whether three or more branches end in one tensor, side by side."""
        inside = set(map(id, statements))
        joined = callee(expression(statements[-1])) == "ops.concat"
        makers = self.flow.makers(statements[-1])
        return joined and sum(id(maker) in inside for maker in makers) >= _BRANCHES

    def part(self, statements: Sequence[Statement]) -> str:
        """The attribute of a group on one branch of a residual sum."""
        kind = self.kind(statements)
        return {"Attention": "attention", "MLP": "mlp"}.get(kind, "block")

    # --- what its layers do ---

    def names(self, statements: Sequence[Statement]) -> dict[int, str]:
        """A name for each layer of one class, by the layer's id."""
        inside = set(map(id, statements))
        names: dict[int, str] = {}
        for statement in self.attentions(statements):
            self._attention_names(statement, inside, names)
        gate = self._gate(statements) or ()
        for layer, word in zip(gate, ("gate", "up", "down"), strict=False):
            names.setdefault(id(layer), word)
        for layer in self._shortcuts(statements):
            names.setdefault(id(layer), "downsample")
        for number, group in self._by_base(statements, names).items():
            several = len(group) > 1
            for place, layer in enumerate(group, 1):
                names[id(layer)] = f"{number}{place}" if several else number
        return names

    def _shortcuts(self, statements: Sequence[Statement]) -> Iterable[Layer]:
        """Convolutions of size 1 on the short way round a residual block."""
        convs = [s for s in statements if any(map(is_conv, layers_of(s)))]
        for statement in convs:
            read = [v for v in self.flow.reads[statement] if not v.host]
            beside = [s for s in convs if s is not statement]
            shared = any(set(read) & set(self.flow.reads[s]) for s in beside)
            ends = [expression(reader) for reader in self.flow.readers_of(statement)]
            adds = all(isinstance(e, BinOp) and e.operator == "+" for e in ends)
            if shared and ends and adds:
                yield from (c for c in layers_of(statement) if _is_small(c))

    def _by_base(
        self, statements: Sequence[Statement], named: dict[int, str]
    ) -> dict[str, list[Layer]]:
        found: dict[str, list[Layer]] = {}
        for statement in statements:
            for layer in layers_of(statement):
                is_named = id(layer) in named or given_name(layer)
                if not is_named and layer.weights and not is_rounding(layer):
                    found.setdefault(self._base(layer), []).append(layer)
        return found

    def _base(self, layer: Layer) -> str:
        kind = without_rank(layer.kind)
        if kind == "Embedding" and not layer.inputs:
            return "type_embed"  # one row of it for all
        if kind == "Embedding" and not self._from_input(layer.inputs[0]):
            return "position_embed"
        return _BASES.get(kind, "norm" if kind.endswith("Norm") else kind.lower())

    def _from_input(self, index: Expression) -> bool:
        """Whether an index is an input, not a range of positions."""
        while isinstance(index, Value):
            maker = self.flow.maker.get(index)
            if maker is None:
                return True
            read = [v for v in self.flow.reads[maker] if not v.host]
            if len(read) != 1:
                return False
            index = read[0]
        return False

    def _attention_layers(self, attention: Statement, inside: set[int]) -> set[int]:
        """The dense statements that are the attention's own."""
        ends, behind = self._ends(attention, inside)
        own = {id(s) for end in ends for s in self._dense_before(end, inside)}
        return own | {id(s) for s in self._dense_behind(behind, inside)}

    def _ends(
        self, attention: Statement, inside: set[int]
    ) -> tuple[list[Expression], Statement]:
        """Queries, keys and values, and the statement that weighs the values."""
        made = expression(attention)
        assert isinstance(made, Call)
        if made.function == _ATTENTION:
            return list(made.args[:3]), attention
        before = self._product_before(attention, inside) or attention
        behind = self._product_behind(attention, inside) or attention
        match expression(before), expression(behind):
            case BinOp(left=queries, right=keys), BinOp(right=values):
                return [queries, keys, values], behind
        return [], attention

    def _attention_names(
        self, attention: Statement, inside: set[int], names: dict[int, str]
    ) -> None:
        ends, behind = self._ends(attention, inside)
        found = [self._layers_before(end, inside) for end in ends]
        if ends and all(len(each) == 1 for each in found):
            makers = [each[0] for each in found]
            same = len(set(map(id, makers))) == 1
            words = ("qkv",) * 3 if same else ("query", "key", "value")
            if len({*map(id, makers)}) in (1, 3):
                for layer, word in zip(makers, words, strict=True):
                    names.setdefault(id(layer), word)
        for layer in self._layers_behind(behind, inside):
            names.setdefault(id(layer), "output")

    def _product_before(self, softmax: Statement, inside: set[int]) -> Statement | None:
        """The scores' product, through masks and scales."""
        return _product(softmax, inside, self.flow.makers, 12)

    def _product_behind(self, softmax: Statement, inside: set[int]) -> Statement | None:
        return _product(softmax, inside, self.flow.readers_of, 8)

    def _layers_before(self, end: Expression, inside: set[int]) -> list[Layer]:
        """The nearest layers that a value comes from."""
        return [e for s in self._dense_before(end, inside) for e in layers_of(s)]

    def _layers_behind(self, start: Statement, inside: set[int]) -> list[Layer]:
        """The nearest layer that a statement's result goes to."""
        return [e for s in self._dense_behind(start, inside) for e in layers_of(s)]

    def _dense_before(self, end: Expression, inside: set[int]) -> list[Statement]:
        """The nearest dense statements that a value comes from."""
        found: list[Statement] = []
        waiting, seen = [end], set()
        while waiting:
            value = waiting.pop()
            maker = self.flow.maker.get(value) if isinstance(value, Value) else None
            if maker is None or id(maker) not in inside or id(maker) in seen:
                continue
            seen.add(id(maker))
            if dense(maker):
                found.append(maker)
            else:
                waiting += [v for v in self.flow.reads[maker] if not v.host]
        return found

    def _dense_behind(self, start: Statement, inside: set[int]) -> list[Statement]:
        """The nearest dense statement that a statement's result goes to."""
        waiting, seen = deque([start]), set()
        while waiting:
            statement = waiting.popleft()
            if id(statement) in seen or id(statement) not in inside:
                continue
            seen.add(id(statement))
            if dense(statement) and statement is not start:
                return [statement]
            for target in statement.targets:
                if not target.host:
                    waiting += self.flow.readers.get(target, ())
        return []

    # --- gated MLPs: down(act(gate(x)) * up(x)) ---

    def _gate(
        self, statements: Sequence[Statement]
    ) -> tuple[Layer, Layer, Layer] | None:
        inside = set(map(id, statements))
        for statement in statements:
            made = expression(statement)
            if not isinstance(made, BinOp) or made.operator != "*":
                continue
            for one, other in ((made.left, made.right), (made.right, made.left)):
                act = self.flow.maker.get(one) if isinstance(one, Value) else None
                call = expression(act) if act is not None else None
                if not isinstance(call, Call) or call.function not in _GATES:
                    continue
                match (
                    self._layers_before(call.args[0], inside),
                    self._layers_before(other, inside),
                    self._layers_behind(statement, inside),
                ):
                    case [gate], [up], [down]:
                        kinds = {gate.kind, up.kind, down.kind}
                        alone = len({id(gate), id(up), id(down)}) == 3
                        if alone and kinds == {"Linear"}:
                            return gate, up, down
        return None


def _product(
    start: Statement,
    inside: set[int],
    near: Callable[[Statement], Iterable[Statement]],
    steps: int,
) -> Statement | None:
    """The first product of two computed values that is reached from a statement."""
    waiting = [start]
    for _ in range(steps):
        if not waiting:
            return None
        for statement in near(waiting.pop(0)):
            if id(statement) not in inside or dense(statement):
                continue
            made = expression(statement)
            if isinstance(made, BinOp) and made.operator == "@":
                return statement
            waiting.append(statement)
    return None


def is_conv(layer: Layer) -> bool:
    return layer.kind.startswith("Conv")


def _is_small(layer: Layer) -> bool:
    return layer.args[2:3] in ((1,), ((1, 1),))


def _sums(statements: Sequence[Statement]) -> bool:
    made = map(expression, statements)
    return any(isinstance(e, BinOp) and e.operator == "+" for e in made)


def _conv_kind(convs: Sequence[Layer], sums: bool) -> str:
    grouped = Counter(bool(c.options.get("groups", 1) != 1) for c in convs)
    if grouped[True]:
        expands = len(convs) > 2 and not convs[0].options.get("groups")
        return SEPARABLE_KINDS[0 if expands else 1]
    if not sums:
        return "DoubleConv" if len(convs) == 2 else "ConvBlock"
    wide = [c for c in convs if not _is_small(c)]
    return "Bottleneck" if len(wide) == 1 and len(convs) > 2 else "BasicBlock"
