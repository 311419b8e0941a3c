"""Every row of docs/burn-to-burnish.md runs, and gives what PyTorch gives.

A section is all below one `## ` heading. Its code blocks set up names; its tables have
a cell for Burn, one for Burnish and one for PyTorch. The code spans of a cell are run
one after the other, the last one's value is the cell's. PyTorch's cells see the same
names: tensors as PyTorch's own, `nn` and `optim` as PyTorch's. What a block behind
`<!-- with PyTorch -->` makes is PyTorch's too; a layer in it gets the weights of the
Burnish layer of that name. A cell that holds "-" says that there is nothing.

Values are compared where both sides give arrays, numbers or tuples of them; only shapes
and kinds of dtype behind `<!-- shapes only -->`, which stands before a table or in a
row, for what is random or made up differently.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import burnish
from burnish import Tensor

ENGINE = {"derived", "index", "node", "resolve", "result_type", "wrap"}
PAGE = Path(__file__).parent.parent / "docs" / "burn-to-burnish.md"
SPAN = re.compile(r"`([^`]+)`")
BETWEEN_CELLS = re.compile(r"(?<!\\)\|")
SHAPES_ONLY = "<!-- shapes only -->"
WITH_PYTORCH = "<!-- with PyTorch -->"
NOTHING = "-"


@dataclass
class Section:
    title: str
    ours: list[tuple[int, str]] = field(default_factory=list)
    theirs: list[tuple[int, str]] = field(default_factory=list)


@dataclass
class Row:
    section: Section
    line: int
    burn: str
    burnish: str
    pytorch: str
    shapes_only: bool

    def __str__(self) -> str:
        return f"line {self.line}"

    def fail(self, cell: str, code: str, why: object) -> None:
        pytest.fail(
            f"{PAGE.name}, line {self.line}, {cell} cell, {code!r}: {why}", False
        )

    def run(self, cell: str, text: str, names: dict[str, Any]) -> Any:
        """The value of the last code span of a cell."""
        spans = [span.replace(r"\|", "|") for span in SPAN.findall(text)]
        if not spans:
            self.fail(cell, text, "expected code, or '-' alone")
        value = None
        for span in spans:
            try:
                value = evaluate(span, names)
            except Exception as error:
                self.fail(cell, span, f"{type(error).__name__}: {error}")
        return value


def read(page: Path) -> Iterator[Row]:
    section, block, mark, header = Section(""), None, "", 0
    for number, line in enumerate(page.read_text("utf-8").splitlines(), 1):
        if block is not None:
            if line.startswith("```"):
                place = section.theirs if mark == WITH_PYTORCH else section.ours
                place.append((number - len(block), "\n".join(block)))
                block, mark = None, ""
            else:
                block.append(line)
        elif line.startswith("```"):
            block = []
        elif line.startswith("## "):
            section = Section(line[3:])
        elif line.startswith("<!--"):
            mark = line
        elif line.startswith("|"):
            header += 1
            if header > 2:  # behind the names of the columns and the line under them
                cells = [c.strip() for c in BETWEEN_CELLS.split(line)[1:-1]]
                assert len(cells) == 3, (
                    f"{page.name}, line {number}: {len(cells)} cells"
                )
                shapes = SHAPES_ONLY in (mark, *re.findall("<!--.*?-->", line))
                yield Row(section, number, *cells, shapes)
        elif header:
            header, mark = 0, ""


ROWS = list(read(PAGE))


def evaluate(code: str, names: dict[str, Any]) -> Any:
    try:
        tree = ast.parse(code, mode="eval")
    except SyntaxError:
        exec(code, names)
        return None
    return eval(compile(tree, code, "eval"), names)


def set_up(row: Row) -> dict[str, Any]:
    """The names of a row's section, made anew."""
    burnish.seed(0)
    names: dict[str, Any] = {"__name__": PAGE.stem}
    for line, text in row.section.ours:
        code = compile("\n" * (line - 1) + text, str(PAGE), "exec", dont_inherit=True)
        exec(code, names)
    return names


def set_up_pytorch(row: Row) -> dict[str, Any]:
    """The same names with PyTorch's things behind them."""
    import torch

    torch.manual_seed(0)
    ours = set_up(row)
    names = {name: converted(value) for name, value in ours.items()}
    names |= {"torch": torch, "nn": torch.nn, "optim": torch.optim}
    names["F"] = torch.nn.functional
    for line, text in row.section.theirs:
        exec(compile("\n" * (line - 1) + text, str(PAGE), "exec"), names)
    for name, module in names.items():
        if isinstance(module, torch.nn.Module) and name in ours:
            state = ours[name].state_dict()
            module.load_state_dict({k: torch.tensor(v) for k, v in state.items()})
    return names


def converted(value: Any) -> Any:
    """A tensor as PyTorch's; also those in a list or tuple."""
    import torch

    if isinstance(value, Tensor):
        return torch.tensor(value.numpy(), requires_grad=value.requires_grad)
    if isinstance(value, list | tuple) and type(value) in (list, tuple):
        return type(value)(map(converted, value))
    return value


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_burnish_cell_runs(row: Row, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    row.run("Burnish", row.burnish, set_up(row))


@pytest.mark.oracle
@pytest.mark.parametrize("row", ROWS, ids=str)
def test_pytorch_cell_agrees(row: Row, tmp_path: Path, monkeypatch: Any) -> None:
    pytest.importorskip("torch")
    if row.pytorch == NOTHING:
        return
    monkeypatch.chdir(tmp_path)
    theirs = row.run("PyTorch", row.pytorch, set_up_pytorch(row))
    ours = row.run("Burnish", row.burnish, set_up(row))
    try:
        compare(ours, theirs, row.shapes_only)
    except AssertionError as error:
        row.fail("PyTorch", row.pytorch, error)


def compare(ours: Any, theirs: Any, shapes_only: bool) -> None:
    import torch

    if isinstance(ours, list | tuple) and isinstance(theirs, list | tuple):
        assert len(ours) == len(theirs), f"{len(theirs)} results, Burnish {len(ours)}"
        for one, other in zip(ours, theirs, strict=True):
            compare(one, other, shapes_only)
        return
    arrays = isinstance(ours, Tensor | np.ndarray | np.generic)
    if not arrays and not isinstance(theirs, torch.Tensor):
        numbers = isinstance(ours, int | float) and isinstance(theirs, int | float)
        assert not numbers or shapes_only or ours == pytest.approx(theirs)
        return
    assert hasattr(theirs, "shape") or isinstance(theirs, int | float), type(theirs)
    assert hasattr(ours, "shape") or isinstance(ours, int | float), type(ours)
    mine = np.asarray(ours)
    other = np.asarray(
        theirs.detach().resolve_conj() if isinstance(theirs, torch.Tensor) else theirs
    )
    assert mine.shape == other.shape, f"shape {other.shape}, Burnish has {mine.shape}"
    kinds = (mine.dtype.kind, other.dtype.kind)
    assert kinds[0] == kinds[1], f"dtype {other.dtype}, Burnish has {mine.dtype}"
    if not shapes_only:
        np.testing.assert_allclose(mine, other, 2e-5, 1e-6)


def test_every_section_has_rows_and_a_code_block() -> None:
    for section in {row.section.title: row.section for row in ROWS}.values():
        assert section.ours, f"{section.title}: no block sets up its names"


def test_every_method_of_a_tensor_has_a_row() -> None:
    cells = " ".join(row.burnish for row in ROWS)
    names = {name for name in dir(Tensor) if not name.startswith("_")} - ENGINE
    missing = {name for name in names if not re.search(rf"\.{name}\b", cells)}
    assert not missing
