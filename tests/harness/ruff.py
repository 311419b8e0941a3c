"""What the formatter and the linter say of generated text, where ruff is installed.

A machine that only tests (`pip install '.[test]'`) has no ruff; the check command does.
"""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec

INSTALLED = find_spec("ruff") is not None
_SELECT = "E,F,I,B,UP,RUF"


def formatted(text: str) -> str:
    """The text as `ruff format` writes it; unchanged where ruff is missing."""
    return _ruff(text, "format") if INSTALLED else text


def complaints(text: str, select: str = _SELECT) -> str:
    """What `ruff check` says, "" for nothing."""
    if not INSTALLED:
        return ""
    options = ("check", "--quiet", "--output-format=concise", "--select", select)
    return _ruff(text, *options)


def _ruff(text: str, *arguments: str) -> str:
    command = [sys.executable, "-m", "ruff", *arguments, "--isolated", "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    assert not done.stderr, done.stderr
    return done.stdout
