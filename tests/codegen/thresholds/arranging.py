"""Thresholds of arranging: structure, members, buffers and hyperparameters."""

from __future__ import annotations

import re

import numpy as np

from burnish.codegen.arrange.classes.bind import handed_of
from burnish.codegen.arrange.classes.branches import are_twins
from burnish.codegen.arrange.classes.buffer_init import start
from burnish.codegen.arrange.classes.members import is_mask
from burnish.codegen.arrange.hyperparams.scales import scaled
from burnish.codegen.arrange.hyperparams.size_classes import Product, Ties
from burnish.codegen.arrange.hyperparams.transfer_rules import reshaped
from burnish.codegen.arrange.recover.layer_roles import Roles
from burnish.codegen.arrange.recover.segments import Segment
from burnish.codegen.arrange.recover.units import Unit, _saved
from burnish.codegen.program import (
    Assign,
    BinOp,
    Block,
    Call,
    ClassPlan,
    Flow,
    If,
    Level,
    Literal,
    Name,
    Value,
    Weight,
)
from tests.codegen.arrange.test_attention_trial import recognized
from tests.codegen.thresholds.programs import (
    Step,
    Threshold,
    chain,
    embeddings,
    images,
    plain,
    source,
)
from tests.harness.program_text import parsed

_JOINED = """\
weight u "": float32[4, 4, 1, 1]
weight v "": float32[4, 4, 1, 1]
weight w "": float32[4, 4, 1, 1]
input x: float32[batch, 4, h, w]
c: float32[batch, 4, h, w] = nn.Conv2d(4, 4, 1, bias=False, weight=u)(x)
a: float32[batch, 4, h, w] = nn.Conv2d(4, 4, 1, bias=False, weight=v)(c)
b: float32[batch, 4, h, w] = nn.Conv2d(4, 4, 1, bias=False, weight=w)(x)
y: float32[batch, 8, h, w] = ops.concat([a, b], axis=1)
return y
output "y": float32[batch, 8, h, w]
"""


def _kind(text: str) -> str:
    """The name of a class of all of a program's statements."""
    body = parsed(text).body
    return Roles(Flow(body)).kind(body.statements)


_MLP: list[Step] = [("a", 4, 6), "ops.tanh({x})", ("b", 6, 4), "ops.sin({x})"]
_SMALL: list[Step] = [("a", 4, 4), "ops.tanh({x})", "ops.sin({x})", "ops.exp({x})"]
_GATE = ("ops.relu({x})", "{x}.mean((2, 3), keepdim=True)", "conv", "ops.relu({x})")


def _one_named() -> str:
    """Four blocks without scopes, of whose layers a tool has named one."""
    return chain(*[_MLP] * 4, scope="").replace("(x)\n", "(x)  # trunk.fc\n", 1)


def _few_bare() -> str:
    """Three blocks without scopes behind layers that have names."""
    named = chain([("a", 4, 4), ("b", 4, 4)], scope="trunk:Trunk")
    named = re.sub(r"\b([vw])(\d)", r"\g<1>9\2", named)
    *head, first, second, _, _ = named.splitlines()
    weights, body = chain(*[_MLP] * 3, scope="").split("input x", 1)
    made, rest = body.split("\n", 1)
    bare = rest.replace("(x)\n", "(v92)\n", 1)
    return "\n".join([weights, *head[:2], f"input x{made}", first, second, bare])


def _two_heads() -> str:
    """Two equal branches without scopes that read one value."""
    steps: list[Step] = [*_MLP, "ops.sin({x})", "ops.exp({x})", "ops.neg({x})"]
    text = chain([("a", 4, 4), "ops.relu({x})"], steps, steps, scope="")
    first, second = 2 + len(steps), 2 + 2 * len(steps)
    text = text.replace(f"(v{first})\n", "(v2)\n", 1)
    made, end = text.split(f"return v{second}")
    both = f"y: float32[batch, 4] = ops.maximum(v{first}, v{second})"
    return f"{made}{both}\nreturn y{end}"


def _buffer(*numbers: float) -> Weight:
    array = np.array(numbers, np.float32)
    return Weight("table", "float32", array.shape, lambda: array, trained=False)


def _handed_tables() -> bool:
    """Whether a module's two calls are given their tables of 65 numbers."""

    def call(number: float) -> Assign:
        table = _buffer(*[number] * 65)
        return Assign((Value(),), (Level("f", call=int(number)),), table)

    return bool(handed_of(map(call, (0, 1))))


def _starts_as(function: str, *numbers: float) -> bool:
    made = start(_buffer(*numbers))
    name = made.function if isinstance(made, Call) else str(made)
    return function in name


def _one_layer_branches() -> bool:
    layers = parsed(chain([("a", 4, 4), ("b", 4, 4)], scope="")).body.statements
    blocks = [Block([layer], [*layer.targets]) for layer in layers]
    return are_twins(If((), (), Literal(True), *blocks))


def _normed() -> str:
    """A norm between two layers."""
    x: list[Step] = [("a", 6, 8), "nn.LayerNorm(8, weight=g, bias=b)({x})", ("c", 8, 6)]
    weights = [f'weight {name} "blocks.0.{name}": float32[8]' for name in "gb"]
    return "\n".join([*weights, chain(x, width=6)])


def _split_first(*sizes: int) -> bool:
    """Whether the first of three sizes of a split is taken for a number of heads."""
    ties = Ties({})
    whole = ties.new(int(np.prod(sizes)))
    reshaped(ties, [whole], [ties.new(size) for size in sizes])
    product: Product = ties.products[0]
    return ties.of(product.factors[0]) == sizes[0]


def _scaled_by(number: float) -> bool:
    """Whether a factor of values so wide is written as a power of the width."""
    x = Value("x", "float32", ("batch", 9))
    made = BinOp("*", x, Literal(number))
    block = Block([Assign((Value("y", "float32", x.shape),), (), made)], [])
    plan = ClassPlan("Model", [], [x], block)
    return "dim" in str(scaled(block, plan, {"dim": 9}, Name).statements)


def _saves() -> bool:
    """Whether a class for two statements, found twice, is worth it."""
    return _saved([Unit(0, [Segment(plain(2))]), Unit(1, [Segment(plain(2))])]) > 0


ARRANGING = (
    # --- structure without scopes ---
    Threshold(
        "arrange.pipeline._FEW",
        100,
        "one name that a tool left as the structure of the model",
        lambda: "class MLP" not in source(_one_named()),
    ),
    Threshold(
        "arrange.recover.beside._BESIDE",
        4,
        "classes of a few layers beside an author's modules",
        lambda: "class MLP" in source(_few_bare()),
    ),
    Threshold(
        "arrange.recover.units.LEAST",
        1,
        "a class around a single layer",
        lambda: "class Block" in source(chain(*[_SMALL * 2] * 3, scope="")),
    ),
    Threshold(
        "arrange.recover.units._LEAST_BRANCHES",
        2,
        "a list of the two heads of a model",
        lambda: "self.blocks" in source(_two_heads()),
    ),
    Threshold(
        "arrange.recover.motifs._BLOCKS",
        2,
        "a class for three convolutions with norms",
        lambda: "class ConvBN" in source(images(*["conv", "norm"] * 3)),
    ),
    Threshold(
        "arrange.recover.units._CLASS",
        0,
        "a class whose own lines are more than those that it saves",
        _saves,
    ),
    Threshold(
        "arrange.recover.layer_roles._BRANCHES",
        2,
        "a convolution block of two branches as Inception",
        lambda: _kind(_JOINED) == "Inception",
    ),
    Threshold(
        "arrange.recover.excitation._EXCITING",
        3,
        "any product with a network of pooled values as SqueezeExcite",
        lambda: (
            "SqueezeExcite"
            in source(images(*_GATE, "conv", "ops.relu({x})", "conv", gated=True))
        ),
    ),
    Threshold(
        "arrange.recover.excitation._LONGEST",
        60,
        "a long computation on pooled values as SqueezeExcite",
        lambda: (
            "SqueezeExcite"
            in source(images(*_GATE, *["ops.tanh({x})"] * 22, "conv", gated=True))
        ),
    ),
    # --- members and buffers ---
    Threshold(
        "arrange.classes.bind._TINY",
        65,
        "the position table of each call as the caller's number",
        _handed_tables,
    ),
    Threshold(
        "arrange.classes.branches._LEAST",
        1,
        "a class for one layer in each branch, equal by chance",
        _one_layer_branches,
    ),
    Threshold(
        "arrange.classes.buffer_init._LEAST",
        2,
        "the two values of a flag as positions",
        lambda: _starts_as("nn.init.arange", 0, 1),
    ),
    Threshold(
        "arrange.classes.buffer_init._CLOSE",
        0.5,
        "a table that decreases as frequencies of rotary positions",
        lambda: _starts_as("nn.init.frequencies", 1, 0.1, 0.02),
    ),
    Threshold(
        "arrange.classes.members._LOW",
        -1.0,
        "a learned bias of distances as a mask",
        lambda: is_mask(_buffer(0, -2, 0)),
    ),
    Threshold(
        "arrange.classes.attention_trial._CLOSE",
        0.5,
        "keys that are scaled by 1.01 as nn.MultiheadAttention",
        lambda: recognized(keys="(k1 * 1.01)") is not None,
    ),
    Threshold(
        "arrange.classes.attention_trial._DRAWS",
        (),
        "keys that are clipped beyond the first draw's as nn.MultiheadAttention",
        lambda: recognized(keys="k1.clip(-4.0, 4.0)") is not None,
    ),
    # --- hyperparameters ---
    Threshold(
        "arrange.hyperparams.choose._LEAST",
        1,
        "the size of one layer as the width of the model",
        lambda: "dim" in source(_normed()),
    ),
    Threshold(
        "arrange.hyperparams.io_sizes._MANY",
        1000,
        "a vocabulary that has no name beside a table of token types",
        lambda: "vocab" not in source(embeddings(token_a=100, token_b=3)),
    ),
    Threshold(
        "arrange.hyperparams.scales._POWERS",
        (1,),
        "a factor that happens to equal the width as derived from it",
        lambda: _scaled_by(9.0),
    ),
    Threshold(
        "arrange.hyperparams.transfer_rules._FEW",
        (),
        "the second of two heads as the number of keys and values",
        lambda: _split_first(3, 2, 4),
    ),
)
