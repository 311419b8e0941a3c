"""What the gallery holds: for each model its original, its source and its weights.

Sources are part of the package. Originals that are too large for it lie in the cache
folder (see `_originals`), and the weights made from them are written beside them.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from burnish.models._originals import OriginalError, cache_folder

if TYPE_CHECKING:
    from burnish.codegen.pipeline import Generated

PACKAGE = Path(__file__).parent


@dataclass(frozen=True)
class Entry:
    """One imported file.

    folder: the model's package. original: the file's name. module: that of its source.
    script: the module that puts the original into the cache, "" when it is shipped.
    typed: its source has type annotations.
    """

    folder: str
    original: str
    module: str
    script: str = ""
    typed: bool = False

    @property
    def source(self) -> Path:
        return PACKAGE / self.folder / f"{self.module}.py"

    @property
    def numbers(self) -> Path:
        """Outputs of onnxruntime, to compare with."""
        return PACKAGE / self.folder / "check.npz"

    @property
    def file(self) -> Path:
        """Where the original is, or will be."""
        folder = cache_folder(self.folder) if self.script else PACKAGE / self.folder
        return folder / self.original

    @property
    def command(self) -> str:
        """What puts the original there."""
        return f"python -m burnish.models.{self.folder}.{self.script}"

    def model(self) -> Any:
        """The class that was generated."""
        return import_module(f"burnish.models.{self.folder}.{self.module}").Model


ENTRIES = (
    Entry("mnist", "mnist.onnx", "mnist"),
    Entry("minilm", "minilm.onnx", "minilm", "export"),
    Entry("silero_vad", "silero_vad_op18_ifless.onnx", "silero_vad", "fetch", True),
    Entry("attacut", "attacut-sc.onnx", "attacut", "fetch"),
    Entry("open_nsfw", "open_nsfw.onnx", "open_nsfw", "fetch"),
    Entry("squeezenet", "squeezenet_dynamo.onnx", "squeezenet_dynamo", "export"),
    Entry(
        "squeezenet", "squeezenet_torchscript.onnx", "squeezenet_torchscript", "export"
    ),
    Entry("resnet18", "resnet18_dynamo.onnx", "resnet18_dynamo", "export"),
    Entry("resnet18", "resnet18_torchscript.onnx", "resnet18_torchscript", "export"),
)
BY_MODULE = {entry.module: entry for entry in ENTRIES}


def original(entry: Entry) -> Path:
    """The original; it is fetched or exported when it is not there yet."""
    if not entry.file.is_file():
        print(f"{entry.original}: {entry.command}", file=sys.stderr)
        command = [sys.executable, *entry.command.split()[1:]]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode or not entry.file.is_file():
            reason = (done.stderr.strip() or "it wrote no such file").splitlines()[-1]
            raise OriginalError(f"{entry.command}: {reason.removeprefix('error: ')}")
    return entry.file


def generated(entry: Entry) -> Generated:
    """Source and weights, as the generator makes them of the original now."""
    try:
        from burnish.codegen.pipeline import Options, generate
    except ModuleNotFoundError as error:
        raise OriginalError(
            f"weights are read from {entry.original} by the generator, which needs "
            f"{error.name}; run: pip install 'burnish[codegen]'"
        ) from None
    named = Path(entry.original).stem == entry.module
    name = None if named else entry.module
    return generate(original(entry), Options(name=name, typed=entry.typed))


def weights(module: str) -> Path:
    """The weights file of a gallery model, written to the cache at its first use."""
    entry = BY_MODULE[module]
    folder = cache_folder(entry.folder)
    path = folder / f"{module}.safetensors"
    source = entry.source.read_text("utf-8")
    copy = folder / f"{module}.py"  # tells for which source the weights were written
    if path.is_file() and copy.is_file() and copy.read_text("utf-8") == source:
        return path
    made = generated(entry)
    if made.text != source:
        raise OriginalError(
            f"{entry.source.name} is not what this version generates; "
            f"run: python -m burnish.models.regenerate {entry.folder}"
        )
    from burnish.codegen.pipeline import write

    print(f"writing {path}", file=sys.stderr)
    for stale in (copy, path):  # the cache is this module's own
        stale.unlink(missing_ok=True)
    write(made, folder)
    return path
