"""Model files of the corpus that need no peer."""

from __future__ import annotations

from pathlib import Path

import onnx

from burnish.codegen.pipeline import Options
from burnish.models._gallery import BY_MODULE, ENTRIES
from tests.codegen.arrange.test_structure import encoder, pyramid
from tests.codegen.test_large import GRAPHS
from tests.codegen.test_tensorflow import google_bert, keras_resnet
from tests.corpus.recorder import add
from tests.harness.onnx_cases import cases
from tests.harness.small_gpt2 import write_gpt2
from tests.harness.strip import stripped

MNIST = BY_MODULE["mnist"]


def write_cases(folder: Path, only: str = "") -> None:
    """Write the model files into a corpus: gallery, folders, graphs, node cases.

    Of the gallery those whose original is there, shipped or in the cache. Node cases
    are made where names that start with `only` may be theirs.
    """
    place = folder / "made"
    place.mkdir(parents=True)
    for entry in ENTRIES:
        if entry.file.is_file():
            name = f"gallery/{entry.module}"
            add(folder, entry.file, Options(name=entry.module), name)
            add(folder, entry.file, Options(name=entry.module, flat=True), name)
    write_gpt2(place / "gpt2")
    add(folder, place / "gpt2", Options(), "folder/gpt2")
    _add_weights(folder, place / "gpt2" / "model.safetensors")
    models = {
        "encoder": encoder(3),
        "pyramid": pyramid(),
        **{name: build() for name, build in GRAPHS.items()},
    }
    models |= {f"{name} stripped": stripped(model) for name, model in models.items()}
    for build in (keras_resnet, google_bert):
        models[build.__name__] = onnx.load(build(place / f"{build.__name__}.onnx"))
    for name, model in models.items():
        _add_model(folder, f"graph/{name}", model, Options())
        _add_model(folder, f"graph/{name}", model, Options(flat=True))
    for name, case in cases().items() if _may_start("node/", only) else ():
        _add_model(folder, f"node/{name}", case.model, Options())


def _may_start(prefix: str, only: str) -> bool:
    return prefix.startswith(only) or only.startswith(prefix)


def _add_model(
    folder: Path, name: str, model: onnx.ModelProto, options: Options
) -> None:
    path = folder / "made" / "model.onnx"
    path.write_bytes(model.SerializeToString())
    add(folder, path, options, name)


def _add_weights(folder: Path, path: Path) -> None:
    add(folder, path, Options(), "weights/gpt2")
    add(folder, path, Options(half=True), "weights/gpt2")
