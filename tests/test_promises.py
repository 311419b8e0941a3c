"""Promises of README and docs/: pages, exit codes, extras, numbers.

What blocks of code promise is held by test_docs.py; options and arguments by
test_named_options.py; messages by test_docs.py on docs/troubleshooting.md.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from burnish.codegen import cli
from burnish.codegen.architectures import families
from burnish.codegen.cli.parsing import failure as _failure
from burnish.codegen.ops import registry
from burnish.codegen.readers.microsoft import bodies
from tests.conformance.searches import SEARCHES

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text("utf-8")
PAGES = sorted((ROOT / "docs").glob("*.md"))
CODES = {
    0: "done",
    _failure.FAILED: "the model cannot be converted",
    _failure.USAGE: "wrong usage",
    _failure.INTERNAL: "an error of Burnish itself",
    _failure.INTERRUPTED: "interrupted",
}


def _squeezed(text: str) -> str:
    return " ".join(text.split())


def _page(name: str) -> str:
    return (ROOT / "docs" / name).read_text("utf-8")


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_readme_has_a_link_to_every_page(page: Path) -> None:
    assert f"](docs/{page.name})" in README


def test_exit_codes_are_the_same_everywhere() -> None:
    spoken = [cli.__doc__ or "", cli.parser().format_help()]
    for text in map(_squeezed, spoken):
        for code, words in CODES.items():
            assert f"{code} {words}" in text
    table = _page("generator.md")
    for code, words in CODES.items():
        assert re.search(rf"^\| {code} \| {words}", table, re.MULTILINE)
    for code, words in list(CODES.items())[:4]:
        assert f"{code} {words}" in _squeezed(README)
    for code in CODES:
        assert re.search(rf"\b{code}\b", _page("troubleshooting.md").split("##")[0])


def test_commands_that_report_have_json_and_all_have_help() -> None:
    (commands,) = (a.choices for a in cli.parser()._actions if a.dest == "command")
    assert isinstance(commands, dict)
    texts = {name: command.format_help() for name, command in commands.items()}
    assert all("--help" in text and "--traceback" in text for text in texts.values())
    silent = {name for name, text in texts.items() if "--json" not in text}
    assert silent == {"demo", "report"}, "they write a story and a page"


def test_extras_that_are_named_exist() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = set(project["optional-dependencies"])
    places = [ROOT / "README.md", *PAGES]
    for folder in ("runtime", "codegen"):
        places += sorted((ROOT / folder).rglob("*.py"))
    for path in places:
        for names in re.findall(r"(?:burnish|'\.)\[([a-z0-9,]+)\]", path.read_text()):
            assert set(names.split(",")) <= extras, (path, names)


def test_the_number_of_node_cases_is_that_of_the_run() -> None:
    passed, of = map(
        int, re.search(r"(\d+) of (\d+) pass\.", _page("operators.md")).groups()
    )
    assert passed == of
    assert f"{of:,} node cases, which all pass" in _squeezed(README)


def test_the_tables_of_operators_are_those_of_the_code() -> None:
    own, _, onnxruntime = _page("operators.md").partition("\n## onnxruntime's own")
    shown = {}
    for name, since, how in re.findall(r"^\| ([\w.]+) \| (\d*) \| (.+?) \|", own, re.M):
        domain, _, kind = name.rpartition(".")
        shown[domain, kind] = since if how == "rule" else ""
    domains = {domain for domain, _ in shown}
    for key, rules in registry.items():
        if key[0] in domains:
            assert shown.pop(key) == str(min(rule.since for rule in rules)), key
    assert not any(shown.values())
    lists = re.findall(r"^\| [a-z]+ \| (\*?[A-Z].*) \|$", onnxruntime, re.M)
    searches = {name.partition(".")[2] for name in SEARCHES}
    names = ", ".join(lists).replace("*", "").split(", ")
    assert sorted(names) == sorted({*bodies, *searches})


def test_the_heads_of_architectures_are_those_of_the_code() -> None:
    table = _page("architectures.md").partition("## What is written")[2]
    shown = {
        kind: tuple(heads.split(", "))
        for kinds, heads in re.findall(r"^\| ([a-z_].*) \| (\w.*) \|$", table, re.M)
        for kind in kinds.split(", ")
    }
    assert sorted(shown) == families.model_types()
    for kind, heads in shown.items():
        found = families.find(kind)
        assert found is not None
        assert heads == found.heads, kind


def test_every_promise_of_trust_names_its_tests() -> None:
    table = _page("trust.md").partition("## What is promised")[2].partition("\n## ")[0]
    rows = [line for line in table.splitlines() if line.startswith("| ")][2:]
    assert len(rows) >= 9
    for row in rows:
        paths = re.findall(r"`(tests/[^`]+)`", row)
        assert paths
        assert all((ROOT / path).exists() for path in paths), row
