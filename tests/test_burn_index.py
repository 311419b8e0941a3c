"""docs/burn-index.md: every name of the page on Burn, by the alphabet.

`python -m tests.test_burn_index` writes it anew.
"""

from __future__ import annotations

import re
from collections import defaultdict

from tests.test_burn_to_burnish import PAGE, ROWS, SPAN

INDEX = PAGE.with_name("burn-index.md")

HEAD = """\
# Index of Burn's names

Each name of [From Burn to Burnish](burn-to-burnish.md), with the sections whose rows
say what it is here and in PyTorch. Methods stand under their own names: look for
`matmul`, not for `Tensor::matmul`.
"""

#: The last name before the arguments or the end: `log_softmax` of
#: `activation::log_softmax(tensor, dim)`.
NAME = re.compile(r"([A-Za-z_]\w*)(?:::?<[^(]*>)?!?\s*(?:\(|$|\{)")


def anchor(title: str) -> str:
    """A heading's anchor, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def names(cell: str) -> set[str]:
    """The names that Burn's cell is about."""
    found = set()
    for span in SPAN.findall(cell):
        if match := NAME.search(span):
            found.add(match[1])
        elif words := re.findall(r"[A-Za-z_]\w*", span):
            found.add(words[-1])
    return found


def page() -> str:
    places: dict[str, dict[str, None]] = defaultdict(dict)
    for row in ROWS:
        for name in names(row.burn):
            places[name][row.section.title] = None
    letters: dict[str, list[str]] = defaultdict(list)
    for name in sorted(places, key=lambda n: (n.lower(), n)):
        links = ", ".join(
            f"[{title}](burn-to-burnish.md#{anchor(title)})" for title in places[name]
        )
        letters[name[0].upper()].append(f"- `{name}`: {links}")
    parts = [f"## {letter}\n\n" + "\n".join(lines) for letter, lines in letters.items()]
    return "\n\n".join([HEAD.rstrip(), *parts]) + "\n"


def test_the_index_has_every_name() -> None:
    assert INDEX.read_text("utf-8") == page()


def test_every_row_of_burn_is_in_the_index() -> None:
    text = INDEX.read_text("utf-8")
    for row in ROWS:
        if SPAN.search(row.burn):
            assert any(f"- `{name}`: " in text for name in names(row.burn)), row


def test_anchors_are_headings() -> None:
    headings = re.findall(r"^## (.*)$", PAGE.read_text("utf-8"), re.MULTILINE)
    linked = set(re.findall(r"burn-to-burnish\.md#([\w-]+)", INDEX.read_text("utf-8")))
    assert linked <= {anchor(title) for title in headings}


def test_the_page_begins_with_its_sections() -> None:
    text = PAGE.read_text("utf-8")
    contents, _, rest = text.partition("\n## ")
    headings = re.findall(r"^## (.*)$", f"## {rest}", re.MULTILINE)
    assert re.findall(r"\[[^]]*\]\(#([\w-]+)\)", contents) == [*map(anchor, headings)]


if __name__ == "__main__":
    INDEX.write_text(page(), "utf-8")
