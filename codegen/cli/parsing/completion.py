"""Scripts that complete commands and options in a shell: bash, zsh and fish.

Words that are neither a command nor an option are completed as names of files.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from burnish.codegen.cli.parsing.parser import options

Parser = argparse.ArgumentParser


def completion(parser: Parser, shell: str) -> str:
    """The script for one of SHELLS, made from a command line's parser."""
    return SHELLS[shell](parser)


def _bash(parser: Parser) -> str:
    return _BASH.format(first=_first(parser), cases=_cases(parser, 'words="{}"'))


def _zsh(parser: Parser) -> str:
    return _ZSH.format(first=_first(parser), cases=_cases(parser, "known=({})"))


def _fish(parser: Parser) -> str:
    lines = [f"complete -c burnish {_AT_FIRST} {o}" for o in _fish_options(parser)]
    helps = _helps(parser)
    for name, command in _commands(parser).items():
        about = f"-d {_fish_quoted(helps[name])}"
        lines.append(f"complete -c burnish {_AT_FIRST} -f -a {name} {about}")
        here = f"-n '__fish_seen_subcommand_from {name}'"
        lines += [f"complete -c burnish {here} {o}" for o in _fish_options(command)]
    return "\n".join(lines)


SHELLS = {"bash": _bash, "zsh": _zsh, "fish": _fish}


def _commands(parser: Parser) -> dict[str, Parser]:
    return dict(_subparsers(parser).choices)


def _helps(parser: Parser) -> dict[str, str]:
    """One line for each command."""
    return {a.dest: a.help or "" for a in _subparsers(parser)._choices_actions}


def _subparsers(parser: Parser) -> argparse._SubParsersAction[Parser]:
    (found,) = (
        action
        for action in parser._actions
        if isinstance(action, argparse._SubParsersAction)
    )
    return found


def _first(parser: Parser) -> str:
    """The words that may stand behind `burnish`."""
    return " ".join([*_commands(parser), *options(parser)])


def _cases(parser: Parser, line: str) -> str:
    """A line of a `case` for each command, with its options."""
    return "\n".join(
        f"        {name}) {line.format(' '.join(options(command)))} ;;"
        for name, command in _commands(parser).items()
    )


def _fish_options(parser: Parser) -> Iterator[str]:
    """`-s o -l out -r`; -r: a value follows."""
    for action in parser._actions:
        names = [
            f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}"
            for name in action.option_strings
        ]
        if names:
            yield " ".join([*names, *(["-r"] if action.nargs != 0 else [])])


def _fish_quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


_AT_FIRST = "-n __fish_use_subcommand"

_BASH = """\
_burnish() {{
    local current=${{COMP_WORDS[COMP_CWORD]}} words="{first}"
    (( COMP_CWORD > 1 )) && case ${{COMP_WORDS[1]}} in
{cases}
    esac
    COMPREPLY=()
    if [[ $COMP_CWORD -eq 1 || $current == -* ]]; then
        COMPREPLY=($(compgen -W "$words" -- "$current"))
    fi
}}
complete -o default -F _burnish burnish"""

_ZSH = """\
#compdef burnish
_burnish() {{
    local -a known=({first})
    (( CURRENT > 2 )) && case $words[2] in
{cases}
    esac
    if [[ $CURRENT -eq 2 || $words[CURRENT] == -* ]]; then
        compadd -a known
    else
        _files
    fi
}}
if [[ $funcstack[1] == _burnish ]]; then
    _burnish "$@"
else
    compdef _burnish burnish
fi"""
