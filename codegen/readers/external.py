"""External data: memory-mapped, confined to the model's folder."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path, PurePosixPath, PureWindowsPath

import numpy as np
import onnx_ir as ir

from burnish._files.budget import Budget
from burnish.codegen.errors import ReadError
from burnish.codegen.readers.tensors import FileTensor, MappedFile
from burnish.codegen.readers.wire import SELF

#: Types of elements that NumPy has itself.
_NATIVE = {ir.DataType.from_numpy(np.dtype(code)) for code in "?bhiqBHIQefdFD"}


class _Files:
    """Opens each external file once and collects problems."""

    def __init__(self, model: MappedFile) -> None:
        self.folder = model.path.parent
        self.opened: dict[str, MappedFile | None] = {SELF: model}
        self.problems: dict[str, None] = {}
        self.read = 0

    def open(self, location: str) -> MappedFile | None:
        if location not in self.opened:
            self.opened[location] = self._open(location)
        return self.opened[location]

    def _open(self, location: str) -> MappedFile | None:
        path = self.folder / location
        if not _stays_inside(self.folder, location):
            self.problems[f"{location!r} is outside the model's folder: refused"] = None
        elif not path.is_file():
            self.problems[f"{location!r} is missing"] = None
        else:
            try:
                return MappedFile(path)
            except OSError as error:
                self.problems[f"{location!r}: {error.strerror}"] = None
        return None

    @property
    def repeated(self) -> int:
        """Bytes of tensors beyond the files' sizes: overlapping tensors count twice."""
        held = sum(file.size for file in self.opened.values() if file is not None)
        return max(0, self.read - held)

    def tensor(self, tensor: ir.ExternalTensor) -> ir.TensorProtocol:
        """The same tensor, backed by a mapped file."""
        location = str(tensor.location)
        file = self.open(location)
        if file is None:
            return tensor
        size = math.ceil(tensor.size * tensor.dtype.bitwidth / 8)
        offset, length = tensor.offset or 0, size
        self.read += length
        if tensor.length not in (None, size):
            self.problems[
                f"tensor {tensor.name!r} needs {size} bytes, "
                f"its entry says {tensor.length}"
            ] = None
        elif offset + length > file.size:
            self.problems[
                f"{location!r} holds {file.size} bytes, tensor {tensor.name!r} needs "
                f"{offset + length}"
            ] = None
        return FileTensor(
            file, offset, length, tensor.dtype, ir.Shape(tensor.shape), tensor.name
        )


def _stays_inside(folder: Path, location: str) -> bool:
    windows = PureWindowsPath(location)
    if not location or "\0" in location or windows.drive or windows.root:
        return False
    if ".." in windows.parts or PurePosixPath(location).is_absolute():
        return False
    return (folder / location).resolve().is_relative_to(folder.resolve())


def attach(model: ir.Model, file: MappedFile, budget: Budget) -> None:
    """Memory-map every tensor with external data, in place.

    budget: counts bytes of files that are more than one tensor.
    """
    files = _Files(file)
    replace_external(model, files.tensor)
    _decode(model)
    budget.take(files.repeated)
    if files.problems:
        raise ReadError(
            "expected complete external data in the model's folder; "
            + "; ".join(files.problems).replace(f"{SELF!r}", "the file itself")
        )


def _decode(model: ir.Model) -> None:
    """Make arrays of the file's small tensors, which would be decoded each time."""
    for graph in model.graphs():
        for value in graph.initializers.values():
            held = value.const_value
            if isinstance(held, ir.serde.TensorProtoTensor) and held.dtype in _NATIVE:
                props = held.metadata_props
                made = ir.Tensor(
                    held.numpy(), shape=held.shape, name=held.name, metadata_props=props
                )
                value.const_value = made


def replace_external(
    model: ir.Model, change: Callable[[ir.ExternalTensor], ir.TensorProtocol]
) -> None:
    """Replace every external tensor of the graphs by what `change` makes of it."""
    for graph in model.graphs():
        for value in graph.initializers.values():
            if isinstance(value.const_value, ir.ExternalTensor):
                value.const_value = change(value.const_value)
        for node in graph:
            for name, attribute in list(node.attributes.items()):
                if isinstance(attribute.value, ir.ExternalTensor):
                    node.attributes[name] = ir.AttrTensor(name, change(attribute.value))
                elif attribute.type == ir.AttributeType.TENSORS:
                    node.attributes[name] = ir.AttrTensors(
                        name,
                        [
                            change(t) if isinstance(t, ir.ExternalTensor) else t
                            for t in attribute.as_tensors()
                        ],
                    )
