"""Print what docs/internals.md shows of the code: python -m tests.internals

The page's parts between `<!-- begin NAME -->` and `<!-- end -->` are written anew.
"""

from __future__ import annotations

import ast
import functools
import re
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import onnx
import onnx_ir as ir

from burnish.codegen import passes
from burnish.codegen.arrange import arrange
from burnish.codegen.errors import silent
from burnish.codegen.lift import lift
from burnish.codegen.ops import has_rule
from burnish.codegen.pipeline import generate
from burnish.codegen.program import ClassPlan, Expression, Literal
from burnish.codegen.readers import read
from burnish.codegen.readers.expand import expand
from burnish.codegen.render.words import text
from tests.harness.source import floats, graph, node

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "internals.md"
PART = re.compile(r"(<!-- begin ([\w/ ]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def model() -> onnx.ModelProto:
    """Two equal blocks, `x + tanh(x @ weight + bias)`, with scopes in the names."""
    weights, nodes, x = {}, [], "x"
    for n in range(2):
        at, named = f"/blocks.{n}", f"blocks.{n}.fc"
        weights[f"{named}.weight"] = floats(4, 4, seed=n)
        weights[f"{named}.bias"] = floats(4, seed=n + 2)
        nodes += [
            node("MatMul", f"{x} {named}.weight", f"m{n}", f"{at}/fc/MatMul"),
            node("Add", f"m{n} {named}.bias", f"a{n}", f"{at}/fc/Add"),
            node("Tanh", f"a{n}", f"t{n}", f"{at}/Tanh"),
            node("Add", f"{x} t{n}", f"y{n}", f"{at}/Add"),
        ]
        x = f"y{n}"
    return graph([*nodes, node("Identity", x, "y")], weights, x=("batch", 4))


# --- the stations of one model file ---


def stations() -> str:
    """The data structure at each station, with this model's content."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "net.onnx")
        onnx.save(model(), path)
        source = read(path, explain=silent)
        expand(source.model, has_rule, silent)
        before = _nodes(source.model)
        passes.run(source.model)
        after = _nodes(source.model)
        program = lift(source.model)
        lifted = str(program)
        plan = arrange(program)
        arranged = "\n\n".join(map(_class, plan.classes))
        written = generate(path).text.partition("\n\n\n")[2]
    parts = (
        ("Graph, as `readers.read` returns it (`onnx_ir.Model`)", "text", before),
        ("Graph, behind `passes.run`", "text", after),
        ("Program, as `lift` returns it: statements with scopes", "text", lifted),
        ("Plan, as `arrange` returns it: classes, small to large", "text", arranged),
        ("Text, as `render` returns it (without header and imports)", "text", written),
    )
    return "\n".join(f"{a}:\n\n```{b}\n{c.strip()}\n```\n" for a, b, c in parts)


def _nodes(held: ir.Model) -> str:
    return "\n".join(
        f"{each.outputs[0].name} = {each.op_type}"
        f"({', '.join(v.name or '' for v in each.inputs if v is not None)})"
        for each in held.graph
    )


def _class(plan: ClassPlan) -> str:
    made = [f"  {name} = {_shown(e)}" for name, e in plan.members]
    head = f"class {plan.name}({', '.join(plan.parameters)})  {plan.contract}".rstrip()
    takes = ", ".join(value.hint or "x" for value in plan.inputs)
    body = [type(statement).__name__ for statement in plan.block.statements]
    ends = f"  forward({takes}): {', '.join(body)}"
    return "\n".join([head, *made, ends])


def _shown(expression: Expression) -> str:
    """Kind(children), and literals as they are."""
    if isinstance(expression, Literal):
        return repr(expression.value)
    kind = type(expression).__name__
    given = ", ".join(map(_shown, expression.children()))
    word = getattr(expression, "function", getattr(expression, "operator", ""))
    if not expression.children() and not word:
        return text(expression, {})
    return f"{kind} {word}({given})" if word else f"{kind}({given})"


# --- layers, and one line a file ---


def layers() -> str:
    """The contracts of pyproject.toml, high to low."""
    held = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    lines = []
    for contract in held["contracts"]:
        place = contract.get("containers", [""])[0]
        if place.startswith("burnish.codegen"):
            lines += [f"{place}", *(f"    {each}" for each in contract["layers"]), ""]
    return "```text\n" + "\n".join(lines).strip() + "\n```\n"


def files() -> str:
    """A table for each package: its files and the first lines of their docstrings."""
    return "\n".join(_table(folder) for folder in _packages())


def _packages() -> Iterator[Path]:
    for init in sorted((ROOT / "codegen").rglob("__init__.py")):
        yield init.parent


def _table(folder: Path) -> str:
    place = folder.relative_to(ROOT)
    rows = [
        f"| `{file.name}` | {first_line(file)} |"
        for file in sorted(folder.glob("*.py"))
        if file.name != "__init__.py"
    ]
    about = first_line(folder / "__init__.py")
    head = [f"### `{place}`", "", about, "", "| file | |", "| --- | --- |"]
    return "\n".join([*head, *rows, ""]) if rows else "\n".join([*head[:4], ""])


@functools.cache
def first_line(file: Path) -> str:
    """The first line of a file's docstring."""
    found = ast.get_docstring(ast.parse(file.read_text("utf-8"))) or ""
    return found.partition("\n")[0]


PARTS: dict[str, Callable[[], str]] = {
    "stations": stations,
    "layers": layers,
    "files": files,
}


def page(content: str) -> str:
    """The page with its printed parts as they are now."""
    return PART.sub(lambda m: f"{m[1]}\n{PARTS[m[2]]()}\n{m[3]}", content)


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text("utf-8")), "utf-8")
