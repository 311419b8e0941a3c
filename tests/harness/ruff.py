"""Format and lint generated text with ruff, where it is installed.

A machine that only tests (`pip install '.[test]'`) has no ruff; the check command does.
A process of ruff takes longer than generating a small model: `lint_later` collects the
texts of a module's tests for two processes in all.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from importlib.util import find_spec
from pathlib import Path

INSTALLED = find_spec("ruff") is not None
_SELECT = "E,F,I,B,UP,RUF"
_CHECK = ("check", "--quiet", "--output-format=concise", "--select", _SELECT)
#: The program itself, without an interpreter around it, where it is installed as usual.
_PROGRAM = shutil.which("ruff", path=sysconfig.get_path("scripts"))
_COMMAND = [_PROGRAM] if _PROGRAM else [sys.executable, "-m", "ruff"]


#: Texts to lint, each with the test that it is of.
_waiting: list[tuple[str, str]] = []


def lint_later(text: str) -> None:
    """Have the text formatted and linted when the module's tests have run."""
    test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]
    _waiting.append((test, text))


def lint_waiting() -> None:
    """Raise AssertionError where ruff would change, or complains about, such a text."""
    texts = [*_waiting]
    _waiting.clear()
    if not texts or not INSTALLED:
        return
    with tempfile.TemporaryDirectory() as folder:
        for place, (_, text) in enumerate(texts):
            Path(folder, f"text_{place}.py").write_bytes(text.encode())
        found = ""
        for arguments in (("format", "--diff"), _CHECK):
            command = [*_COMMAND, *arguments, "--isolated", "--no-cache", folder]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                found += done.stdout + done.stderr
    tests = (f"text_{n}.py: {test}\n" for n, (test, _) in enumerate(texts))
    assert not found, "".join(t for t in tests if t.partition(":")[0] in found) + found


def formatted(text: str) -> str:
    """The text as `ruff format` writes it; unchanged where ruff is missing."""
    return _ruff(text, "format") if INSTALLED else text


def complaints(text: str, select: str = _SELECT) -> str:
    """The complaints of `ruff check`, "" for none."""
    if not INSTALLED:
        return ""
    return _ruff(text, *_CHECK[:-1], select)


def _ruff(text: str, *arguments: str) -> str:
    command = [*_COMMAND, *arguments, "--isolated", "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    assert not done.stderr, done.stderr
    return done.stdout
