"""Every code block of the README and of docs/ does what the page says.

A page's blocks run from top to bottom in one folder that holds mnist.onnx and
my-gpt2/, a Hugging Face folder: `python`
blocks in one namespace, lines of `sh` blocks that start with `burnish` by the command
line's own main. A block behind `<!-- generated: NAME -->` is compared with what is
generated, one behind `<!-- nodes: NAME -->` with a file's operators,
one behind `<!-- prints -->` with what the blocks before it printed, one behind
`<!-- files: FOLDER -->` with the names in a folder, one behind
`<!-- fails: COMMAND -->` or `<!-- raises: EXPRESSION -->` with the message; one behind
`<!-- file: PATH -->` is written there; one
behind `<!-- needs a GPU -->` is passed over where there is none, one behind
`<!-- needs tokenizers -->` where that package is missing, one behind
`<!-- needs a C compiler -->` where there are no kernels, one behind
`<!-- with PyTorch -->` is left to tests/test_burn_to_burnish.py and
tests/codegen/test_exports.py.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import onnx
import pytest

from burnish import Tensor
from burnish.codegen.architectures import families
from burnish.codegen.cli import main
from burnish.errors import DeviceError
from burnish.kernels import library
from tests.harness.rules import own_rules
from tests.harness.small_gpt2 import write_gpt2

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(
    r"^(?:<!-- (?P<mark>[^\n]*) -->\n+)?```(?P<language>\w*)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
LINK = re.compile(r"\]\((?!https?:)([^)#\s]+)[^)]*\)")
NOT_RUN = (
    *("pip install ", "pytest", "python ", "#"),
    *("PYTHONPATH=", "cd ", "cp ", "docker "),  # tests/test_deploying_page.py does
)


@dataclass
class Block:
    mark: str
    language: str
    text: str
    line: int


def blocks(page: Path) -> Iterator[Block]:
    content = page.read_text("utf-8")
    for match in BLOCK.finditer(content):
        line = content.count("\n", 0, match.start("text"))
        yield Block(match["mark"] or "", match["language"], match["text"], line)


class Reader:
    """Does what a page says, in the current folder."""

    def __init__(self, page: Path):
        self.page = page
        self.names: dict[str, Any] = {"__name__": page.stem}
        self.printed = ""

    def follow(self, block: Block) -> None:
        if block.mark == "with PyTorch":
            return
        if block.mark.startswith("generated: "):
            source = Path(block.mark.removeprefix("generated: ")).read_text("utf-8")
            assert _unindented(block.text) in _unindented(source)
        elif block.mark.startswith("nodes: "):
            graph = onnx.load(block.mark.removeprefix("nodes: ")).graph
            assert block.text.split() == [node.op_type for node in graph.node]
        elif block.mark == "prints":
            assert _squeezed(block.text) in _squeezed(self.printed)
        elif block.mark.startswith("fails: "):
            self._hear(self._fail, shlex.split(block.mark.removeprefix("fails: ")))
            assert _squeezed(block.text) in _squeezed(self.printed)
        elif block.mark.startswith("raises: "):
            message = self._raised(block.mark.removeprefix("raises: "))
            assert _squeezed(block.text) in _squeezed(message)
        elif block.mark.startswith("files: "):
            folder = Path(block.mark.removeprefix("files: "))
            assert block.text.split() == sorted(p.name for p in folder.iterdir())
        elif block.mark.startswith("file: "):
            path = Path(block.mark.removeprefix("file: "))
            path.parent.mkdir(exist_ok=True)
            path.write_text(block.text, "utf-8")
        elif block.mark in MISSING and MISSING[block.mark]():
            return
        elif block.language == "python":
            self._hear(self._execute, block)
        elif block.language == "sh":
            for line in block.text.replace("\\\n", " ").splitlines():
                self._command(line.strip())

    def _execute(self, block: Block) -> None:
        # line numbers of the page, so that a failure points at it
        text = "\n" * block.line + block.text
        code = compile(text, str(self.page), "exec", dont_inherit=True)
        exec(code, self.names)

    def _command(self, line: str) -> None:
        if not line or line.startswith(NOT_RUN):
            return
        program, *arguments = shlex.split(line, comments=True)
        assert program == "burnish", f"{self.page.name}: who runs {line!r}?"
        self._hear(self._run, arguments)

    def _run(self, arguments: list[str]) -> None:
        assert main(arguments) == 0, arguments

    def _fail(self, arguments: list[str]) -> None:
        self.printed = ""
        assert main(arguments) in (1, 2), arguments

    def _raised(self, expression: str) -> str:
        try:
            eval(expression, self.names)
        except Exception as error:
            return str(error)
        raise AssertionError(f"{self.page.name}: {expression} raises nothing")

    def _hear(self, action: Any, subject: Any) -> None:
        heard = io.StringIO()
        with contextlib.redirect_stdout(heard), contextlib.redirect_stderr(heard):
            action(subject)
        self.printed += heard.getvalue()


def _gpu() -> bool:
    try:
        Tensor([0.0], device="cuda")
    except DeviceError:
        return False
    return True


#: Marks of blocks that want something, and whether it is not there.
MISSING = {
    "needs a C compiler": lambda: library() is None,
    "needs a GPU": lambda: not _gpu(),
    "needs tokenizers": lambda: find_spec("tokenizers") is None,
}


def _unindented(text: str) -> str:
    return "\n".join(line.strip() for line in text.splitlines() if line.strip())


def _squeezed(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_blocks_do_what_the_page_says(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = resources.files("burnish.models.mnist").joinpath("mnist.onnx")
    (tmp_path / "mnist.onnx").write_bytes(model.read_bytes())
    write_gpt2(tmp_path / "my-gpt2")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(families, "_FAMILIES", dict(families._FAMILIES))
    before = set(sys.modules)
    reader = Reader(page)
    try:
        with own_rules():
            for block in blocks(page):
                reader.follow(block)
    finally:
        for name in set(sys.modules) - before:
            file = getattr(sys.modules[name], "__file__", None)
            if file and Path(file).is_relative_to(tmp_path):
                del sys.modules[name]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in LINK.findall(page.read_text("utf-8")):
        assert (page.parent / target).exists(), target
