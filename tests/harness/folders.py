"""A folder that transformers saved, as the module that is generated from it.

    network = hugging_face("BertModel", transformers.BertConfig(**SMALL))
    case = Folder(network, tmp_path)
    case.check(input_ids=ids, attention_mask=mask)

Agreement is checked where the mask holds; the saved-back folder must load in
transformers with no name left over and give the same numbers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers

from burnish.codegen.pipeline import Options, generate, write
from tests.harness.imported import load_module
from tests.harness.ruff import complaints, formatted

TOLERANCE = 1e-4
SELECT = "E,F,I,B,UP,RUF,ARG,SIM,C4,PT,PLW0127"
#: An empty line between two attributes that are set.
GAP = re.compile(r"^ {8}self\..*\n\n {8}\w", re.MULTILINE)


def hugging_face(name: str, config: Any, seed: int = 0) -> Any:
    """A model of transformers with random weights, no two alike and none zero."""
    torch.manual_seed(seed)
    model = getattr(transformers, name)(config).eval()
    for parameter in model.parameters():
        parameter.data += 0.05 * torch.randn_like(parameter)
    return model


class Folder:
    """One of transformers' models beside the module generated from its folder."""

    def __init__(self, network: Any, place: Path, **saving: Any):
        self.network = network
        self.folder = place / "saved"
        network.save_pretrained(self.folder, **saving)
        self.generated = generate(self.folder, Options(name="generated"))
        source, weights = write(self.generated, place)
        self.text = source.read_text()
        self.model = load_module(source).Model.from_file(weights)

    def check(self, **inputs: Any) -> None:
        """The source is clean, the numbers agree, and the weights go back."""
        self.check_source()
        self.check_numbers(self.network, inputs)
        self.model.save_file(
            self.folder / "model.safetensors", metadata={"format": "pt"}
        )
        kind = type(self.network)
        again, report = kind.from_pretrained(self.folder, output_loading_info=True)
        assert not any(report.values()), report
        self.check_numbers(again.eval(), inputs)

    def check_source(self) -> None:
        assert formatted(self.text) == self.text, self.text
        found = complaints(self.text, SELECT)
        assert not found, found
        assert not GAP.search(self.text), self.text
        assert f"class {type(self.network).__name__}(nn.Module):" in self.text

    def check_numbers(self, network: Any, inputs: dict[str, Any]) -> None:
        """Every output that both have, where the mask holds."""
        given = {name: torch.tensor(array) for name, array in inputs.items()}
        with torch.no_grad():
            theirs = flat(network(**given, return_dict=True).to_tuple())
        mine = flat(self.model(**inputs))
        assert len(mine) <= len(theirs), (len(mine), len(theirs))
        mask = inputs.get("attention_mask")
        for one, other in zip(mine, theirs, strict=False):
            one, other = np.asarray(one), other.numpy()
            assert one.shape == other.shape
            if mask is not None and one.shape[: mask.ndim] == mask.shape:
                one, other = one[mask > 0], other[mask > 0]
            scale = max(1.0, float(np.abs(other).max()))
            np.testing.assert_allclose(one, other, 0, TOLERANCE * scale, self.text)


def flat(outputs: Any) -> list[Any]:
    """Tensors out of one, or out of tuples of them; caches are left out."""
    if isinstance(outputs, tuple | list):
        return [tensor for each in outputs for tensor in flat(each)]
    return [outputs] if hasattr(outputs, "shape") else []


def batch(
    lengths: Sequence[int] = (7, 4), vocab: int = 50, pad: int = 0, left: bool = False
) -> dict[str, np.ndarray]:
    """Token ids of different lengths, and the mask of what is none."""
    rng = np.random.default_rng(0)
    ids = np.full((len(lengths), max(lengths)), pad)
    mask = np.zeros_like(ids)
    for row, length in enumerate(lengths):
        part = slice(-length, None) if left else slice(length)
        ids[row, part] = rng.integers(3, vocab, length)
        mask[row, part] = 1
    return {"input_ids": ids, "attention_mask": mask}
