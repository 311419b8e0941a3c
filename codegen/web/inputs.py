"""Choose the form field of each model input: a picture, ids or numbers."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Literal, TypedDict

from burnish.codegen.errors import UsageError
from burnish.nn.accepts import Spec, spec

SMALLEST_PICTURE = 8
OPEN_PICTURE = 224
"""The height and width of a picture where the model takes any."""

_MASKS = ("mask",)
_KINDS = ("token_type", "segment", "type_ids")
_PLACES = ("position",)
_IDS = ("ids", "token", "indices")


class Input(TypedDict, total=False):
    """One input as the page's script reads it.

    kind: "picture" has layout ("CHW", "HWC" or "HW"), channels, height and width;
    "derived" has fill ("ones", "zeros", "positions"), in the sizes of other inputs;
    "ids" and "numbers" have value, the text to start with. shape: sizes and names.
    """

    name: str
    kind: Literal["picture", "ids", "numbers", "derived"]
    dtype: str
    shape: list[int | str]
    layout: str
    channels: int
    height: int
    width: int
    fill: str
    value: str


def model_in(text: str) -> tuple[str, list[Input]]:
    """The class to run in a source, and what its forward cannot do without.

    Raises UsageError where an input is no array of numbers of known rank, or the text
    no Python.
    """
    try:
        page = ast.parse(text)
    except SyntaxError as error:  # the source may be edited, or have conflicts
        raise UsageError(
            f"--web: expected source in Python, got line {error.lineno}: {error.msg}; "
            f"generate without --web, mend the source, then add it"
        ) from error
    name, forward = _outermost(page)
    specs = _specs(forward.decorator_list)
    given = forward.args.args[1:]
    needed = given[: len(given) - len(forward.args.defaults)]
    made = [_input(each.arg, specs.get(each.arg)) for each in needed]
    if any(each["kind"] == "ids" for each in made):
        made = [_beside_ids(each) for each in made]
    return name, made


def _outermost(page: ast.Module) -> tuple[str, ast.FunctionDef]:
    """The last class with a forward: those that it uses come before it."""
    for node in reversed(page.body):
        if isinstance(node, ast.ClassDef):
            for item in node.body:
                if isinstance(item, ast.FunctionDef) and item.name == "forward":
                    return node.name, item
    raise UsageError("--web: expected a class with a forward in the source")


def _specs(decorators: Sequence[ast.expr]) -> dict[str, Spec]:
    """The arguments of `@nn.accepts`."""
    return {
        word.arg: spec(word.value.value)
        for call in decorators
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "nn.accepts"
        for word in call.keywords
        if word.arg
        and isinstance(word.value, ast.Constant)
        and isinstance(word.value.value, str)
    }


def _input(name: str, known: Spec | None) -> Input:
    if known is None or known.dtype is None or known.tail is not None:
        raise UsageError(
            f"--web: expected to know the dtype and the axes of input {name!r}, got "
            f"{known.text if known else 'none'} in @nn.accepts"
        )
    if known.dtype.kind not in "fiub":
        raise UsageError(
            f"--web: expected pictures, ids or numbers, got {known.text} for {name!r}"
        )
    shape = [
        f"{name}.{axis}" if size is None else size
        for axis, size in enumerate(known.head)
    ]
    made = Input(name=name, kind="numbers", dtype=str(known.dtype), shape=shape)
    if known.dtype.kind == "f" or known.dtype == "uint8":
        return made | _picture(shape) | Input(value="")
    if len(shape) in (1, 2) and any(word in name.lower() for word in _IDS):
        made["kind"] = "ids"
    return made | Input(value=_first(shape) if made["kind"] == "ids" else "")


def _first(shape: Sequence[int | str]) -> str:
    """Ids to start with: eight, or as many as there must be."""
    count = shape[-1] if isinstance(shape[-1], int) else 8
    return " ".join(map(str, range(1, count + 1)))


def _picture(shape: Sequence[int | str]) -> Input:
    """The layout of a picture, where the axes are those of one."""
    axes, batched = shape, len(shape) == 4
    if batched:
        if isinstance(shape[0], int) and shape[0] != 1:
            return Input()
        axes = shape[1:]
    if len(axes) == 3 and axes[0] in (1, 3):
        layout, (channels, height, width) = "CHW", axes
    elif len(axes) == 3 and axes[2] in (1, 3) and (batched or axes[0] != axes[1]):
        layout, (height, width, channels) = "HWC", axes
    elif len(axes) == 3 and not batched and _batch(axes[0]):
        layout, channels, (height, width) = "HW", 1, axes[1:]
        if not (isinstance(height, int) and height == width):
            return Input()  # a spectrogram, or a matrix
    else:
        return Input()
    sizes = [s if isinstance(s, int) else OPEN_PICTURE for s in (height, width)]
    if min(sizes) < SMALLEST_PICTURE or not isinstance(channels, int):
        return Input()
    return Input(
        kind="picture",
        layout=layout,
        channels=channels,
        height=sizes[0],
        width=sizes[1],
    )


def _batch(size: int | str) -> bool:
    return size == 1 or isinstance(size, str)


def _beside_ids(each: Input) -> Input:
    """A mask, segments or positions, which follow from how many ids there are."""
    name = each["name"].lower()
    for words, fill in ((_MASKS, "ones"), (_KINDS, "zeros"), (_PLACES, "positions")):
        if any(word in name for word in words):
            return Input(
                name=each["name"],
                kind="derived",
                dtype=each["dtype"],
                shape=each["shape"],
                fill=fill,
            )
    return each
