"""How a notebook shows a module: boxes to open, of its modules, tensors and sizes.

Colours are the notebook's own, whatever its theme is, and nothing but HTML is needed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from burnish.nn.core.display import DisplaySettings, chosen, runs, together

if TYPE_CHECKING:
    from burnish.nn.core.module import Module

BOXES = 300
"""The maximum number of boxes of a module; those left out are counted."""

_BOX = "margin:0 0 0 1em;font:13px/1.6 ui-monospace,monospace"
_HEAD = "display:inline-flex;width:calc(100% - 2em);gap:1em;align-items:baseline"
_WORDS = "flex:1;overflow-wrap:anywhere"
_BAR = "flex:none;width:6em;height:.4em;border:1px solid;opacity:.6;align-self:center"
_SHARE = "display:block;height:100%;background:currentColor"
_TENSORS = "margin:0 0 0 2em;opacity:.75"


def page(module: Module) -> str:
    """The HTML of a module: equal neighbours of a list share a box."""
    builder = _Builder(module.num_params)
    return "".join(builder.box("", module, 1, DisplaySettings(), opened=True))


class _Builder:
    def __init__(self, whole: int):
        self.whole, self.room = whole, BOXES

    def box(
        self,
        name: str,
        module: Module,
        count: int,
        settings: DisplaySettings,
        opened: bool = False,
    ) -> Iterator[str]:
        from html import escape

        self.room -= 1
        settings = chosen(module, settings)
        times = f"{count} x " if count > 1 else ""
        label = f"{name}: " if name else ""
        summary = f"{label}{times}{type(module).__name__}({module.extra_repr()})"
        own = [
            f"{path}: {tensor.dtype}[{', '.join(map(str, tensor.shape))}]"
            for path, tensor in module.named_tensors()
            if "." not in path
        ]
        children = list(runs(module, settings))
        yield f'<details style="{_BOX}"{" open" if opened else ""}>'
        yield f'<summary style="cursor:pointer"><span style="{_HEAD}">'
        yield f'<span style="{_WORDS}">{escape(summary)}</span>'
        if settings.num_params:
            yield from self._size(module.num_params * count)
        yield "</span></summary>"
        if own:
            yield f'<div style="{_TENSORS}">{"<br>".join(map(escape, own))}</div>'
        yield from self._inside(module, children, settings)
        yield "</details>"

    def _inside(
        self,
        module: Module,
        children: list[tuple[list[str], str]],
        settings: DisplaySettings,
    ) -> Iterator[str]:
        modules = dict(module.named_children())
        for number, (names, _) in enumerate(children):
            if self.room <= 0:
                more = sum(len(each) for each, _ in children[number:])
                yield f'<div style="{_TENSORS}">{more:,} more modules</div>'
                return
            child = modules[names[0]]
            yield from self.box(together(names), child, len(names), settings)

    def _size(self, count: int) -> Iterator[str]:
        share = min(100 * count / self.whole, 100) if self.whole else 0
        yield f"<span>{count:,} params</span>"
        yield f'<span style="{_BAR}" title="{share:.1f}% of all">'
        yield f'<span style="{_SHARE};width:{share:.1f}%"></span></span>'
