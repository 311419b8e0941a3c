"""The corpus: what its digests see, and what they leave out."""

from __future__ import annotations

from pathlib import Path

import onnx

from burnish.codegen.pipeline import Options, generate
from tests.codegen.arrange.test_structure import pyramid
from tests.corpus.__main__ import FILE
from tests.corpus.digests import body, digest, of_folder
from tests.corpus.graphs import MNIST
from tests.corpus.recorder import add


def test_the_frozen_digests_of_what_is_shipped() -> None:
    frozen = dict(line.split(": ") for line in FILE.read_text().splitlines())
    options = Options(name=MNIST.module)
    found = digest(MNIST.file, options)
    assert " ".join(found) == frozen["gallery/mnist name=mnist"]
    assert digest(MNIST.file, Options(name="mnist", half=True)) != found


def test_a_recorded_model_is_kept_with_its_weights_and_once(tmp_path: Path) -> None:
    model, options = tmp_path / "net.onnx", Options(half=True)
    external = {"save_as_external_data": True, "location": "net.data"}
    onnx.save(pyramid(), model, **external, size_threshold=0)
    for _ in range(2):
        add(tmp_path / "corpus", model, options, "net")
    found = of_folder(tmp_path / "corpus")
    assert found == {"net half=True": " ".join(digest(model, options))}


def test_a_header_s_digests_are_no_difference() -> None:
    text = generate(MNIST.file).text
    header, rest = text.split('"""\n', 1)
    assert body(f'{header}Another line.\n"""\n{rest}') == body(text)
    assert body(f'{header}"""\n{rest}x = 1\n') != body(text)
    assert body(text.replace("images ->", "pictures ->", 1)) != body(text)
