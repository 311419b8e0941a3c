"""Decide whether an output path may be replaced: by header digest and weights mark.

A file may be replaced when Burnish wrote it and its digest shows that it is unedited.
Every other file is kept unless the user asks to replace it.
"""

from __future__ import annotations

import base64
import binascii
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from burnish import serialize
from burnish.codegen.errors import ConversionError, OwnershipError, UsageError, spelled
from burnish.codegen.output.generated import Existing, Generated, Options
from burnish.codegen.output.threeway import merged
from burnish.codegen.search import find
from burnish.codegen.signature import (
    Header,
    Signature,
    header_in,
    lines_ended,
    signature_of,
)
from burnish.errors import RecordError

MODULE, SOURCE, SEAL = "burnish.module", "burnish.source", serialize.SEAL
"""A weights file's metadata: the module it belongs to, that module's source as it was
generated (base64), and the digest of the file."""

_NEAR = 3
"""Folders between a model or its source and the folder of their project."""

_EDITED = "was changed since Burnish wrote it"
_FOREIGN = "was not written by Burnish"


@dataclass(frozen=True)
class Settled:
    """The files to write, once it is decided which may be replaced.

    text: the source, with the edits that were merged into it. weights: whether they are
    written. kept: files that go to a name of their own first. conflicts: places in the
    text where both sides are.
    """

    generated: Generated
    folder: Path
    text: str
    weights: bool
    kept: tuple[Path, ...] = ()
    conflicts: int = 0

    @property
    def source(self) -> Path:
        return self.folder / f"{self.generated.name}.py"

    @property
    def stored(self) -> Path:
        return self.folder / f"{self.generated.name}.safetensors"

    @property
    def has_weights(self) -> bool:
        """Whether a weights file belongs to the source, new or there already."""
        return _writes_weights(self.generated)


def settle(generated: Generated, folder: Path, existing: Existing) -> Settled:
    """Decide for each output whether an existing file is replaced; nothing is written.

    Raises OwnershipError for a file that may not be replaced, and UsageError where
    an output would replace an input.
    """
    plan = Settled(generated, folder, generated.text, _writes_weights(generated))
    plan = _beside_inputs(plan)
    reasons = {plan.source: source_reason(plan.source, generated)}
    if plan.weights:
        reasons[plan.stored] = weights_reason(plan.stored, generated.name)
    taken = {path: reason for path, reason in reasons.items() if reason}
    edited = list(taken) == [plan.source] and taken[plan.source].startswith(_EDITED)
    if not taken:
        return replace(plan, generated=_telling(plan))
    if existing == "force":
        return replace(plan, kept=tuple(taken))
    if existing == "merge" and edited:
        text, conflicts = _merge(plan, _read(plan.source))
        return replace(plan, text=text, conflicts=conflicts)
    raise OwnershipError(taken, mergeable=edited)


@contextmanager
def keeping(paths: Iterable[Path]) -> Iterator[list[Path]]:
    """Keep files as .bak while others take their places; not where that fails."""
    kept = [_keep(path) for path in paths]
    try:
        yield kept
    except BaseException:
        for path in kept:
            path.unlink(missing_ok=True)
        raise


def _keep(path: Path) -> Path:
    """A hard link to or copy of `path` under an unused name."""
    number = 1
    while os.path.lexists(
        kept := path.with_name(f"{path.name}.bak{number if number > 1 else ''}")
    ):
        number += 1
    try:
        os.link(path, kept, follow_symlinks=False)
    except OSError:  # a file system without links
        shutil.copy2(path, kept, follow_symlinks=False)
    return kept


# --- source ---


def source_reason(path: Path, generated: Generated) -> str:
    """Why the file at `path` may not be replaced by this source; "" where it may."""
    if not path.is_file() or not path.stat().st_size:
        return ""
    try:
        text = _read(path)
    except UnicodeDecodeError:
        return _FOREIGN
    if text == generated.text:
        return ""
    signature = signature_of(text)
    header = _header_in(text)
    if signature is None:
        return f"{_EDITED}: its header has no digest" if header else _FOREIGN
    if not signature.genuine:
        return _EDITED
    return _another(header, generated, path.parent) if header else ""


def _another(header: Header, generated: Generated, folder: Path) -> str:
    """Why a source is another model's, where it is, rather than an older one's."""
    new = _header_in(generated.text)
    if new is None or header.sha256 == new.sha256:
        return ""
    named = "opset" if header.kind.startswith("opset") else header.kind
    if header.model != new.model or not new.kind.startswith(named):
        return f"is the source of another model, {header.model} ({header.kind})"
    given = generated.inputs[0].resolve()
    for other in find(header.model, header.sha256, _project(given, folder)):
        if other.resolve() != given:
            return f"is the source of another model, {other}"
    return ""


def _telling(plan: Settled) -> Generated:
    """With a note where the source that goes was of other content under this name."""
    made = plan.generated
    if not plan.source.is_file() or (there := _read(plan.source)) == made.text:
        return made
    old, new = _header_in(there), _header_in(made.text)
    if old is None or new is None or old.sha256 == new.sha256:
        return made
    note = (
        f"{plan.source} was made of another {old.model} (sha256 {old.sha256[:12]}), "
        f"which was not found; {made.inputs[0]} is taken for its new export"
    )
    return replace(made, notes=(*made.notes, note))


def _project(model: Path, folder: Path) -> tuple[Path, ...]:
    """The folder that a model and its source have in common, where they are near."""
    common = Path(os.path.commonpath((model.parent, folder.resolve())))
    far = max(
        len(place.relative_to(common).parts)
        for place in (model.parent, folder.resolve())
    )
    return (common,) if far <= _NEAR else ()


def _header_in(text: str) -> Header | None:
    try:
        return header_in(text)
    except (SyntaxError, ValueError):
        return None


def _read(path: Path) -> str:
    return lines_ended(path.read_bytes().decode())


# --- weights ---


def mark(name: str, text: str) -> dict[str, str]:
    """The metadata of the weights of a module with this source."""
    return {MODULE: name, SOURCE: base64.b64encode(text.encode()).decode()}


def weights_reason(path: Path, name: str | None = None) -> str:
    """Why a weights file may not be replaced by those of `name`; "" where it may.

    name: None for those of any module.
    """
    if not path.is_file():
        return ""
    try:
        module = serialize.header(path).metadata.get(MODULE)
        if module is None:
            return _FOREIGN
        if not serialize.is_sealed(path, SEAL):
            return _EDITED
    except RecordError:
        return _FOREIGN
    if name in (None, module):
        return ""
    return f"holds the weights of another module, {module}"


def source_in(path: Path) -> str:
    """The source that a weights file was written with; "" where it has none."""
    try:
        held = serialize.header(path).metadata.get(SOURCE, "")
        return base64.b64decode(held, validate=True).decode()
    except (OSError, RecordError, binascii.Error, UnicodeDecodeError):
        return ""


def _writes_weights(generated: Generated) -> bool:
    held = bool(generated.weights or generated.metadata)
    return held and not generated.in_source


def _beside_inputs(plan: Settled) -> Settled:
    """The same without weights that are in place already.

    Raises UsageError where anything else would replace a file that it is made of.
    """
    made = plan.generated
    for path in (plan.source, *([plan.stored] if plan.weights else [])):
        if not any(_same(path, other) for other in made.inputs):
            continue
        half = any(entry.dtype != entry.weight.dtype for entry in made.weights)
        in_place = made.origin is not None and _same(path, made.origin)
        if path == plan.source or half or not (in_place and made.as_stored):
            other = spelled("out_dir or name", "-o or --name")
            raise UsageError(
                f"{path}: expected another {other}, got the model file itself, which "
                f"would be replaced"
            )
        return replace(plan, weights=False)
    return plan


def _same(one: Path, other: Path) -> bool:
    return one.exists() and other.exists() and one.samefile(other)


# --- merging ---


def _merge(plan: Settled, yours: str) -> tuple[str, int]:
    signature = signature_of(yours)
    base = source_in(plan.stored)
    if not base or (signature and _digest(base) != signature.digest):
        base = _base(plan, yours, signature)
    text, conflicts = merged(base, yours, plan.text)
    windows = b"\r\n" in plan.source.read_bytes()
    return text.replace("\n", "\r\n") if windows else text, conflicts


def _base(plan: Settled, yours: str, signature: Signature | None) -> str:
    """The source as it was generated before it was edited: generated once more."""
    header = _header_in(yours)
    if header is None or signature is None:
        raise _no_base(plan.source, "its header does not tell what it was made of")
    made = plan.generated
    given = made.inputs[0].resolve()
    places = (plan.folder, given.parent, *_project(given, plan.folder), Path())
    for model in find(header.model, header.sha256, places):
        whole = model.parent if model.name == "config.json" else model
        text = made.again(whole, Options.of(header.options))
        if _digest(text) == signature.digest:
            return text
        raise _no_base(
            plan.source,
            f"{model} gives another source now than with burnish {signature.version}; "
            f"merge with that version, the same templates and the same rules",
        )
    raise _no_base(
        plan.source,
        f"{header.model} as it was (sha256 {header.sha256}) was not found; put it "
        f"beside the source or below the current folder",
    )


def _digest(text: str) -> str:
    signature = signature_of(text)
    return signature.digest if signature and signature.genuine else ""


def _no_base(path: Path, reason: str) -> ConversionError:
    merge, force = (
        spelled(f'existing="{word}"', f"--{word}") for word in ("merge", "force")
    )
    return ConversionError(
        f"{path}: {merge}: expected to know the source as it was generated, but "
        f"{reason}; {force} replaces the file and keeps it as .bak"
    )
