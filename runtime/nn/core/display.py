"""How a module prints: a tree with parameter counts, equal neighbours on one line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from burnish.nn.core.module import Module


class DisplaySettings(NamedTuple):
    """Settings of the `repr` of a module and of all below it.

    A class changes them with an attribute: `display_settings = DisplaySettings(...)`;
    the text in its brackets, with a method `extra_repr`.

    num_params: how many parameters each module has. tensors: every parameter and buffer
    with its shape and dtype. attributes: everything else that a module holds, too.
    new_lines: one line for each of these; else all in one. indent: by so many spaces.
    """

    num_params: bool = True
    tensors: bool = False
    attributes: bool = False
    new_lines: bool = True
    indent: int = 2


def tree(module: Module) -> str:
    """Net(  # 4,850 params
      (blocks.0-1): 2 x Linear(8, 32)  # 288 params each
    )"""
    return _tree(module, DisplaySettings(), "")


def pretty(module: Module, **settings: Any) -> str:
    """The `repr` with other settings: `pretty(model, num_params=False)`

    They are `DisplaySettings`'s, and yield to those that a class has.
    """
    return _tree(module, DisplaySettings(**settings), "")


def _tree(module: Module, settings: DisplaySettings, each: str) -> str:
    settings = chosen(module, settings)
    head = f"{type(module).__name__}({module.extra_repr()}"
    count = module.num_params if settings.num_params else 0
    note = f"  # {count:,} params{_small(module)}{each}" if count else ""
    parts = [*_own(module, settings), *_children(module, settings)]
    if not parts:
        return f"{head}){note}"
    if not settings.new_lines:
        opened = "" if head.endswith("(") else ", "
        return f"{head}{opened}{', '.join(parts)}){note}"
    space = " " * settings.indent
    lines = [f"{space}{line}" for text in parts for line in text.split("\n")]
    return "\n".join([head + note, *lines, ")"])


def chosen(module: Module, settings: DisplaySettings) -> DisplaySettings:
    """Those that a module's class has, else `settings`."""
    return getattr(module, "display_settings", settings)


def _small(module: Module) -> str:
    """How many bytes a module takes, where some of it is quantized."""
    if all(tensor.scheme is None for _, tensor in module.named_tensors()):
        return ""
    size, unit = float(module.num_bytes), "bytes"
    for larger in ("KB", "MB", "GB"):
        if size >= 1000:
            size, unit = size / 1000, larger
    return f" in {size:,.1f} {unit}" if unit != "bytes" else f" in {size:.0f} bytes"


def _own(module: Module, settings: DisplaySettings) -> Iterator[str]:
    """A module's own tensors and attributes, as far as they are wanted."""
    tensors = {
        path: tensor for path, tensor in module.named_tensors() if "." not in path
    }
    if settings.tensors:
        for name, tensor in tensors.items():
            scheme = f" as {tensor.scheme}" if tensor.scheme else ""
            kind = f"{type(tensor).__name__}{tensor.shape} {tensor.dtype}"
            yield f"{name}: {kind}{scheme}"
    if settings.attributes:
        children = {name.partition(".")[0] for name, _ in module.named_children()}
        for name, value in vars(module).items():
            if name not in tensors and name not in children:
                yield f"{name}={value!r}"


def _children(module: Module, settings: DisplaySettings) -> Iterator[str]:
    for names, shown in runs(module, settings):
        yield _line(module, settings, names, shown)


def runs(module: Module, settings: DisplaySettings) -> Iterator[tuple[list[str], str]]:
    """Children by their paths, neighbours in a list that print the same as one."""
    run: list[str] = []
    shown = ""
    for name, child in module.named_children():
        text = _tree(child, settings, "")
        if run and text == shown and _follows(run[-1], name):
            run.append(name)
            continue
        if run:
            yield run, shown
        run, shown = [name], text
    if run:
        yield run, shown


def _line(
    module: Module, settings: DisplaySettings, names: list[str], shown: str
) -> str:
    if len(names) == 1:
        return f"({names[0]}): {shown}"
    child = dict(module.named_children())[names[0]]
    text = _tree(child, settings, " each")
    return f"({together(names)}): {len(names)} x {text}"


def together(names: list[str]) -> str:
    """`blocks.0-11`"""
    last = names[-1].rpartition(".")[2]
    return names[0] if len(names) == 1 else f"{names[0]}-{last}"


def _follows(one: str, two: str) -> bool:
    """Whether two paths are neighbours in a list: "layers.0" and "layers.1"."""
    (stem, _, i), (other, _, j) = one.rpartition("."), two.rpartition(".")
    return bool(stem) and stem == other and i.isdigit() and j == str(int(i) + 1)
