"""Parts in a row that are alike are made by a loop within their list."""

import pytest

from burnish.codegen.arrange.merge.comprehensions import with_runs
from burnish.codegen.program import Call, ListOrTuple, Literal
from burnish.codegen.render.words import text


def block(*sizes, **options):
    named = tuple((name, Literal(value)) for name, value in options.items())
    return Call("Block", tuple(map(Literal, sizes)), named)


FIRST = block(64, stride=2)
ROWS = {  # parts, and what is written of them
    "two are written out": ([FIRST, block(64), block(64)], None),
    "three": (
        [FIRST, *[block(64)] * 3],
        "Block(64, stride=2), *[Block(64) for _ in range(3)]",
    ),
    "in the middle": (
        [FIRST, *[block(64)] * 3, block(8)],
        "Block(64, stride=2), *[Block(64) for _ in range(3)], Block(8)",
    ),
    "two runs": (
        [*[block(4)] * 3, *[block(8)] * 4],
        "*[Block(4) for _ in range(3)], *[Block(8) for _ in range(4)]",
    ),
    "growing": (
        [block(64 + 32 * i, 7) for i in range(4)],
        "*[Block(64 + 32 * i, 7) for i in range(4)]",
    ),
    "growing for a while": (
        [*(block(8 * i) for i in range(1, 5)), block(7)],
        "*[Block(8 + 8 * i) for i in range(4)], Block(7)",
    ),
    "doubling": ([block(2**i) for i in range(4)], "*[Block(2**i) for i in range(4)]"),
    "doubling from the ratio on": (
        [block(2 * 2**i) for i in range(4)],
        "*[Block(2 ** (i + 1)) for i in range(4)]",
    ),
    "doubling stages": (
        [block(64 * 2**i, 3**i) for i in range(4)],
        "*[Block(64 * 2**i, 3**i) for i in range(4)]",
    ),
    "starting again": (
        [block(2 ** (i % 4)) for i in range(10)],
        "*[Block(2 ** (i % 4)) for i in range(10)]",
    ),
    "starting again behind another class": (
        [Call("Stem", ()), *[block(2 ** (i % 4)) for i in range(7)]],
        "Stem(), *[Block(2 ** (i % 4)) for i in range(7)]",
    ),
    "growing and starting again": (
        [block(5 + i % 3) for i in range(6)],
        "*[Block(5 + i % 3) for i in range(6)]",
    ),
    "halving is written out": ([block(8 // 2**i) for i in range(4)], None),
    "two in turn are written out": ([block(1 + i % 2) for i in range(4)], None),
    "three that grow are written out": ([block(8 * i) for i in range(1, 4)], None),
    "a switch": ([block(8, up=True), *[block(8, up=False)] * 2], None),
}


@pytest.mark.parametrize("name", ROWS)
def test_a_run_of_parts_is_a_loop(name):
    parts, words = ROWS[name]
    words = words or ", ".join(text(part, {}) for part in parts)
    made = with_runs(Call("nn.Sequential", tuple(parts)))
    assert text(made, {}) == f"nn.Sequential({words})"


def test_a_list_that_is_one_run_is_one_loop():
    made = with_runs(ListOrTuple(tuple(block(4 * i) for i in range(1, 6))))
    assert text(made, {}) == "[Block(4 + 4 * i) for i in range(5)]"
