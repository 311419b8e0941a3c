"""Digests of generated source and weights."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import re
import sys
import warnings
from pathlib import Path
from typing import Any

from burnish.codegen.errors import ConversionError, UsageError
from burnish.codegen.pipeline import Options, generate

INDEX = "index.jsonl"
"""One line a case: its name, its path in the folder, the options."""

_HEADER = re.compile(r'\A"""(.*?)"""\n', re.DOTALL)


def body(text: str) -> str:
    """The source without the header, but for the header's first line."""
    header = _HEADER.match(text)
    if header is None:
        return text
    return header[1].partition("\n")[0] + "\n" + text[header.end() :]


def digest(path: Path, options: Options) -> tuple[str, str]:
    """Of the source and of the weights; or the kind of error, and "-"."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            made = generate(path, options)
        except (ConversionError, UsageError) as error:
            return type(error).__name__, "-"
        weights = hashlib.sha256()
        for entry in made.weights:
            head = (entry.path, entry.dtype, list(entry.weight.shape), entry.trained)
            weights.update(json.dumps(head).encode())
            for block in entry.blocks():
                weights.update(block)
    source = hashlib.sha256(body(made.text).encode())
    return source.hexdigest()[:16], weights.hexdigest()[:16]


def of_folder(folder: Path, only: str = "") -> dict[str, str]:
    """The digests of a folder's cases by name; only: how the names start."""
    lines = map(json.loads, sorted(set((folder / INDEX).read_text().splitlines())))
    cases = [(folder, *case) for case in lines if case[0].startswith(only)]
    with multiprocessing.Pool() as pool:
        return dict(sorted(pool.imap_unordered(_case, cases, chunksize=8)))


def _case(case: tuple[Path, str, str, dict[str, Any]]) -> tuple[str, str]:
    folder, name, path, options = case
    return name, " ".join(digest(folder / path, Options(**options)))


if __name__ == "__main__":  # by tests.corpus, for the generator of another commit
    json.dump(of_folder(Path(sys.argv[1]), sys.argv[2]), sys.stdout)
