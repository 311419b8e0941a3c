"""Motifs: blocks that are recognized by their data flow, without repetition.

squeeze-and-excitation   x * gate(layers(pool(x)))
convolution block        a convolution, its batch norm, and the activation behind that
separable convolution    depthwise and pointwise blocks in a row, with an expansion or
                         squeeze-and-excitation among them
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

from burnish.codegen.arrange.recover.excitation import excitations
from burnish.codegen.arrange.recover.layer_roles import is_conv
from burnish.codegen.arrange.recover.segments import (
    Segment,
    absorbed,
    dense,
    expression,
    layers_of,
    on_host,
)
from burnish.codegen.arrange.scopes.group_kind import conv_word
from burnish.codegen.ops import Trait, functions
from burnish.codegen.program import Flow, Layer, Level, Statement, callee

_ACTIVATIONS = functions(Trait.ACTIVATION) | {"ops.sigmoid", "ops.tanh"}
_COUNTED = re.compile(r"conv\d*")
#: Layers of a separable convolution, and with the expansion of an inverted residual.
_SEPARABLE = (
    ("point", "depth", "excite", "point"),
    ("point", "depth", "point"),
    ("depth", "excite", "point"),
    ("depth", "point"),
)
_BLOCKS = 4
"""Convolutions with norms, outside of modules, that are worth a class of their own."""


def conv_block(statement: Statement, flow: Flow) -> list[Statement]:
    """The convolution with its batch norm and activation; [] where it has no norm."""
    layer = expression(statement)
    if not isinstance(layer, Layer) or not is_conv(layer):
        return []
    norm = flow.only_reader(statement)
    if norm is None or not _is_batch_norm(norm):
        return []
    act = flow.only_reader(norm)
    if act is None or callee(expression(act)) not in _ACTIVATIONS:
        return [statement, norm]
    return [statement, norm, act]


def all_blocks(statements: Sequence[Statement], flow: Flow) -> list[list[Statement]]:
    """The convolution blocks that hold all layers there are; [] where they are few."""
    found = [block for s in statements if (block := conv_block(s, flow))]
    are_all = len(found) == sum(map(dense, statements))
    return found if are_all and are_several(found) else []


def are_several(blocks: Sequence[object]) -> bool:
    """Whether a class is worth it for so many convolution blocks."""
    return len(blocks) >= _BLOCKS


def block_kind(block: Sequence[Statement]) -> str:
    """The class of a convolution block: "ConvBNReLU", "ConvTransposeBN"."""
    layer = layers_of(block[0])[0]
    activation = callee(expression(block[-1])) or None
    return conv_word(layer.kind, has_norm=True, activation=activation)


def with_norms(segments: Iterable[Segment]) -> list[Segment]:
    """A batch norm of its own belongs to the convolution right before it."""
    return absorbed(
        segments,
        lambda before, segment: (
            _is_batch_norm(segment.statements[0])
            and not segment.weight
            and sum(map(dense, before.statements)) == 1
            and any(map(is_conv, layers_of(before.statements[-1])))
        ),
    )


def joined(segments: Sequence[Segment], flow: Flow) -> list[Segment]:
    """Depthwise and pointwise convolutions in a row are one segment."""
    words = [_word(segment, flow) for segment in segments]
    made: list[Segment] = []
    place = 0
    while place < len(segments):
        length = next(
            (
                len(word)
                for word in _SEPARABLE
                if tuple(words[place : place + len(word)]) == word
                and _is_row(segments[place : place + len(word)], flow)
            ),
            1,
        )
        part = segments[place : place + length]
        made.append(part[0] if length == 1 else _one(part))
        place += length
    return made


def _one(part: Sequence[Segment]) -> Segment:
    statements = [s for segment in part for s in segment.statements]
    weight = sum(segment.weight for segment in part)
    return Segment(statements, part[0].entry, part[-1].exit, weight)


def _is_row(part: Sequence[Segment], flow: Flow) -> bool:
    """Whether each but the last is read by the next one alone."""
    for segment, after in pairwise(part):
        inside = set(after.statements)
        end = segment.exit
        if end is None or end in flow.results:
            return False
        if any(s not in inside for s in flow.readers.get(end, ())):
            return False
    return True


def _word(segment: Segment, flow: Flow) -> str:
    """What a segment is in a separable convolution; "" for other things."""
    heavy = [s for s in segment.statements if dense(s)]
    if excited := excitations(segment.statements, flow):
        inside = {s for each in excited for s in each}
        rest = [s for s in segment.statements if s not in inside]
        return "excite" if len(excited) == 1 and not any(map(dense, rest)) else ""
    layers = [e for s in heavy for e in layers_of(s)]
    if len(layers) != 1 or len(heavy) != 1 or not layers[0].kind.startswith("Conv2d"):
        return ""
    if not _is_chain(segment, flow):
        return ""
    channels, *_ = layers[0].args
    if layers[0].options.get("groups", 1) == channels != 1:
        return "depth"
    kernel = layers[0].args[2]
    one = kernel == 1 or (isinstance(kernel, tuple) and set(kernel) == {1})
    return "point" if one and "groups" not in layers[0].options else ""


def _is_chain(segment: Segment, flow: Flow) -> bool:
    """Whether each statement reads one value: no sum with what was before."""
    return all(
        len([v for v in flow.reads[s] if not v.host]) == 1
        for s in segment.statements
        if not on_host(s)
    )


def _is_batch_norm(statement: Statement) -> bool:
    made = expression(statement)
    return isinstance(made, Layer) and made.kind.startswith("BatchNorm")


def count_blocks(statements: Sequence[Statement], names: dict[int, str]) -> None:
    """Count blocks of one convolution and convolutions beside them together."""
    found: dict[Level | int, None] = {}
    for statement in statements:
        if len(statement.scope) == 1 and _COUNTED.fullmatch(statement.scope[0].name):
            found.setdefault(statement.scope[0])
        elif not statement.scope:
            layers = [id(layer) for layer in layers_of(statement)]
            found.update(
                (n, None) for n in layers if _COUNTED.fullmatch(names.get(n, ""))
            )
    if not any(isinstance(each, Level) for each in found) or len(found) < 2:
        return
    levels: dict[Level, Level] = {}
    for number, each in enumerate(found, 1):
        if isinstance(each, Level):
            levels[each] = replace(each, name=f"conv{number}")
        else:
            names[each] = f"conv{number}"
    for statement in statements:
        if statement.scope and statement.scope[0] in levels:
            statement.scope = (levels[statement.scope[0]], *statement.scope[1:])
