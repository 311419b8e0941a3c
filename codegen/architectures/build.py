"""Build source and weights from a Hugging Face folder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from burnish.codegen.architectures import (
    audio,
    clip,
    decoders,
    encoders,
    gpt2,
    t5,
    vision,
)
from burnish.codegen.architectures.config import Config, read_json
from burnish.codegen.architectures.families import find, head_of, model_types
from burnish.codegen.architectures.fit import fitted, module_of
from burnish.codegen.architectures.page import page
from burnish.codegen.errors import Explain, UnsupportedError
from burnish.codegen.names.identifier import plain
from burnish.codegen.program import Weight
from burnish.codegen.render.layout import wrapped
from burnish.codegen.search import identity
from burnish.codegen.signature import LINES
from burnish.serialize import open_weights

FAMILIES = (audio, clip, decoders, encoders, gpt2, t5, vision)
"""Importing these modules registers their architectures."""


def is_model_folder(path: Path) -> bool:
    """Whether a path is a folder with a configuration, as transformers saves it."""
    return (path / "config.json").is_file()


def unknown(folder: Path) -> str:
    """Why no template supports the configuration; "" if one does.

    Raises ReadError for a config.json that is none.
    """
    values, _ = read_json(folder / "config.json")
    named = values.get("model_type")
    if find(named) is not None:
        return ""
    return (
        f"{folder / 'config.json'}: model_type: expected one out of "
        f"{', '.join(model_types())}, got {plain(str(named))}"
    )


@dataclass(frozen=True)
class Architecture:
    """A model of a folder.

    name: the class that is written. sizes: its constructor's defaults, of a CLIP model
    those of both halves. text: the source, from words on where its weights are and the
    weights it embeds. files: all that it was read from.
    """

    name: str
    model_type: str
    sizes: dict[str, object]
    text: Callable[[str, str | None], str]
    weights: tuple[tuple[str, Weight], ...]
    notes: tuple[str, ...]
    files: tuple[Path, ...]


def build(
    folder: Path,
    *,
    template_dir: Path | None = None,
    typed: bool = False,
    explain: Explain,
) -> Architecture:
    """Read a folder with config.json and weights.

    Raises ReadError or RecordError for files that are damaged or do not fit, and
    UnsupportedError for what no template writes: each option by its name.
    """
    values, _ = read_json(folder / "config.json")
    where = str(folder / "config.json")
    stored = open_weights(folder)
    config = Config(values, where, stored)
    if (beside := folder / "generation_config.json").is_file():
        config.generation, _ = read_json(beside)
    found = find(config.raw("model_type"))
    if found is None:
        raise UnsupportedError(unknown(folder))
    head = head_of(config, found)
    prefix = found.prefixes[values["model_type"]]
    name = prefix + head
    explain(f"{where}: {name}, written by {found.template}")
    base = {"base": found.base, "base_name": prefix + found.heads[0]}
    made = {"name": name, "head": head, **base, **found.values(config, head)}
    config.finish()
    digest = identity(folder / "config.json", stored)

    def text(words: str, embedded: str | None) -> str:
        first = f"Imported from config.json ({values['model_type']}), sha256"
        lines = (first, f"{digest};", *wrapped(f"{words}."), *LINES)
        return page(found.template, made, lines, embedded, template_dir, typed=typed)

    model = module_of(text("", None))
    weights, notes = fitted(model, stored, found.base, str(folder))
    return Architecture(
        name,
        values["model_type"],
        _sizes(made),
        text,
        tuple(
            (path, Weight(path, held.dtype, held.shape, held.read, trained))
            for path, held, trained in weights
        ),
        (*config.notes, *notes),
        (folder / "config.json", *map(Path, stored.files)),
    )


def _sizes(made: dict[str, Any]) -> dict[str, object]:
    """The sizes of a model, or those of the models inside it, with a prefix."""
    if "sizes" in made:
        return dict(made["sizes"])
    inner = [(half, made[half]) for half in ("text", "vision") if made[half]]
    return {
        f"{h}.{n}": value for h, part in inner for n, value in part["sizes"].items()
    }
