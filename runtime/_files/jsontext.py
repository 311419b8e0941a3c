"""Parse JSON from untrusted files within a memory budget."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from burnish._files.budget import Budget
from burnish.errors import RecordError

_SLOT, _NUMBER = 9, 32  # bytes of memory of a place in a list, and of a number
_PIECE = 1 << 20
_TRUSTED = "pass limit=BYTES"
_DIGITS = 400  # more than any number of a file has; a float has 309 at most
_NUMERIC = np.zeros(256, bool)
_NUMERIC[list(b"0123456789+-.eE")] = True

Pairs = Callable[[list[tuple[str, Any]]], Any]


class Costs(NamedTuple):
    """The bytes of memory that each of them takes at most."""

    array: int = 96
    object: int = 200
    quote: int = 25
    pair: int = 60


_COSTS = Costs()


def parse(
    data: Any,
    budget: Budget,
    pairs: Pairs | None = None,
    costs: Costs = _COSTS,
    expected: str = "JSON text",
) -> Any:
    """The values of JSON text in UTF-8. Raises RecordError when it is none.

    pairs: what makes an object out of its pairs; costs: where it makes less; expected:
    what the text should be, for the message.

    Whole numbers of hundreds of digits come as floating-point ones, infinite as a rule,
    so that whoever reads the field refuses them by its name. Raises BudgetError before
    values are made that together take too much.
    """
    text = bytes(data)
    budget.take(_cost(text, budget, costs))
    try:
        try:
            return json.loads(text, object_pairs_hook=pairs)
        except ValueError:
            if not re.search(rb"\d{%d}" % _DIGITS, text):
                raise
            return json.loads(text, object_pairs_hook=pairs, parse_int=_integer)
    except (ValueError, RecursionError) as error:
        problem = str(error).replace("\n", " ")
        raise RecordError(
            f"{budget.where}: expected {expected}: {problem:.200}"
        ) from None


def read(path: str | os.PathLike[str], limit: int | None = None) -> Any:
    """The values of a JSON file. Raises RecordError when it is none.

    limit: bytes of memory that a file which is trusted may take, as in `Budget`.
    """
    with open(path, "rb") as file:
        text = file.read()
    return parse(text, Budget(len(text), os.fspath(path), limit, _TRUSTED))


def read_lines(
    path: str | os.PathLike[str], limit: int | None = None
) -> Iterator[tuple[int, Any]]:
    """(line, value) of a file that has one JSON value a line; empty lines are skipped.

    The values of all lines share the file's budget, so that they may be kept. Raises
    RecordError with the line that is not JSON.
    """
    where = os.fspath(path)
    with open(where, "rb") as file:
        budget = Budget(os.fstat(file.fileno()).st_size, where, limit, _TRUSTED)
        for number, line in enumerate(file, 1):
            if line.strip():
                budget.where = f"{where}, line {number}"
                yield number, parse(line, budget, expected="a JSON value")


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits) <= _DIGITS else float(digits)


def _cost(text: bytes, budget: Budget, costs: Costs) -> int:
    """The bytes that the text and its values take, at most."""
    wide = 1 if text.isascii() else 4
    lists, commas = text.count(b"["), text.count(b",")
    cost = (1 + wide) * len(text)
    cost += costs.array * lists + costs.object * text.count(b"{")
    cost += costs.quote * text.count(b'"') + costs.pair * text.count(b":")
    cost += _SLOT * commas
    most = _NUMBER * (commas + lists + 1)
    return cost + (most if budget.fits(cost + most) else _NUMBER * _numbers(text))


def _numbers(text: bytes) -> int:
    """How many numbers have three characters or more: Python shares shorter ones."""
    found = 0
    for at in range(0, len(text), _PIECE):
        piece = np.frombuffer(text, np.uint8)[max(0, at - 1) : at + _PIECE + 2]
        part = _NUMERIC[piece]
        first = part[:-2] & part[1:-1] & part[2:]
        found += int(np.count_nonzero(first[1:] & ~part[:-3])) + (at == 0)
    return found
