"""Type annotations for a template's page, by the names of its arguments.

Templates have one word for one kind of argument, so a table of these words is enough;
a type checker reads every family in the tests. What the table does not know is a number
in a constructor and a tensor elsewhere.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from burnish.codegen.render.layout import broken_signature

_HELD = {
    **dict.fromkeys(("dropout", "attention_dropout", "eps", "scale", "theta"), "float"),
    **dict.fromkeys(("widths", "depths"), "tuple[int, ...]"),
    **dict.fromkeys(("kernels", "strides"), "tuple[int, ...]"),
    **dict.fromkeys(("Encoder.buckets", "Decoder.buckets"), "int"),
    **dict.fromkeys(("text", "vision"), "dict[str, Any]"),
    "FeatureExtractor.channels": "tuple[int, ...]",
    "buckets": "int | None",
    "embedding": "nn.Embedding",
    "first": "bool",
    "VisionEmbeddings.patch": "int",
    "patch": "int | tuple[int, ...]",
}
"""Arguments of constructors that are no integers, of one class or of all."""

_GIVEN = {
    **dict.fromkeys(("time", "past", "size", "count", "window", "furthest"), "int"),
    **dict.fromkeys(("mask", "attention_mask", "bias"), "Tensor | None"),
    "frames.attention_mask": "Tensor",
    "decoder_input_ids": "Any",
    "angles": "tuple[Tensor, Tensor]",
    "cache": "generation.Cache",
    "device": "Device",
    "eos": "Any",
    "max_new_tokens": "int",
    "table": "nn.Embedding",
    "theta": "float",
}
"""Arguments of functions that are no tensors, of one function or of all."""


def annotated(body: str) -> str:
    """The page's classes and functions with annotated signatures."""
    tree = ast.parse(body)
    lines = body.split("\n")
    results = _results(tree)
    for made, owner in sorted(_functions(tree), key=lambda pair: -pair[0].lineno):
        end = made.body[0].lineno - 1
        while not lines[end - 1].rstrip().endswith(":"):
            end -= 1
        first = made.lineno - 1
        lines[first:end] = _signature(made, body, results[made], owner)
    return "\n".join(lines)


def _functions(tree: ast.AST, owner: str = "") -> Iterator[tuple[ast.FunctionDef, str]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef):
            yield node, owner
        name = node.name if isinstance(node, ast.ClassDef) else owner
        yield from _functions(node, name)


def _signature(made: ast.FunctionDef, body: str, result: str, owner: str) -> list[str]:
    constructs = made.name == "__init__"
    known, usual = (_HELD, "int") if constructs else (_GIVEN, "Tensor")
    within = owner if constructs else made.name
    places = made.args.args
    defaults = [None] * (len(places) - len(made.args.defaults)) + made.args.defaults
    words = []
    for place, default in zip(places, defaults, strict=True):
        if place.arg == "self":
            words.append("self")
            continue
        declared = known.get(f"{within}.{place.arg}") or _of_default(default)
        annotation = declared or known.get(place.arg, usual)
        if _is_none(default) and annotation != "Any" and "None" not in annotation:
            annotation = f"{annotation} | None"
        text = f" = {ast.get_source_segment(body, default)}" if default else ""
        words.append(f"{place.arg}: {annotation}{text}")
    if made.args.vararg:
        words.append(f"*{made.args.vararg.arg}: Any")
    if made.args.kwarg:
        words.append(f"**{made.args.kwarg.arg}: Any")
    return broken_signature(made.name, words, made.col_offset, result)


def _of_default(default: ast.expr | None) -> str:
    """The type of a default; "" where it does not tell."""
    match default:
        case ast.Constant(value=bool() | int() | float() | str() as value):
            return type(value).__name__
        case ast.Tuple() | ast.List():
            return "tuple[int, ...]"
    return ""


def _is_none(value: ast.expr | None) -> bool:
    return isinstance(value, ast.Constant) and value.value is None


# --- results ---


def _results(tree: ast.Module) -> dict[ast.FunctionDef, str]:
    """The return type of every function, inferred from its `return` statements."""
    found: dict[ast.FunctionDef, str] = {}
    forwards: dict[str, str] = {}
    for made, owner in _functions(tree):
        called = {path: forwards.get(name, "") for path, name in _made_by(tree, owner)}
        absent = set(_absent(made))
        kinds = {_of_result(value, called, absent) for value in _returned(made)}
        found[made] = kinds.pop() if len(kinds) == 1 else "Any" if kinds else "None"
        if made.name == "forward":
            forwards[owner] = found[made]
    return found


def _made_by(tree: ast.Module, owner: str) -> Iterator[tuple[str, str]]:
    """The attributes of a class and the names of the classes that they are made by."""
    for part in tree.body:
        if isinstance(part, ast.ClassDef) and part.name == owner:
            for node in ast.walk(part):
                match node:
                    case ast.Assign(
                        targets=[ast.Attribute(attr=path)],
                        value=ast.Call(func=ast.Name(id=name)),
                    ):
                        yield path, name


def _absent(made: ast.FunctionDef) -> Iterator[str]:
    """Names of values that may be None: `mask = None if ... else ...`."""
    for node in ast.walk(made):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.IfExp(body=body)):
                if _is_none(body):
                    yield name


def _returned(made: ast.FunctionDef) -> Iterator[ast.expr]:
    """Values of a function's `return` statements, not of those inside it."""
    parts: list[ast.AST] = list(made.body)
    while parts:
        part = parts.pop()
        if isinstance(part, ast.FunctionDef):
            continue
        if isinstance(part, ast.Return) and part.value is not None:
            yield part.value
        parts += ast.iter_child_nodes(part)


def _of_result(value: ast.expr, called: dict[str, str], absent: set[str]) -> str:
    match value:
        case ast.Tuple(elts=parts):
            words = (_of_result(part, called, absent) for part in parts)
            return f"tuple[{', '.join(words)}]"
        case ast.Name(id=name) if name in absent:
            return "Tensor | None"
        case ast.Call(func=ast.Attribute(value=ast.Name(id="self"), attr=path)):
            return called.get(path) or "Tensor"
    return "Tensor"
