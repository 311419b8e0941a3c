"""Assign the lines of `--explain` to modules."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from burnish.codegen.scopes import scope_of_name
from burnish.codegen.tools.model_page.boxes import Box

_PATH = re.compile(r"[\w*]+(?:\.[\w*]+)*")
_NODE = re.compile(r"'(/[^']+)'")
_CLASS = re.compile(r"\s*class (\w+)\b")
_SUBJECT = re.compile(r"[\w.*]+(, [\w.*]+)*( and \d+ more)?")
_MOST = 40  #: names of one line that are looked for


def assign(root: Box, explained: Sequence[str]) -> None:
    """Give each box the lines that name it, its class or a node in it."""
    boxes = {box.path: box for box in root.walk() if box.path}
    kinds: dict[str, list[Box]] = {}
    for box in root.walk():
        kinds.setdefault(box.kind, []).append(box)
    step = ""
    for line in explained:
        if not line.startswith(" "):
            step = line.partition(":")[0]
        reason = line if not line.startswith(" ") else f"{step}: {line.strip()}"
        if line.endswith(": no change") or re.search(r": \d+ changes?$", line):
            continue
        met = _CLASS.match(line)
        found = list(kinds.get(met[1], ())) if met else []
        for path in _paths(line):
            found += _matching(path, boxes)
        for box in {id(box): box for box in found}.values():
            box.reasons.append(reason)


def _paths(line: str) -> Iterable[str]:
    """Dotted paths that a line names, and those of nodes that it quotes."""
    for name in _NODE.findall(line):
        yield ".".join(level.name for level in scope_of_name(name))
    subject, _, rest = line.partition(":")
    if _SUBJECT.fullmatch(subject):  # "encoder.layer: a list and a loop"
        rest = subject + rest
    yield from list(dict.fromkeys(_PATH.findall(rest)))[:_MOST]


def _matching(path: str, boxes: dict[str, Box]) -> list[Box]:
    if "*" not in path:
        while path and path not in boxes:
            path, _, _ = path.rpartition(".")
        return [boxes[path]] if path else []
    if set(path) <= {"*", "."}:
        return []
    pattern = re.compile(re.escape(path).replace(r"\*", r"\w+"))
    return [box for name, box in boxes.items() if pattern.fullmatch(name)]
