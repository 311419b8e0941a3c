"""`save_pretrained`: the files of a folder, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from burnish import nn
from burnish.errors import RecordError
from burnish.quantization import Calibration, Quantizer, QuantScheme
from burnish.store import load, open_weights, save_pretrained

CONFIG = {"model_type": "mine", "torch_dtype": "float16"}
WHOLE = {"config.json", "model.safetensors"}
SHARDS = {f"model-0000{i}-of-00003.safetensors" for i in (1, 2, 3)}
INDEX = "model.safetensors.index.json"


class Net(nn.Module):
    def __init__(self) -> None:
        self.a = nn.Linear(4, 4)
        self.b = nn.Linear(4, 4, bias=False)


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_weights_that_were_there_before_are_replaced(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    (model := Net()).map(lambda path, x: x.data)
    for size, files in ((10**6, WHOLE), ("64B", SHARDS), ("0.064 kB", SHARDS)):
        save_pretrained(model, folder, CONFIG, max_shard_size=size)
        assert names(folder) == {"config.json"} | files | (
            {INDEX} if files is SHARDS else set()
        )
        again = Net()
        assert load(again, folder).complete
        for name, array in model.state_dict().items():
            np.testing.assert_array_equal(again.state_dict()[name], array)
    page = json.loads((folder / INDEX).read_text())
    assert page["metadata"] == {"total_parameters": 36, "total_size": 144}
    assert list(page["weight_map"]) == ["a.bias", "a.weight", "b.weight"]
    save_pretrained(model, folder)
    assert names(folder) == WHOLE
    assert open_weights(folder).metadata == {"format": "pt"}


def test_the_configuration_says_what_is_written(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    save_pretrained(Net(), one, CONFIG, precision="float64")
    (one / "generation_config.json").write_text('{"top_k": 3}')
    assert json.loads((one / "config.json").read_text()) == {
        "model_type": "mine",
        "torch_dtype": "float64",
    }
    for config in (one, str(one)):
        save_pretrained(Net(), other, config)
        assert names(other) == WHOLE | {"generation_config.json"}
    save_pretrained(Net(), tmp_path / "third", one / "config.json", rename=[("a", "c")])
    assert names(tmp_path / "third") == WHOLE
    assert "c.weight" in open_weights(tmp_path / "third")


def quantized() -> nn.Module:
    made: nn.Module = Net().quantize_weights(
        Quantizer(Calibration.min_max(), QuantScheme("q8s"))
    )
    return made


REFUSED: dict[str, tuple[Any, dict[str, Any], str]] = {
    "no configuration": (Net, {}, "expected the model's configuration"),
    "not a size": (Net, {"config": CONFIG, "max_shard_size": "many"}, "'5GB'"),
    "no bytes": (Net, {"config": CONFIG, "max_shard_size": 0}, "'5GB'"),
    "quantized": (quantized, {"config": CONFIG}, r"a\.weight is quantized"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused_writes_nothing(case: str, tmp_path: Path) -> None:
    make, options, message = REFUSED[case]
    with pytest.raises(RecordError, match=message):
        save_pretrained(make(), tmp_path / "new", **options)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("text", ["[1]", "{", ""])
def test_a_configuration_that_is_none(text: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(RecordError, match=r"config\.json.*expected"):
        save_pretrained(Net(), tmp_path)
    assert names(tmp_path) == {"config.json"}
