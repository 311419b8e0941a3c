"""Convert an ONNX file to a newer opset."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import onnx_ir as ir

from burnish._files.atomic import atomic_write
from burnish.codegen.errors import ReadError, UsageError, keep_inputs, spelled
from burnish.codegen.readers import in_files
from burnish.codegen.readers.message import NEWEST, OLDEST
from burnish.codegen.readers.onnx import load_for_upgrade

#: A single file above this size of weights gets them beside it (protobuf ends at 2 GB).
INLINE = 1_500_000_000
_ALIGNED = 64


@dataclass(frozen=True)
class Upgraded:
    """The result of `upgrade`."""

    model: str
    before: int
    after: int
    files: tuple[str, ...]
    notes: tuple[str, ...]


def upgrade(path: str | Path, out: str | Path, opset: int | None = None) -> Upgraded:
    """Write the model at `path` to `out` with opset `opset`, 16 by default.

    Weights beside `path` are written beside `out`. Nothing appears at `out`
    when the model cannot be upgraded.
    """
    path, out = Path(path), Path(out)
    target = OLDEST if opset is None else opset
    if not OLDEST <= target <= NEWEST:
        raise UsageError(
            f"{spelled('opset')}: expected {OLDEST} to {NEWEST}, got {target}"
        )
    if not out.parent.is_dir():
        raise UsageError(f"{out}: expected a folder {out.parent}, there is none")
    keep_inputs([out], [path])
    notes: list[str] = []
    model, before = load_for_upgrade(path, target, notes.append)
    if before >= target:
        raise UsageError(
            f"{path}: has opset {before} already, expected an older one than {target}; "
            f"to go further, give {spelled('opset')} {min(before + 1, NEWEST)} or more"
        )
    files = _write(model, path, out)
    return Upgraded(str(path), before, target, tuple(files), tuple(notes))


def _write(model: ir.Model, path: Path, out: Path) -> list[str]:
    tensors = list(in_files(model))
    data = out.with_name(f"{out.name}.data")
    keep_inputs([out, data], {tensor.file.path: None for _, tensor in tensors})
    beside = any(tensor.file.path != path for _, tensor in tensors)
    if not beside and sum(tensor.length for _, tensor in tensors) <= INLINE:
        _save(model, out)
        return [str(out)]
    with atomic_write(data) as file:
        for value, tensor in tensors:
            file.write(b"\0" * (-file.tell() % _ALIGNED))
            offset = file.tell()
            tensor.tofile(file)
            value.const_value = ir.ExternalTensor(
                data.name,
                offset,
                tensor.length,
                tensor.dtype,
                shape=ir.Shape(tensor.shape.numpy()),
                name=value.name or "",
                base_dir=out.parent,
            )
    _save(model, out)
    return [str(out), str(data)]


def _save(model: ir.Model, out: Path) -> None:
    try:
        data = ir.to_proto(model).SerializeToString()
    except ValueError as error:
        raise ReadError(f"{out}: the model cannot be written ({error})") from error
    with atomic_write(out) as file:
        file.write(data)
