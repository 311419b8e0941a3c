"""`burnish inspect --html` and `--against`: a page to look at a model, or at two."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from burnish.codegen.cli.parsing.pairs import files, sizes

if TYPE_CHECKING:
    from burnish.codegen.tools.model_page.against import Differences


def run(options: argparse.Namespace) -> int:
    """Write the page, and say what the two models differ in; 0 also where they do."""
    from burnish.codegen.errors import keep_inputs
    from burnish.codegen.tools import console
    from burnish.codegen.tools.model_page.against import differences
    from burnish.codegen.tools.model_page.look import examined
    from burnish.codegen.tools.model_page.write import write

    target = _target(options)
    dims, given = sizes(options.dim), files(options.input)
    one = examined(options.model, dims, given)
    apart = other = None
    if options.against is not None:
        other = examined(options.against, dims, given, strict=False)
        apart = differences(one, other)
    if target is not None:
        looks = (each[0] for each in (one, other) if each is not None)
        read = [path for look in looks for path in look.files]
        folders = [p for p in (options.model, options.against) if p and p.is_dir()]
        read += [each for folder in folders for each in folder.iterdir()]
        keep_inputs([target], filter(Path.is_file, [*read, *given.values()]))
        write(one[0], target, apart)
    if options.json:
        console.emit(one[0] if apart is None else apart)
    elif apart is not None:
        _report(apart)
    if target is not None and not options.json:
        console.line(target)
    for note in one[0].notes:
        console.say(f"note: {note}")
    return 0


def _report(apart: Differences) -> None:
    """Say what two models differ in."""
    from burnish.codegen.tools.console import count, line, table

    line(f"{apart.other} beside {apart.model}: {apart.summary}")
    rows = [
        (f"{word} {each.path}", each.what)
        for word, found in (
            ("+", apart.added),
            ("-", apart.removed),
            ("~", apart.changed),
            ("tensor", apart.tensors),
        )
        for each in found
    ]
    if rows:
        print()
        table(("what", ""), rows)
    if apart.values:
        print()
        table(
            ("tensor", "different", "of", "largest difference", "relative"),
            [
                (v.path, v.different, v.values, _shown(v.largest), _shown(v.relative))
                for v in apart.values
            ],
        )
    if apart.source:
        print()
        for each in apart.source:
            line(each)
    print(f"\n{count(apart.equal_tensors, 'tensor')} of equal values")


def _shown(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"


def _target(options: argparse.Namespace) -> Path | None:
    """The page's path: as given, or the model's name in this folder."""
    from burnish.codegen.output.generated import usual_name

    if options.html is None or options.html != Path():
        return options.html
    return Path(f"{usual_name(options.model)}.html")
