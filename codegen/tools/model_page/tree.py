"""Build the tree of boxes: members, constructor and observed calls of each module."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import TypeAlias

from burnish.codegen.tools.model_page.boxes import Box, Flow, Held, Span, Step
from burnish.codegen.tools.model_page.lines import Lines
from burnish.codegen.tools.model_page.observe import Pass, Seen
from burnish.codegen.tools.model_page.sizes import Sizes
from burnish.codegen.tools.model_page.values import TENSORS, histogram
from burnish.codegen.weights.entries import Entry
from burnish.nn.core.module import Module
from burnish.nn.core.param import Param, Stored

Inside: TypeAlias = dict[int, tuple[int, int]]
"""Parameters and bytes of each tensor, by its id."""

_FEW = 3  #: of a list, that stand in its holder's box


class Tree:
    """Builds the boxes of a model; `box` is the outermost.

    source: the name of the module that its classes are in. entries: its weights as the
    file stores them, by path.
    """

    def __init__(
        self,
        model: Module,
        source: str,
        lines: Lines,
        entries: Mapping[str, Entry],
        seen: Pass,
        sizes: Sizes,
    ):
        self._source, self._lines, self._entries = source, lines, entries
        self._pass, self._sizes = seen, sizes
        self._bytes: dict[int, int] = {}
        self._first: dict[int, str] = {}  # path of each tensor and module
        self._own = _owned(model)
        self._histograms = TENSORS
        kind = type(model).__name__
        self.box, _ = self._made("", kind, model, self._lines.of("", "", kind))

    def _made(
        self, path: str, name: str, module: Module, lines: tuple[Span, ...]
    ) -> tuple[Box, Inside]:
        """A module's box, and the tensors in it."""
        kind, about = type(module).__name__, module.extra_repr()
        first = self._first.setdefault(id(module), path)
        if first != path:
            return Box(path, name, kind, about, first, lines), {}
        box = Box(path, name, kind, about, lines=lines)
        inside: Inside = {}
        for tensor_name, tensor in self._own.get(path, ()):
            held = self._held(path, tensor_name, tensor)
            box.tensors.append(held)
            if held.shares is None:
                self._bytes[id(tensor)] = held.bytes
            count = int(tensor.size) if held.trained else 0
            inside[id(tensor)] = count, self._bytes[id(tensor)]
        seen = self._pass.modules.get(path, Seen())
        self._flow(box, seen)
        for stem, group in self._groups(module, seen, path):
            children = []
            together: Inside = {}
            for child_name, child in group:
                place = f"{path}.{child_name}" if path else child_name
                spans = self._child_lines(module, child_name, child) or lines
                made, tensors = self._made(place, child_name, child, spans)
                children.append(made)
                together.update(tensors)
            inside.update(together)
            if stem:
                place = f"{path}.{stem}" if path else stem
                spans = self._lines.of(self._kind(module), stem.partition(".")[0], "")
                children = [_list(place, stem, children, together, spans or lines)]
            box.children += children
        _sum(box, inside)
        return box, inside

    def _held(self, path: str, name: str, tensor: Stored) -> Held:
        whole = f"{path}.{name}" if path else name
        first = self._first.setdefault(id(tensor), whole)
        values = None
        entry = self._entries.get(whole)
        if first == whole and entry is not None and self._histograms:
            self._histograms -= 1
            values = histogram(entry.read())
        return Held(
            name,
            str(tensor.dtype) if entry is None else entry.dtype,
            tensor.shape,
            int(tensor.nbytes) if entry is None else entry.size,
            isinstance(tensor, Param),
            None if first == whole else first,
            values,
        )

    def _flow(self, box: Box, seen: Seen) -> None:
        box.calls, box.macs, box.result_bytes = seen.calls, seen.macs, seen.result_bytes
        box.inputs = self._flows(box.path, "in", len(seen.inputs))
        box.outputs = self._flows(box.path, "out", len(seen.outputs))
        number, steps = 0, []
        for operator, module, kinds in seen.steps:
            made = [
                str(self._sizes.flow((box.path, "step", number + i)))
                for i in range(len(kinds))
            ]
            number += len(kinds)
            steps.append(Step(operator, module, ", ".join(made)))
        box.steps, box.more_steps = tuple(steps), seen.more_steps

    def _flows(self, path: str, role: str, count: int) -> tuple[Flow, ...]:
        return tuple(self._sizes.flow((path, role, i)) for i in range(count))

    def _groups(
        self, module: Module, seen: Seen, path: str
    ) -> Iterator[tuple[str, list[tuple[str, Module]]]]:
        """Children in the order of their calls; a list of many under its name."""
        inside = f"{path}." if path else ""
        order: dict[str, int] = {}
        for _, called, _ in seen.steps:
            if called.startswith(inside):
                order.setdefault(called.removeprefix(inside), len(order))
        children = list(module.named_children())
        stems: dict[str, int] = {}
        for name, _ in children:
            at = order.get(name, len(order))
            stem = name.rpartition(".")[0] or name
            stems[stem] = min(stems.get(stem, at), at)
        children.sort(key=lambda each: stems[each[0].rpartition(".")[0] or each[0]])
        for stem, group in groupby(children, lambda each: each[0].rpartition(".")[0]):
            found = list(group)
            yield (stem if len(found) > _FEW else ""), found

    def _kind(self, module: Module) -> str:
        """The name of a module's class, where the source defines it."""
        own = type(module).__module__ == self._source
        return type(module).__name__ if own else ""

    def _child_lines(
        self, module: Module, name: str, child: Module
    ) -> tuple[Span, ...]:
        attribute = name.partition(".")[0]
        return self._lines.of(self._kind(module), attribute, self._kind(child))


def _owned(model: Module) -> dict[str, list[tuple[str, Stored]]]:
    """Every tensor, also under its second path, by the module that it is in."""
    modules = {path for path, _ in model.named_modules()}
    found: dict[str, list[tuple[str, Stored]]] = {}
    for path, tensor in model.named_tensors(remove_duplicate=False):
        owner = path.rpartition(".")[0]
        while owner not in modules:
            owner = owner.rpartition(".")[0]
        name = path.removeprefix(f"{owner}.") if owner else path
        found.setdefault(owner, []).append((name, tensor))
    return found


def _list(
    path: str,
    name: str,
    items: list[Box],
    inside: Inside,
    lines: tuple[Span, ...],
) -> Box:
    """The box of a list: `12 x Block`."""
    kinds = list(dict.fromkeys(item.kind for item in items))
    kind = " or ".join(kinds) if len(kinds) < 3 else "modules"
    box = Box(path, name, f"{len(items)} x {kind}", lines=lines, children=items)
    _sum(box, inside)
    return box


def _sum(box: Box, inside: Inside) -> None:
    """Costs with those of the modules in it; a shared tensor counts once."""
    box.parameters = sum(count for count, _ in inside.values())
    box.bytes = sum(size for _, size in inside.values())
    box.macs += sum(child.macs for child in box.children)
    box.result_bytes += sum(child.result_bytes for child in box.children)
