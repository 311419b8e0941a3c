"""Generate the gallery's sources again, or check that they are current.

    python -m burnish.models.regenerate [--check] [--numbers] [MODEL ...]

Originals that are not in the cache are fetched, or exported, which needs torch (and
torchvision or transformers). Exit code 1: a source differs, or an original cannot be
had; every model is looked at all the same.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable

from burnish._files.atomic import atomic_write
from burnish.models import _numbers
from burnish.models._gallery import ENTRIES, Entry, generated
from burnish.models._originals import OriginalError


def bring(entry: Entry, check: bool) -> tuple[str, bool]:
    """One line about a source, and whether it is as it should be."""
    from burnish.codegen.errors import ConversionError
    from burnish.codegen.pipeline import write

    try:
        made = generated(entry)
    except (OriginalError, ConversionError) as error:
        return f"missing  {error}", False
    if entry.source.is_file() and entry.source.read_text("utf-8") == made.text:
        return "current", True
    if check:
        return "differs", False
    if entry.script:
        with atomic_write(entry.source) as file:
            file.write(made.text.encode())
    else:
        write(made, entry.source.parent)  # its weights are shipped too
    return "written", True


def main(arguments: Iterable[str] | None = None) -> int:
    folders = tuple(dict.fromkeys(entry.folder for entry in ENTRIES))
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*", metavar="MODEL", help=", ".join(folders))
    parser.add_argument("--check", action="store_true", help="write nothing")
    parser.add_argument(
        "--numbers",
        action="store_true",
        help="make the check numbers again, with onnxruntime",
    )
    options = parser.parse_args(None if arguments is None else list(arguments))
    chosen = options.models or folders
    if unknown := set(chosen).difference(folders):
        parser.error(f"expected models out of {', '.join(folders)}, got {min(unknown)}")

    failed = False
    for entry in ENTRIES:
        if entry.folder in chosen:
            line, good = bring(entry, options.check)
            path = f"{entry.folder}/{entry.source.name}"
            print(f"{path:38} {line}", flush=True)
            failed |= not good
    if options.numbers and not options.check:
        for folder in chosen:
            _numbers.write(folder)
            print(f"{folder}/check.npz")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
