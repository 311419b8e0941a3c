"""Branches of an If that differ in sizes and weights only become modules."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from burnish.codegen.arrange.analysis.structural_hash import outline_of_any_size
from burnish.codegen.arrange.recover.segments import dense
from burnish.codegen.arrange.scopes.grouping import every_weight
from burnish.codegen.program import Block, If

_LEAST = 2
"""The fewest dense layers of a branch that becomes a class; one is equal by chance."""


def are_twins(statement: If) -> bool:
    """Whether both branches have one form, with several layers in it."""
    then, otherwise = statement.blocks()
    one, two = (outline_of_any_size(b.statements) for b in (then, otherwise))
    return sum(map(dense, then.statements)) >= _LEAST and one == two


def names_of(statement: If) -> list[str]:
    """Names of the module in each branch: the first word of its weights' names."""
    names = [_first_word(block) for block in statement.blocks()]
    return names if len(set(names)) == len(names) else ["branch"] * len(names)


def entered(block: Block, name: str) -> Block:
    """A copy without the module that the whole block is in, in statements' scopes."""
    scopes = [statement.scope for statement in block.statements]
    level = int(all(scope and scope[0].name == name for scope in scopes))
    inner = [replace(s, scope=s.scope[level:]) for s in block.statements]
    return Block(inner, block.results)


def _first_word(block: Block) -> str:
    weights = (w for s in block.statements for w in every_weight(s))
    words = Counter(w.path.split(".")[0] for w in weights if "." in w.path)
    common = [word for word, _ in words.most_common(1) if word.isidentifier()]
    return common[0] if common else "branch"
