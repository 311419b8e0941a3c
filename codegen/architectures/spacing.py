"""Format rendered templates: blank lines and line breaks.

Templates leave out what a configuration does not need, so neither the lines between
their parts nor the length of a line is known before.
"""

from __future__ import annotations

import re

from burnish.codegen.render.layout import WIDTH

_CLOSES = {")": "(", "]": "["}


def spaced(text: str) -> str:
    """Two empty lines before what starts at the margin, none below a colon."""
    text = re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE)
    text = re.sub(r"\n{3,}", "\n\n", text)
    text = re.sub(r":\n\n(?= )", ":\n", text)
    text = re.sub(r"\n+(?=(?:class|def)\b)", "\n\n\n", text).strip("\n")
    return "\n".join(part for line in text.split("\n") for part in _broken(line))


def _broken(line: str) -> list[str]:
    """A line, or several where it is too long.

    What the last bracket holds gets a line of its own, or a line for each part: always
    in a list, and where one line does not hold a call's arguments.
    """
    body = line.removesuffix(":")
    if len(line) <= WIDTH or body[-1] not in _CLOSES:
        return [line]
    start = _opening(body)
    indent = " " * (len(line) - len(line.lstrip()))
    inside = [f"{indent}    {body[start + 1 : -1]}"]
    parts = _parts(body[start + 1 : -1])
    if len(inside[0]) > WIDTH or (body[-1] == "]" and len(parts) > 1):
        inside = [f"{indent}    {part}," for part in parts]
        if len(parts) == 1:  # a comprehension
            made, source = parts[0].split(" for ", 1)
            inside = [f"{indent}    {made}", f"{indent}    for {source}"]
    return [line[: start + 1], *inside, f"{indent}{line[len(body) - 1 :]}"]


def _parts(text: str) -> list[str]:
    """What commas outside of brackets separate."""
    parts, depth = [""], 0
    for character in text:
        depth += (character in "([") - (character in ")]")
        if character == "," and not depth:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]


def _opening(body: str) -> int:
    """Where the bracket opens that the last character closes."""
    depth = 0
    for place in range(len(body) - 1, -1, -1):
        depth += (body[place] in ")]") - (body[place] in "([")
        if not depth:
            return place
    return 0
