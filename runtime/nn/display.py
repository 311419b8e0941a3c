"""How a module prints: a tree with parameter counts, equal neighbours on one line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from burnish.nn.module import Module


def tree(module: Module) -> str:
    """Net(  # 4,850 params
      (blocks.0-1): 2 x Linear(8, 32)  # 288 params each
    )"""
    return _tree(module, "")


def _tree(module: Module, each: str) -> str:
    head = f"{type(module).__name__}({module.extra_repr()}"
    count = module.num_params
    note = f"  # {count:,} params{each}" if count else ""
    lines = [f"  {line}" for text in _children(module) for line in text.split("\n")]
    if not lines:
        return f"{head}){note}"
    return "\n".join([head + note, *lines, ")"])


def _children(module: Module) -> Iterator[str]:
    run: list[str] = []
    shown = ""
    for name, child in module.named_children():
        text = _tree(child, "")
        if run and text == shown and _follows(run[-1], name):
            run.append(name)
            continue
        if run:
            yield _line(module, run, shown)
        run, shown = [name], text
    if run:
        yield _line(module, run, shown)


def _line(module: Module, names: list[str], shown: str) -> str:
    if len(names) == 1:
        return f"({names[0]}): {shown}"
    child = dict(module.named_children())[names[0]]
    last = names[-1].rpartition(".")[2]
    return f"({names[0]}-{last}): {len(names)} x {_tree(child, ' each')}"


def _follows(one: str, two: str) -> bool:
    """Whether two paths are neighbours in a list: "layers.0" and "layers.1"."""
    (stem, _, i), (other, _, j) = one.rpartition("."), two.rpartition(".")
    return bool(stem) and stem == other and i.isdigit() and j == str(int(i) + 1)
