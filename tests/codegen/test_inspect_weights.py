"""`burnish inspect` on weights files."""

import json
from pathlib import Path

import numpy as np
import pytest

from burnish import serialize
from burnish.codegen.cli import main

SAMPLES = Path(__file__).parent.parent / "runtime" / "serialize" / "samples"


def test_a_checkpoint_is_listed(capsys):
    assert main(["inspect", str(SAMPLES / "zip.pt")]) == 0
    text = capsys.readouterr().out
    lines = [line.split() for line in text.splitlines()]
    assert ["state_dict.weight", "[2,", "3]", "float32", "24"] in lines
    tied = ["state_dict.tied", "[2,", "3]", "float32", "24", "state_dict.weight"]
    assert tied in lines
    assert "beside: epoch = 3" in text
    assert "9 tensors, 29 values, 114 bytes" in text


def test_a_folder_of_safetensors_as_json(capsys, tmp_path):
    path = tmp_path / "model.safetensors"
    serialize.save_file({"a": np.ones((2, 3))}, path, {"format": "pt"})
    assert main(["inspect", str(tmp_path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["kind"] == "safetensors"
    assert found["metadata"] == {"format": "pt"}
    (tensor,) = found["tensors"]
    assert (tensor["name"], tensor["shape"], tensor["bytes"]) == ("a", [2, 3], 48)


@pytest.mark.parametrize("name", ["module.pt", "script.pt"])
def test_a_pickled_module_needs_the_flag(name, capsys):
    assert main(["inspect", str(SAMPLES / name)]) == 1
    assert "--inert" in capsys.readouterr().err
    assert main(["inspect", str(SAMPLES / name), "--inert"]) == 0
    assert "fc.weight" in capsys.readouterr().out


def test_a_damaged_file_is_an_error(capsys, tmp_path):
    path = tmp_path / "a.pt"
    path.write_bytes((SAMPLES / "zip.pt").read_bytes()[:-50])
    assert main(["inspect", str(path)]) == 1
    assert "a.pt: ZIP archive" in capsys.readouterr().err
