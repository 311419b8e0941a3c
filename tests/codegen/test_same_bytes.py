"""The same file gives the same source, weights and reasons: always and everywhere."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from tests.codegen.arrange.test_structure import encoder, pyramid
from tests.codegen.test_large import GRAPHS
from tests.harness.strip import stripped

MNIST = Path(__file__).parents[2] / "models" / "mnist" / "mnist.onnx"

GENERATES = """
import hashlib, sys
from pathlib import Path
from burnish.codegen.pipeline import Options, generate, write

for file in sorted(Path().glob("*.onnx")):
    for flat in (False, True):
        reasons = []
        options = Options(flat=flat, embed=file.stem == "mnist")
        made = generate(file.absolute(), options, explain=reasons.append)
        for written in write(made, Path("out")):
            digest = hashlib.sha256(written.read_bytes()).hexdigest()
            print(written.name, flat, digest)
        print(*reasons, sep="\\n")
"""


def _many_names() -> onnx.ModelProto:
    """Inputs, outputs and sizes of which sets might be made."""
    value = helper.make_tensor_value_info
    names = [f"part_{letter}" for letter in "qwertyuiop"]
    nodes = [
        helper.make_node("Concat", [f"{name}_in", f"{name}_in"], [name], axis=0)
        for name in names
    ]
    return helper.make_model(
        helper.make_graph(
            nodes,
            "g",
            [value(f"{n}_in", TensorProto.FLOAT, [f"{n}_size", 2]) for n in names],
            [value(n, TensorProto.FLOAT, None) for n in names],
        ),
        opset_imports=[helper.make_opsetid("", 20)],
    )


@pytest.fixture(scope="module")
def digests(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What processes print that differ in hashes, folder, time zone and language."""
    models = {
        "encoder": encoder(2),
        "nameless": stripped(encoder(3)),
        "pyramid": stripped(pyramid()),
        "scopes": GRAPHS["scopes in scopes"](160),
        "names": _many_names(),
    }
    printed = []
    for seed, folder in (("0", "one"), ("4242", "other place/äö")):
        place = tmp_path_factory.mktemp("bytes") / folder
        place.mkdir(parents=True)
        for name, model in models.items():
            onnx.save(model, place / f"{name}.onnx")
        (place / "mnist.onnx").write_bytes(MNIST.read_bytes())
        done = subprocess.run(
            [sys.executable, "-c", GENERATES],
            cwd=place,
            env=os.environ | {"PYTHONHASHSEED": seed, "TZ": f"X{len(seed)}"},
            capture_output=True,
            text=True,
            check=True,
        )
        printed.append(done.stdout)
    return printed


def test_in_every_process_and_folder(digests: list[str]) -> None:
    first, other = digests
    assert other.splitlines() == first.splitlines()


def test_both_forms_and_their_weights_were_compared(digests: list[str]) -> None:
    lines = digests[0].splitlines()
    written = [line.split()[:2] for line in lines if line.count(" ") == 2]
    for name in ("encoder", "nameless", "pyramid", "scopes"):
        for flat in ("False", "True"):
            assert [f"{name}.py", flat] in written
            assert [f"{name}.safetensors", flat] in written
    assert ["mnist.safetensors", "False"] not in written


def test_the_flat_source_is_another(digests: list[str]) -> None:
    sources = {
        line.split()[2] for line in digests[0].splitlines() if "encoder.py" in line
    }
    assert len(sources) == 2
