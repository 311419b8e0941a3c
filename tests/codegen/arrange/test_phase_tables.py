"""What each phase of arranging does: a program's text before, and what comes out.

A row of a phase that changes the program has the program behind it, and is the same
text where the phase leaves it. A row of a phase that changes classes has lines of the
source behind it, after all phases before it.
"""

from __future__ import annotations

import textwrap

import pytest

from burnish.codegen.arrange.pipeline import PHASES, Facts, Phase, build_classes, run
from burnish.codegen.program import Plan, Program
from burnish.codegen.render.page import Header, render
from tests.codegen.arrange.phase_programs import OUTPUT, PROGRAMS, line
from tests.harness.program_text import parsed

PHASE = {phase.__name__: phase for phase in PHASES}


def _bare(times: int) -> str:
    """A block of five statements, so many times, without scopes or names."""
    kinds = [(4, 6), (6, 4)]
    weights = [
        f'weight w{n}{k} "": float32[{out}, {size}]'
        for n in range(times)
        for k, (size, out) in enumerate(kinds)
    ]
    block = """\
a{n}: float32[batch, 6] = nn.Linear(4, 6, bias=False, weight=w{n}0)(x{n})
b{n}: float32[batch, 6] = ops.tanh(a{n})
c{n}: float32[batch, 4] = nn.Linear(6, 4, bias=False, weight=w{n}1)(b{n})
d{n}: float32[batch, 4] = ops.sin(c{n})
x{m}: float32[batch, 4] = (x{n} + d{n})"""
    blocks = [block.format(n=n, m=n + 1) for n in range(times)]
    ends = ["input x0: float32[batch, 4]"], [f"return x{times}", OUTPUT]
    return "\n".join([*weights, *ends[0], *blocks, *ends[1]])


def _bare_beside_named() -> str:
    """Four blocks without scopes; a part with a name, "blocks", is between them."""
    weights = [f'weight n{k} "blocks.{k}.weight": float32[4, 4]' for k in range(2)]
    named = """\
e0: float32[batch, 4] = nn.Linear(4, 4, bias=False, weight=n0)(x2)  # blocks:Neck.0
e1: float32[batch, 4] = ops.relu(e0)  # blocks:Neck
y2: float32[batch, 4] = nn.Linear(4, 4, bias=False, weight=n1)(e1)  # blocks:Neck.1
a2:"""
    text = _bare(4).replace("a2:", named).replace("(x2)\nb2", "(y2)\nb2")
    return "\n".join([*weights, text.replace("(x2 + d2)", "(y2 + d2)")])


def _widths(*hidden: int, act: str = "tanh") -> str:
    """Blocks of two layers, each with its own hidden size, and a head."""
    weights, statements = [], []
    for n, size in enumerate(hidden):
        weights += [
            f'weight u{n} "blocks.{n}.fc.weight": float32[{size}, 4]',
            f'weight v{n} "blocks.{n}.out.weight": float32[4, {size}]',
        ]
        function = act if n else "tanh"
        statements.append(f"""\
a{n}: float32[batch, {size}] = nn.Linear(4, {size}, bias=False, weight=u{n})(x{n})\
  # blocks.{n}:Block.fc
b{n}: float32[batch, {size}] = ops.{function}(a{n})  # blocks.{n}:Block
x{n + 1}: float32[batch, 4] = nn.Linear({size}, 4, bias=False, weight=v{n})(b{n})\
  # blocks.{n}:Block.out""")
    ends = ["input x0: float32[batch, 4]"], [f"return x{len(hidden)}", OUTPUT]
    return "\n".join([*weights, *ends[0], *statements, *ends[1]])


def _named(*names: str, declared: str = "", act: str = "tanh") -> str:
    """Blocks of two layers under names of their own, of different widths."""
    text = _widths(*range(6, 6 + len(names)), act=act)
    for number, name in enumerate(names):
        text = text.replace(f"blocks.{number}:Block", name + declared)
        text = text.replace(f"blocks.{number}", name)
    return text


def _asks_amid() -> str:
    """Blocks that all read a size that the first of them asks of its own value."""
    asks = "n: host nonnegative int64[] = a0.shape[0,]"
    text = _bare(3).replace("batch", "places")
    for n in range(3):
        before = f"b{n}: float32[places, 6] = ops.tanh(a{n})"
        within = f"b{n}: float32[places, 6] = ops.tanh(a{n}.reshape(n, 6))"
        text = text.replace(before, f"{asks}\n{within}" if n == 0 else within)
    start = (
        "input x: float32[batch, 9]\n"
        "x0: float32[places, 4] = nn.Linear(9, 4, bias=False, weight=w)(x)"
    )
    text = text.replace("input x0: float32[places, 4]", start)
    return f'weight w "": float32[4, 9]\n{text}'


CONVS = """
weight a "stem.conv.weight": float32[6, 4, 1, 7]
weight b "stem.conv.bias": float32[6]
weight c "{0}.conv.weight": float32[4, 6, 3, 3]
weight d "{0}.conv.bias": float32[4]
input x: float32[batch, 4, 9, 9]
h: float32[batch, 6, 9, 9] = nn.Conv2d(4, 6, (1, 7), padding=(0, 3), weight=a, \
bias=b)(x)  # stem.conv
t: float32[batch, 6, 9, 9] = ops.relu(h)  # stem
u: float32[batch, 4, 9, 9] = nn.Conv2d(6, 4, 3, padding=1, weight=c, bias=d)(t)\
  # {0}.conv
y: float32[batch, 4, 9, 9] = ops.relu(u)  # {0}
return y
output "y": float32[batch, 4, 9, 9]
"""
SOURCES: list[tuple[str, str, str]] = [
    # a phase, a program before all phases, lines of the source behind this one
    (
        "recover_structure",
        _bare(3),
        """
        self.blocks = [MLPBlock#1() for _ in range(3)]

        def forward(self, x0):
        x = x0
        for block in self.blocks:
        x = block(x)
        """,
    ),
    (
        "recover_structure",  # beside what has names, and under other ones
        _bare_beside_named(),
        """
        self.stage1 = [MLPBlock#1() for _ in range(2)]
        self.blocks = Neck#1()
        self.stage2 = [MLPBlock#1() for _ in range(2)]

        def forward(self, x0):
        x = x0
        for stage in self.stage1:
        x = stage(x)
        x = self.blocks(x)
        for stage in self.stage2:
        x = stage(x)
        """,
    ),
    (
        "recover_structure",  # a size of what enters them, that the first one asks for
        _asks_amid(),
        """
        self.blocks = [MLPBlock#1() for _ in range(3)]
        """,
    ),
    (
        "recover_structure",  # two layers and what is between them are no class
        _bare(1),
        """
        self.linear1 = nn.Linear(4, 6, bias=False)
        self.linear2 = nn.Linear(6, 4, bias=False)

        def forward(self, x0):
        x = self.linear2(ops.tanh(self.linear1(x0)))
        return x0 + ops.sin(x)
        """,
    ),
    (
        "build_classes",
        line(3, "blocks.{}"),
        """
        self.blocks = [Block#1() for _ in range(3)]

        def forward(self, x0):
        x = x0
        for block in self.blocks:
        x = block(x)
        return x
        """,
    ),
    (
        "build_classes",
        _widths(6, 8),
        "self.blocks = nn.Sequential(Block#1(), Block#2())",
    ),
    (
        "share_words",
        _named("mixed_5b", "mixed_6"),
        """
        self.mixed_5b = Mixed#1()
        self.mixed_6 = Mixed#2()
        """,
    ),
    (
        "share_words",
        _named("mixed_first", "mixed_second"),
        """
        self.mixed_first = Mixed#1()
        self.mixed_second = Mixed#2()
        """,
    ),
    (
        "share_words",
        _named("text_tower", "vision_tower"),
        """
        self.text_tower = Tower#1()
        self.vision_tower = Tower#2()
        """,
    ),
    (
        "share_words",  # the end that more of them share
        _named("q_lin", "lin_first", "out_lin", "lin_last", "v_lin", "output"),
        """
        self.q_lin = Lin#1()
        self.lin_first = LinFirst#1()
        self.out_lin = Lin#2()
        self.lin_last = LinLast#1()
        self.v_lin = Lin#3()
        self.output = Output#1()
        """,
    ),
    (
        "share_words",  # blocks of one convolution need no common word
        CONVS.format("neck"),
        """
        self.stem = ConvReLU#1()
        self.neck = ConvReLU#2()
        """,
    ),
    (
        "share_words",  # the author's own class names stay
        _named("mixed_first", "mixed_second", declared=":Block"),
        """
        self.mixed_first = Block#1()
        self.mixed_second = Block#2()
        """,
    ),
    (
        "share_words",  # names without a word in common are of two classes
        _named("neck", "head"),
        """
        self.neck = Neck#1()
        self.head = Head#1()
        """,
    ),
    (
        "share_words",  # and so are those that do different things
        _named("mixed_first", "mixed_second", act="sin"),
        """
        self.mixed_first = MixedFirst#1()
        self.mixed_second = MixedSecond#1()
        """,
    ),
    (
        "merge_classes",
        _widths(6, 8),
        """
        def __init__(self, features):
        self.fc = nn.Linear(4, features, bias=False)
        self.out = nn.Linear(features, 4, bias=False)
        """,
    ),
    (
        "merge_classes",  # a window may have a size for each axis
        CONVS.format("neck"),
        """
        self.stem = ConvReLU#1(4, 6, (1, 7), (0, 3))
        self.neck = ConvReLU#1(6, 4, 3, 1)
        """,
    ),
    (
        "merge_classes",  # another function is another class
        _widths(6, 8, act="sin"),
        "self.blocks = nn.Sequential(Block#1(), Block#2())",
    ),
    ("name_classes", _widths(6, 8), "self.blocks = nn.Sequential(Block(6), Block(8))"),
    (
        "name_classes",
        _widths(6, 8, act="sin"),
        "self.blocks = nn.Sequential(Block(), Block2())",
    ),
    (
        "name_sizes",
        line(3, "blocks.{}"),
        """
        def __init__(self, classes=4):
        self.blocks = [Block(classes) for _ in range(3)]
        """,
    ),
    (
        "write_comprehensions",
        _widths(8, 8, 8, 16),
        "self.blocks = nn.Sequential(*[Block(8) for _ in range(3)], Block(16))",
    ),
    (
        "write_comprehensions",  # two are written out
        _widths(8, 8, 16),
        "self.blocks = nn.Sequential(Block(8), Block(8), Block(16))",
    ),
]


def _source(program: Program, phase: Phase) -> str:
    """The classes behind a phase; built where the phase comes before that."""
    facts = Facts()
    last = max(PHASES.index(phase), PHASES.index(build_classes))
    run(PHASES[: last + 1], program, facts)
    return render(Plan(facts.classes, [], []), Header("title", ("made.",), (), {}))


@pytest.mark.parametrize(("phase", "before", "after"), PROGRAMS)
def test_a_phase_changes_the_program(phase: str, before: str, after: str) -> None:
    program = parsed(before)
    PHASE[phase](program, Facts())
    assert str(program) == str(parsed(after))


@pytest.mark.parametrize(("phase", "before", "lines"), SOURCES)
def test_a_phase_changes_classes(phase: str, before: str, lines: str) -> None:
    text = _source(parsed(before), PHASE[phase])
    wanted = textwrap.dedent(lines).strip().splitlines()
    found = [line.strip() for line in text.splitlines()]
    starts = [i for i, line in enumerate(found) if line == wanted[0].strip()]
    assert any(
        found[i : i + len(wanted)] == [line.strip() for line in wanted] for i in starts
    ), text


def test_every_phase_has_a_row() -> None:
    assert {row[0] for row in (*PROGRAMS, *SOURCES)} == set(PHASE)
