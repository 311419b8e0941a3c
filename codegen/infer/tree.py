"""Build the module tree from dotted tensor names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from burnish.codegen.errors import UnsupportedError
from burnish.codegen.names.identifier import plain
from burnish.serialize import LazyTensor

_NUMBER = re.compile(r"0|[1-9][0-9]{0,5}")
_DEEPEST = 40


@dataclass(eq=False)
class Node:
    """A module: its tensors and its children, by their names in the file."""

    path: str
    name: str
    tensors: dict[str, LazyTensor] = field(default_factory=dict)
    children: dict[str, Node] = field(default_factory=dict)

    @property
    def is_numbered(self) -> bool:
        """Whether it only holds numbered modules: a Sequential or a list."""
        return (
            bool(self.children)
            and not self.tensors
            and all(map(is_number, self.children))
            and max(map(int, self.children)) < 4 * len(self.children) + 16
        )

    def walk(self) -> Iterator[Node]:
        """This node and all below it, in order."""
        yield self
        for child in self.children.values():
            yield from child.walk()


def is_number(name: str) -> bool:
    """Whether a name is a place in a list, written as Python writes it."""
    return _NUMBER.fullmatch(name) is not None


def grown(tensors: Mapping[str, LazyTensor], where: str) -> Node:
    """The tree of all names.

    Raises UnsupportedError for names that are a tensor and a module at once, and for
    nesting without end.
    """
    root = Node("", "")
    for path, tensor in tensors.items():
        *modules, last = path.split(".")
        if len(modules) > _DEEPEST:
            raise UnsupportedError(
                f"{where}: expected names of {_DEEPEST} modules at most, "
                f"got {len(modules)} in {plain(path)!r}"
            )
        node = root
        for name in modules:
            if name in node.tensors:
                _refuse(where, f"{node.path}.{name}".lstrip("."))
            below = f"{node.path}.{name}" if node is not root else name
            node = node.children.setdefault(name, Node(below, name))
        if last in node.children:
            _refuse(where, path)
        node.tensors[last] = tensor
    for node in root.walk():
        if all(map(is_number, node.children)):
            ordered = sorted(node.children.items(), key=lambda item: int(item[0]))
            node.children = dict(ordered)
    return root


def _refuse(where: str, path: str) -> None:
    raise UnsupportedError(
        f"{where}: expected a tensor or a module, {plain(path)!r} is both"
    )
