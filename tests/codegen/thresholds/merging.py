"""Thresholds of arranging: when classes are merged, and statements become loops."""

from __future__ import annotations

from burnish.codegen.arrange.analysis.shape_contracts import shape_text
from burnish.codegen.arrange.merge.alignment import Alignment
from burnish.codegen.arrange.merge.comprehensions import with_runs
from burnish.codegen.arrange.merge.progressions import progression
from burnish.codegen.arrange.rerolling.statements import _is_shorter, rolled
from burnish.codegen.arrange.scopes.group_kind import holds_numbered
from burnish.codegen.arrange.scopes.grouping import Group, is_number
from burnish.codegen.program import (
    Block,
    Call,
    Expression,
    Level,
    Literal,
    Loop,
)
from tests.codegen.arrange.test_thresholds import line
from tests.codegen.thresholds.programs import (
    Step,
    Threshold,
    chain,
    classes,
    plain,
    source,
)
from tests.harness.program_text import parsed


def _turned(by: int) -> str:
    """A step that rotates the features."""
    return (
        f"ops.concat([{{x}}[_slice(), _slice(start={by})],"
        f" {{x}}[_slice(), _slice(stop={by})]], axis=1)"
    )


def _rotations(*by: int) -> list[Step]:
    steps = [step for n in by for step in (_turned(n), "ops.tanh({x})")]
    return [("fc", 4, 4), *steps]


def _functions(*left_out: int) -> list[Step]:
    """A block with four functions, each of which it may lack."""
    steps: list[Step] = [("a", 4, 4)]
    for n, name in enumerate(("tanh", "exp", "sin", "cos")):
        steps += [(f"l{n}", 4, 4), "ops.relu({x})"]
        steps += [] if n in left_out else [f"ops.{name}({{x}})"]
    return [*steps, "ops.sigmoid({x})", ("z", 4, 4)]


def _members(is_full: bool) -> list[Step]:
    """A block with three layers that it may lack."""
    steps: list[Step] = [("a", 4, 4), "ops.tanh({x})"]
    for n in range(3):
        steps += [(f"l{n}", 4, 4), "ops.relu({x})"]
        steps += [(f"m{n}", 4, 4)] if is_full else []
    return [*steps, "ops.sigmoid({x})", ("z", 4, 4)]


def _with_part(*part: Step) -> list[Step]:
    """A block with a part in its middle."""
    before: list[Step] = [("a", 4, 4), "ops.tanh({x})", ("b", 4, 4), "ops.exp({x})"]
    after: list[Step] = ["ops.relu({x})", ("d", 4, 4), "ops.relu({x})", ("e", 4, 4)]
    return [*before, *part, ("c", 4, 4), *after, "ops.sigmoid({x})"]


def _rotated_part(one: int, other: int) -> list[Step]:
    return _with_part(_turned(one), "ops.exp({x})", _turned(other))


def _hidden(one: int, other: int) -> list[Step]:
    """A block of two hidden sizes; where they are equal, it has a sine."""
    part: list[Step] = ["ops.sin({x})"] if one == other else []
    layers: list[Step] = [("a", 4, one), "ops.exp({x})", ("b", one, other)]
    after: list[Step] = ["ops.tanh({x})", ("d", 4, 4), "ops.sigmoid({x})"]
    return [*layers, "ops.relu({x})", ("c", other, 4), *part, *after]


def _between(before: int, inner: int, after: int) -> list[Step]:
    return [("a", before, inner), "ops.tanh({x})", ("b", inner, after), "ops.exp({x})"]


def _reshaping(features: int) -> list[Step]:
    return [
        ("a", 4, features),
        f"{{x}}.reshape(-1, {20 * features})",
        "ops.exp({x})",
        f"{{x}}.reshape(-1, {features})",
        ("b", features, 4),
    ]


def _linear(*sizes: int) -> list[Expression]:
    return [Call("nn.Linear", (Literal(size), Literal(4))) for size in sizes]


def _is_loop(*sizes: int) -> bool:
    made = with_runs(Call("nn.Sequential", tuple(_linear(*sizes))))
    return isinstance(made, Call) and len(made.args) == 1


def _is_a_loop(count: int) -> bool:
    """Whether so many steps, each with an element of a sequence, become a loop."""
    steps: list[list[Step]] = [
        ["ops.tanh({x})", f"({{x}} + x[{number}])"] for number in range(count)
    ]
    block = rolled(parsed(chain(*steps, scope="")).body)
    return any(isinstance(statement, Loop) for statement in block.statements)


def _layer_line(made: str, weight: str, read: str, scope: str = "") -> str:
    """The line of a program in which a layer of its own reads a value."""
    layer = f"nn.Linear(4, 4, bias=False, weight={weight})({read})"
    return f"{made}: float32[batch, 4] = {layer}{f'  # {scope}' if scope else ''}"


def _skips(layers: int) -> str:
    """The source of layers with skips that are summed; the last one has one alone."""
    weights, lines, x, total = [], [], "x", ""
    for n in range(layers):
        at = f"layers.{n}"
        parts = "as" if n == layers - 1 else "abs"
        weights += [f'weight w{p}{n} "{at}.{p}.weight": float32[4, 4]' for p in parts]
        lines += [
            _layer_line(f"a{n}", f"wa{n}", x, f"{at}.a"),
            f"t{n}: float32[batch, 4] = ops.tanh(a{n})  # {at}",
            _layer_line(f"s{n}", f"ws{n}", f"t{n}", f"{at}.s"),
        ]
        if n < layers - 1:
            lines += [
                _layer_line(f"b{n}", f"wb{n}", f"t{n}", f"{at}.b"),
                f"x{n}: float32[batch, 4] = ({x} + b{n})  # {at}",
            ]
            x = f"x{n}"
        if total:
            lines.append(f"u{n}: float32[batch, 4] = ({total} + s{n})")
        total = f"u{n}" if total else "s0"
    return _program(weights, lines, total)


def _program(weights: list[str], lines: list[str], result: str) -> str:
    ends = [f"return {result}", 'output "y": float32[batch, 4]']
    return source("\n".join([*weights, "input x: float32[batch, 4]", *lines, *ends]))


def _aligned(count: int) -> bool:
    """Whether two forwards are one but for so many statements."""
    (whole, x), (other, y) = line(count), line(0)
    return Alignment(whole, other).run({x: y}) is not None


_COUNTED: list[Step] = [
    step for n in range(3) for step in ((f"fc{n}", 4, 4), "ops.tanh({x})")
]


MERGING = (
    Threshold(
        "arrange.merge.merge._MOST",
        9,
        "four arguments for numbers of a forward, which hide what differs",
        lambda: classes(_rotations(2, 3, 5, 4), _rotations(6, 7, 9, 8)) == 1,
    ),
    Threshold(
        "arrange.merge.merge._SWITCHES",
        9,
        "a class of four conditions, harder to read than two classes",
        lambda: classes(_functions(), *(_functions(n) for n in range(4))) == 1,
    ),
    Threshold(
        "arrange.merge.merge._MEMBERS",
        9,
        "a class of which three members are made on a condition",
        lambda: classes(_members(True), _members(False)) == 1,
    ),
    Threshold(
        "arrange.merge.merge._OPTIONAL",
        9,
        "an optional part with two sizes that other classes pass as None",
        lambda: (
            classes(
                _rotated_part(2, 3), _rotated_part(4, 5), _with_part("ops.exp({x})")
            )
            == 1
        ),
    ),
    Threshold(
        "arrange.merge.alignment._RUN",
        80,
        "two forwards as one, with a condition around nearly all of it",
        lambda: _aligned(41),
    ),
    Threshold(
        "arrange.merge.conditions._TELLING",
        2,
        "a condition on two sizes that are equal in one of two classes",
        lambda: (
            "features == hidden_features" in source(chain(_hidden(8, 8), _hidden(6, 5)))
        ),
    ),
    Threshold(
        "arrange.merge.conditions._FEW",
        2,
        "has_m for a switch of a layer and two functions, which m names as well",
        lambda: (
            "has_m"
            in source(
                chain(
                    _with_part(("m", 4, 4), "ops.sin({x})", "ops.cos({x})"),
                    _with_part(),
                )
            )
        ),
    ),
    Threshold(
        "arrange.merge.size_table._TELLING",
        2,
        "a size as twice another where only two classes have it so",
        lambda: "2 * " in source(chain(_between(4, 8, 6), _between(6, 12, 4))),
    ),
    Threshold(
        "arrange.analysis.shape_contracts._LONGEST",
        100,
        "a formula of sizes in a docstring",
        lambda: "past" in shape_text(("past_sequence_length + sequence_length",)),
    ),
    Threshold(
        "arrange.scopes.group_kind._GAPS",
        100,
        "a list of a hundred modules for two with numbers in their names",
        lambda: holds_numbered(
            Group(Level("heads"), [Group(Level("0")), Group(Level("99"))])
        ),
    ),
    Threshold(
        "arrange.scopes.grouping._DIGITS",
        20,
        "a place in a list for a number that no list is long enough for",
        lambda: is_number("12345678901"),
    ),
    Threshold(
        "arrange.merge.size_table._MULTIPLE",
        100,
        "a row of a reshape as twenty times the features, which no block has",
        lambda: "20 * " in source(chain(_reshaping(8), _reshaping(6), _reshaping(10))),
    ),
    Threshold(
        "arrange.merge.size_table._TIMES",
        (2, 3, 4, 5, 6),
        "a size as five times another, which no block is designed as",
        lambda: (
            "5 * "
            in source(
                chain(_between(4, 20, 6), _between(6, 30, 8), _between(8, 40, 10))
            )
        ),
    ),
    Threshold(
        "arrange.merge.member_loops._FEW_LAYERS",
        2,
        "a loop over three layers of the library, longer than three lines",
        lambda: " for " in source(chain(_COUNTED, scope="body:Block")),
    ),
    Threshold(
        "arrange.merge.progressions._TELLING",
        2,
        "two sizes, which always are in arithmetic progression",
        lambda: progression(_linear(8, 16)) is not None,
    ),
    Threshold(
        "arrange.merge.progressions._DOUBLING",
        3,
        "the channels of three stages, which often double",
        lambda: progression(_linear(64, 128, 256)) is not None,
    ),
    Threshold(
        "arrange.merge.comprehensions._EQUAL",
        2,
        "a comprehension for two equal layers",
        lambda: _is_loop(8, 8),
    ),
    Threshold(
        "arrange.merge.comprehensions._GROWING",
        3,
        "a comprehension for three layers that happen to grow",
        lambda: _is_loop(8, 16, 24),
    ),
    Threshold(
        "arrange.rerolling.statements._SEVERAL",
        2,
        "a loop for two iterations of two statements, as long as these",
        lambda: _is_shorter(Loop((), count=Literal(2), body=Block(plain(2), []))),
    ),
    Threshold(
        "arrange.rerolling.statements._STEPS",
        3,
        "a loop for three elements of a sequence",
        lambda: _is_a_loop(3),
    ),
    Threshold(
        "arrange.rerolling.members._LEAST",
        2,
        "a loop over two of four layers, beside calls of the others",
        lambda: "for layer in self.layers[1:3]" in _skips(4),
    ),
)
