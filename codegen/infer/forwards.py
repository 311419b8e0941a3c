"""Write the determined statements of a forward, and a method stub for each open step.

Weights show which layers a module has, never how they are connected. Certain are: a
Sequential, which runs in order; a list of equal blocks whose features fit; a BatchNorm
right behind its convolution; the projections around attention; the two halves of a
gated MLP. Every other step is an `nn.Unwritten` on a line of its own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from burnish.codegen.infer.parts import Part
from burnish.codegen.program import (
    Assign,
    BinOp,
    Block,
    Call,
    Expression,
    Literal,
    ModuleCall,
    SelfAttr,
    Statement,
    Value,
    called_in_turn,
)

_QKV = (
    ("q_proj", "k_proj", "v_proj"),
    ("query", "key", "value"),
    ("q", "k", "v"),
    ("q_lin", "k_lin", "v_lin"),
    ("to_q", "to_k", "to_v"),
    ("wq", "wk", "wv"),
)
_FUSED = ("c_attn", "qkv", "qkv_proj", "in_proj", "query_key_value", "to_qkv")
_SHORTCUT = re.compile("(conv_|nin_)?(shortcut|downsample|skip|residual)(_conv)?")
_GATED = (("gate_proj", "up_proj", "down_proj"), ("w1", "w3", "w2"))


@dataclass
class _Writer:
    """Statements so far; `x` is the result of the last one."""

    x: Expression
    statements: list[Statement] = field(default_factory=list)
    steps: int = 0

    def call(self, target: Expression, inputs: tuple[Expression, ...]) -> Value:
        made = Value("x")
        self.statements.append(Assign((made,), (), ModuleCall(target, inputs)))
        return made

    def step(self, words: tuple[str, ...], inputs: tuple[Expression, ...]) -> None:
        """A line that the author has to write."""
        self.steps += 1
        self.x = self.call(Call("nn.Unwritten", (Literal(words),)), inputs)


def forward(
    parts: Mapping[str, Part], bare: list[str], is_model: bool
) -> tuple[list[Value], Block]:
    """Inputs and body of a class with these attributes.

    bare: its own parameters. is_model: what its last layer gives is the result.
    """
    x = Value("inputs" if is_model else "x")
    writer = _Writer(x)
    if bare:
        own = tuple(SelfAttr((name,)) for name in bare)
        writer.step(("use", *bare), (x, *own))
    special = not bare and (_attention(writer, parts) or _gated(writer, parts))
    if not special:
        main = {name: p for name, p in parts.items() if not _is_shortcut(name, parts)}
        _in_order(writer, main)
        if not is_model and (not writer.steps or _ends_open(main)):
            beside = [SelfAttr((name,)) for name in parts if name not in main]
            passed = writer.call(beside[0], (x,)) if beside else x
            if not _wraps(parts):
                last = list(main)[-1] if main else ""
                writer.step(("after", last), (writer.x, passed))
    return [x], Block(writer.statements, [writer.x])


def _is_shortcut(name: str, parts: Mapping[str, Part]) -> bool:
    """Whether a module brings what came in to where it is added."""
    named = [n for n in parts if _SHORTCUT.fullmatch(n) and parts[n].form == "module"]
    return named[:1] == [name] and len(parts) > 1


def _ends_open(parts: Mapping[str, Part]) -> bool:
    """Whether the last module is a norm, behind which blocks add what came in."""
    leaf = parts[list(parts)[-1]].leaf if parts else None
    return leaf is not None and leaf.kind.startswith("BatchNorm")


def _wraps(parts: Mapping[str, Part]) -> bool:
    """Whether it only holds one block, or a list of them."""
    return len(parts) == 1 and all(part.leaf is None for part in parts.values())


def _in_order(writer: _Writer, parts: Mapping[str, Part]) -> None:
    """The attributes one after another, as the file has them."""
    before = ""
    tables = [name for name, part in parts.items() if _is_table(part)]
    if len(tables) > 1:
        parts = {name: part for name, part in parts.items() if name not in tables}
        writer.step(("tables", *tables), (writer.x,))
    for name, part in parts.items():
        own = SelfAttr((name,))
        if part.form == "loose":
            writer.step(("loose", before, name), (writer.x,))
            before = name
            continue
        if before and not _follows(parts[before], part):
            writer.step(("between", before, name), (writer.x,))
        if part.form == "chain":
            _loop(writer, own, name)
        elif part.results > 1:
            inputs = (writer.x,) * part.inputs
            made = Value("x"), Value("_")
            writer.statements.append(Assign(made, (), ModuleCall(own, inputs)))
            writer.x = made[0]
        else:
            writer.x = writer.call(own, (writer.x,) * part.inputs)
        before = name


def _is_table(part: Part) -> bool:
    return part.leaf is not None and part.leaf.kind == "Embedding"


def _follows(one: Part, other: Part) -> bool:
    """Whether a BatchNorm directly follows its convolution or Linear."""
    if one.leaf is None or other.leaf is None:
        return False
    norm = other.leaf.kind.startswith("BatchNorm")
    return norm and "Norm" not in one.leaf.kind and one.gives == other.takes


def _loop(writer: _Writer, own: SelfAttr, name: str) -> None:
    end = Value("x")
    item = Value(_item(name))
    writer.statements.append(called_in_turn(own, item, (writer.x,), 0, end))
    writer.x = end


def _item(name: str) -> str:
    return "block" if "block" in name or name == "h" else "layer"


def _attention(writer: _Writer, parts: Mapping[str, Part]) -> bool:
    """Input and output projections, with a stub for the step between."""
    names = list(parts)
    if any(part.leaf is None for part in parts.values()):
        return False
    known: list[tuple[str, ...]] = [*_QKV, *((name,) for name in _FUSED)]
    found = next((some for some in known if set(some) <= parts.keys()), None)
    rest = [name for name in names if name not in (found or ())]
    if found is None or len(rest) > 1:
        return False
    inputs = tuple(writer.call(SelfAttr((name,)), (writer.x,)) for name in found)
    writer.step(("attention", *found), inputs)
    if rest:
        writer.x = writer.call(SelfAttr((rest[0],)), (writer.x,))
    return True


def _gated(writer: _Writer, parts: Mapping[str, Part]) -> bool:
    """down(activation(gate(x)) * up(x)), where the activation is the step."""
    found = next((names for names in _GATED if set(names) == parts.keys()), None)
    if found is None or any(part.leaf is None for part in parts.values()):
        return False
    gate, up, down = found
    x = writer.x
    opened = writer.call(SelfAttr((gate,)), (x,))
    writer.step(("activation", gate), (opened,))
    product = Value("x")
    widened = ModuleCall(SelfAttr((up,)), (x,))
    writer.statements.append(Assign((product,), (), BinOp("*", writer.x, widened)))
    writer.x = writer.call(SelfAttr((down,)), (product,))
    return True
