"""The scripts that complete `burnish`, asked as the shells ask them."""

from __future__ import annotations

import argparse
import shutil
import subprocess
from collections.abc import Callable

import pytest

from burnish.codegen.cli import main, parser

CASES = [
    (("burnish", "in"), {"init", "inspect"}),
    (("burnish", "verif"), {"verify"}),
    (("burnish", "--v"), {"--version"}),
    (("burnish", "generate", "--em"), {"--embed"}),
    (("burnish", "generate", "--fo"), {"--force"}),
    (("burnish", "verify", "m.onnx", "--se"), {"--seed"}),
    (("burnish", "report", "m.onnx", "--em"), set()),
    (("burnish", "generate", "no-such-file"), set()),  # the shell's own: files
]


def _bash(script: str, words: tuple[str, ...]) -> list[str]:
    typed = " ".join(f"'{word}'" for word in words)
    return [
        "bash",
        "-uc",
        f"{script}\nCOMP_WORDS=({typed}); COMP_CWORD={len(words) - 1}; _burnish; "
        'printf "%s\\n" "${COMPREPLY[@]}"',
    ]


def _zsh(script: str, words: tuple[str, ...]) -> list[str]:
    """compadd works inside the line editor alone: here it prints what it was given."""
    typed = " ".join(f"'{word}'" for word in words)
    return [
        "zsh",
        "-fc",
        "compdef() {}; _files() {}\n"
        "compadd() { print -rC1 -- ${(M)known:#${words[CURRENT]}*} }\n"
        f"{script}\nwords=({typed}); CURRENT={len(words)}; _burnish",
    ]


def _fish(script: str, words: tuple[str, ...]) -> list[str]:
    return ["fish", "-Nc", f'{script}\ncomplete -C "{" ".join(words)}"']


SHELLS = {"bash": _bash, "zsh": _zsh, "fish": _fish}


def _script(shell: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["--print-completion", shell]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "expected"), CASES, ids=[" ".join(words) for words, _ in CASES]
)
@pytest.mark.parametrize(("shell", "asked"), SHELLS.items(), ids=list(SHELLS))
def test_a_shell_completes_commands_and_options(
    shell: str,
    asked: Callable[[str, tuple[str, ...]], list[str]],
    words: tuple[str, ...],
    expected: set[str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    command = asked(_script(shell, capsys), words)
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    found = {line.partition("\t")[0] for line in done.stdout.splitlines() if line}
    assert found == expected


@pytest.mark.parametrize("shell", SHELLS)
def test_a_script_knows_every_command_and_option(
    shell: str, capsys: pytest.CaptureFixture[str]
) -> None:
    script = _script(shell, capsys)
    (commands,) = (
        action.choices
        for action in parser()._actions
        if isinstance(action, argparse._SubParsersAction)
    )
    for name, command in commands.items():
        own = [
            line
            for line in script.splitlines()
            if line.strip().startswith(f"{name})") or f"_from {name}'" in line
        ]
        text = " ".join(own).replace("-l ", "--").replace("-s ", "-")
        known = set(text.replace("(", " ").replace(")", " ").replace('"', " ").split())
        assert known >= {o for a in command._actions for o in a.option_strings}, name


def test_a_shell_without_a_script_is_refused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["--print-completion", "tcsh"]) == 2
    assert "expected one of bash, zsh, fish" in capsys.readouterr().err
