"""docs/internals.md is what the code is: printed parts, and the files that it names."""

from __future__ import annotations

import functools
import re
from pathlib import Path

import pytest

from tests.internals import PAGE, PARTS, ROOT, first_line, page

CONTENT = PAGE.read_text("utf-8")
WALKS = re.findall(r"<!-- files: (\w+) -->\n((?:- `[^\n]*\n(?:  [^\n]*\n)*)+)", CONTENT)


def test_printed_parts_are_up_to_date() -> None:
    assert page(CONTENT) == CONTENT, "run: python -m tests.internals"
    for name in PARTS:
        assert f"<!-- begin {name} -->" in CONTENT


@functools.cache
def _sources() -> dict[Path, str]:
    return {
        file: file.read_text("utf-8")
        for folder in ("codegen", "runtime", "templates")
        for ending in ("*.py", "*.jinja")
        for file in (ROOT / folder).rglob(ending)
    }


@pytest.mark.parametrize(("word", "listed"), WALKS, ids=[word for word, _ in WALKS])
def test_adding_something_touches_the_files_that_the_page_lists(
    word: str, listed: str
) -> None:
    named = re.compile(rf"\b{word}\b", re.IGNORECASE)
    found = sorted(
        str(file.relative_to(ROOT).as_posix())
        for file, text in _sources().items()
        if named.search(file.stem) or named.search(text)
    )
    assert re.findall(r"^- `([^`]+)`", listed, re.MULTILINE) == found


def test_there_are_four_walks() -> None:
    assert len(WALKS) == 4


def test_every_file_of_the_generator_says_what_it_does() -> None:
    for file in sorted((ROOT / "codegen").rglob("*.py")):
        line = first_line(file)
        assert line, file
        assert line.endswith((".", "?")), f"{file}: {line}"


def test_no_folder_of_the_heart_is_too_large_to_survey() -> None:
    for place in ("arrange", "passes"):
        for folder in [*(ROOT / "codegen" / place).rglob("__init__.py")]:
            files = list(folder.parent.glob("*.py"))
            assert len(files) <= 16, folder.parent
