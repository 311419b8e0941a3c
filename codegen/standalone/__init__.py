"""One file for a model: its classes, and what of the runtime they use.

In: generated source. Out: the same with the runtime's own source, folded for NumPy
without recording, as far as names reach from the model's classes.
Invariant: the file needs NumPy alone, and gives the numbers of the module.
"""

from __future__ import annotations

import ast
import dis
import re
import sys
from collections.abc import Iterable
from contextvars import copy_context
from symtable import Function, SymbolTable, symtable
from types import CodeType

from burnish.codegen.errors import ConversionError
from burnish.codegen.standalone.layout import import_lines
from burnish.codegen.standalone.names import BUILTINS, FACTS, Outside, Page, read
from burnish.codegen.standalone.page import runtime
from burnish.codegen.standalone.reach import MODEL

_SMALL = re.compile(
    r"\b(bfloat16|float8_\w+|float[46]_\w+|float8e\w+|u?int[24]|complex32)\b"
)
"""Dtypes that NumPy has from ml_dtypes alone."""

_LONGEST = 400
"""A longer text is no dtype and no spec of an input, but weights."""


def standalone(text: str, *, quantized: bool = False, tables: bool = False) -> str:
    """The source of a generated module as one file that needs NumPy alone.

    quantized, tables: what its weights file holds. Raises ConversionError, with its
    name, for what NumPy alone does not have.
    """
    facts = {"QUANTIZED": quantized, "TABLES": tables}

    def write() -> str:
        FACTS.set(frozenset(name for name, on in facts.items() if on))
        return _written(read(MODEL, text))

    return copy_context().run(write)


def refuse_dtypes(weights: Iterable[tuple[str, str]]) -> None:
    """Raise ConversionError for weights whose dtype NumPy alone does not have."""
    for path, dtype in weights:
        if _SMALL.fullmatch(dtype):
            raise _beyond_numpy(f"{path} of {dtype}")


def _beyond_numpy(what: str) -> ConversionError:
    return ConversionError(
        f"--standalone: expected dtypes that NumPy has, got {what}, which takes "
        f"ml_dtypes; generate without --standalone, or convert the model to float16 or "
        f"float32"
    )


def _written(model: Page) -> str:
    _refuse(model)
    made = runtime(model)
    body = model.tree.body
    heads = [s for s in body if isinstance(s, ast.Import | ast.ImportFrom)]
    text, places = model.text, model.places
    docstring = text[: places.line_after(body[0])]
    classes = text[places.line_after(heads[-1]) :]
    parts = (
        f"{docstring}\nfrom __future__ import annotations\n",
        "\n".join(import_lines(made.outside)) + "\n",
        _heading("The runtime: what of burnish this model uses, for inference"),
        f"\n\n{made.text}\n\n",
        f"{_heading('The model')}{classes}",
    )
    text = "\n".join(parts)
    _refuse_unknown(text)
    return text


def _refuse_unknown(text: str) -> None:
    """Raise ConversionError for names that nothing in a file defines."""
    top = symtable(text, "<one file>", "exec")
    made = {symbol.get_name() for symbol in top.get_symbols() if symbol.is_local()}
    lost = _globals(top) - made - BUILTINS - {"__file__", "__name__"}
    if lost:  # unless they are in dead code, which the compiler drops
        lost &= _looked_up(compile(text, "<one file>", "exec", dont_inherit=True))
    if lost:
        raise ConversionError(
            f"--standalone: expected all names in the file, got none for "
            f"{', '.join(sorted(lost))}; generate without --standalone"
        )


def _globals(table: SymbolTable) -> set[str]:
    """Names of a file's top level that its functions mention."""
    found = set(table.get_globals()) if isinstance(table, Function) else set()
    return found.union(*map(_globals, table.get_children()))


def _looked_up(code: CodeType) -> set[str]:
    """Names that the functions of a compiled file look up at its top level."""
    found = {i.argval for i in dis.get_instructions(code) if i.opname == "LOAD_GLOBAL"}
    inner = [part for part in code.co_consts if isinstance(part, CodeType)]
    return found.union(*map(_looked_up, inner))


def _heading(text: str) -> str:
    rule = "-" * 84
    return f"# {rule}\n# {text}\n# {rule}"


def _refuse(model: Page) -> None:
    for target in model.imported.values():
        if isinstance(target, Outside):
            module = target.module.partition(".")[0]
            if module != "numpy" and module not in sys.stdlib_module_names:
                raise ConversionError(
                    f"--standalone: expected operators of Burnish alone, got those of "
                    f"{target.module}, which is not in the file; generate without it"
                )
    for node in ast.walk(ast.Module(model.tree.body[1:], [])):
        text = node.value if isinstance(node, ast.Constant) else None
        if not isinstance(text, str) or len(text) > _LONGEST:
            continue
        if (found := _SMALL.search(text)) is not None:
            raise _beyond_numpy(found[0])
