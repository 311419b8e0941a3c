"""`burnish inspect` on weights files."""

import json
from pathlib import Path

import numpy as np
import pytest

from burnish import serialize
from burnish.codegen.cli import main
from tests.harness.small_gpt2 import CONFIG, write_gpt2

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
    assert found["beside"] == {}
    assert found["architecture"] is None
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


def test_tensors_with_dots_in_their_names_are_not_beside_themselves(capsys, tmp_path):
    path = tmp_path / "a.safetensors"
    serialize.save_file({"fc.0.weight": np.ones(2), "fc": np.ones(1)}, path)
    assert main(["inspect", str(path)]) == 0
    assert "beside" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("change", "code", "out", "err"),
    [
        (
            {},
            0,
            "GPT2LMHeadModel, model_type gpt2\nvocab=50, positions=32, dim=16,",
            "",
        ),
        (
            {"model_type": "gptx"},
            0,
            "transformer.wte.weight",
            "got gptx; weights alone",
        ),
        ({"alibi": True}, 1, "transformer.wte.weight", "config.json: alibi: expected"),
        ({"n_embd": 18}, 1, "16 tensors", "weights do not fit config.json"),
    ],
)
def test_a_folder_says_what_its_configuration_describes(
    change, code, out, err, capsys, tmp_path
):
    folder = tmp_path / "my-gpt2"
    write_gpt2(folder)
    (folder / "config.json").write_text(json.dumps(CONFIG | change))
    assert main(["inspect", str(folder)]) == code
    printed = capsys.readouterr()
    assert printed.out.startswith("my-gpt2: safetensors\n")
    assert out in printed.out
    assert (err or f"next: burnish generate {folder}") in printed.err
