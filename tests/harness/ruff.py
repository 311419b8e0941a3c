"""Format and lint generated text with ruff, where it is installed.

A machine that only tests (`pip install '.[test]'`) has no ruff; the check command does.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from importlib.util import find_spec

INSTALLED = find_spec("ruff") is not None
_SELECT = "E,F,I,B,UP,RUF"
#: The program itself, without an interpreter around it, where it is installed as usual.
_PROGRAM = shutil.which("ruff", path=sysconfig.get_path("scripts"))
_COMMAND = [_PROGRAM] if _PROGRAM else [sys.executable, "-m", "ruff"]


def formatted(text: str) -> str:
    """The text as `ruff format` writes it; unchanged where ruff is missing."""
    return _ruff(text, "format") if INSTALLED else text


def complaints(text: str, select: str = _SELECT) -> str:
    """The complaints of `ruff check`, "" for none."""
    if not INSTALLED:
        return ""
    options = ("check", "--quiet", "--output-format=concise", "--select", select)
    return _ruff(text, *options)


def _ruff(text: str, *arguments: str) -> str:
    command = [*_COMMAND, *arguments, "--isolated", "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    assert not done.stderr, done.stderr
    return done.stdout
