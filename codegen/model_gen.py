"""Generate several models from a build script, all or none."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, Self

from burnish.codegen.errors import UsageError, already, noting, others, spelled
from burnish.codegen.output.generated import Existing, Generated, Options
from burnish.codegen.output.ownership import settle
from burnish.codegen.pipeline import generate, put


class ModelGen:
    """Generates model code from a build script.

    ModelGen(out_dir="my_app/models", embed_states=True).input("resnet18.onnx").run()

    existing: how to treat a file there that was edited or that Burnish did not
    write. "keep": it stays, and nothing is written; "force": it is kept as .bak;
    "merge": changes to the source go into the new one.
    """

    def __init__(
        self,
        out_dir: str | Path,
        *,
        embed_states: bool = False,
        half_precision: bool = False,
        simplify: bool = True,
        flat: bool = False,
        typed: bool = False,
        weights: bool = True,
        quantize: Literal["q8", "q4"] | None = None,
        standalone: bool = False,
        selftest: bool = False,
        allow_unknown: bool = False,
        dequantize: bool = False,
        name: str | None = None,
        template_dir: str | Path | None = None,
        existing: Existing = "keep",
    ):
        self.existing = existing
        self.out_dir = Path(out_dir)
        self.template_dir = Path(template_dir) if template_dir else None
        self.options = Options(
            name,
            half_precision,
            embed_states,
            simplify,
            flat,
            typed,
            weights,
            quantize,
            standalone,
            selftest,
            allow_unknown,
            dequantize,
        )
        self.inputs: list[Path] = []

    def input(self, path: str | Path) -> Self:
        """Add a model file."""
        self.inputs.append(Path(path))
        return self

    def run(self) -> list[Path]:
        """Generate every model, then write them all; the files written.

        Raises ConversionError when one cannot be converted, or would replace a file
        that stays; nothing is written then. A model's files appear together or not at
        all; an error while they are written notes those of the models before it.
        """
        with noting(lambda: others(len(self.inputs))):
            made = [
                generate(path, self.options, template_dir=self.template_dir)
                for path in self.inputs
            ]
            refuse_one_name_twice(made)
            settled = [settle(each, self.out_dir, self.existing) for each in made]
        written: list[Path] = []
        with noting(lambda: already(written)):
            for each in settled:
                written += put(each)[0]
        return written


def refuse_one_name_twice(made: Sequence[Generated]) -> None:
    """Raise UsageError for models of one name, whose files would replace each other."""
    names = [generated.name for generated in made]
    if twice := {name for name in names if names.count(name) > 1}:
        raise UsageError(
            f"expected models of different names, got {', '.join(sorted(twice))} "
            f"more than once; generate them one by one with {spelled('name')}"
        )
