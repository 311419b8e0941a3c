"""Other contents of weights files, hostile names, refusals, the command."""

from __future__ import annotations

import builtins
import json
from pathlib import Path

import numpy as np
import pytest

from burnish.codegen.cli import main
from burnish.codegen.errors import UnsupportedError, UsageError
from burnish.codegen.pipeline import Options, generate, write
from burnish.errors import RecordError, UnwrittenError
from burnish.nn import Module, Unwritten
from burnish.serialize import save_file
from tests.codegen.test_injection import ACT, PAYLOADS
from tests.harness.imported import load_class
from tests.harness.ruff import complaints, formatted


def ones(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


def linear(prefix: str, ins: int = 3, outs: int = 4) -> dict[str, np.ndarray]:
    return {f"{prefix}.weight": ones(outs, ins), f"{prefix}.bias": ones(outs)}


def loaded(source: Path) -> Module:
    return load_class(source).from_file(source.with_suffix(".safetensors"))


NAMES = PAYLOADS | {
    "quote and import": 'a"; import os',
    "digits": "007",
    "far": "999999",
    "empty parts": "..",
    "deep": ".".join("abcdefghij"),
    "forward": "forward",
    "device": "device",
    "numbers with a name": "0.a.1",
}


PLACES = ("{0}", "a.{0}", "{0}.b", "blocks.0.{0}", "a{0}")


def hostile(name: str, place: str) -> dict[str, np.ndarray]:
    return linear("first") | linear(place.format(name)) | {f"{name}.x": ones(2)}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES.keys())
def test_a_hostile_name(name: str, place: str, tmp_path: Path) -> None:
    held = hostile(name, place)
    path = tmp_path / "hostile.safetensors"
    save_file(held, path)
    explained: list[str] = []
    generated = generate(path, explain=explained.append)
    write(generated, tmp_path / "out")
    model = loaded(tmp_path / "out" / "hostile.py")
    assert not hasattr(builtins, "pwned")
    assert len(list(model.named_tensors())) == len(held)


def test_hostile_sources_are_well_formed(tmp_path: Path) -> None:
    """One call of the formatter and the linter for all of them."""
    path = tmp_path / "hostile.safetensors"
    texts = []
    for name in NAMES.values():
        for place in PLACES:
            save_file(hostile(name, place), path)
            texts.append(generate(path).text.partition("from burnish import nn\n")[2])
    whole = "from burnish import nn\n" + "".join(texts)
    assert whole == formatted(whole)
    assert not complaints(whole, "E9,F401,F821")


@pytest.mark.parametrize("prefix", ["heads.", "", "heads.0.", "first.x."])
def test_names_that_are_no_attributes_stay(prefix: str, tmp_path: Path) -> None:
    held = linear(f"{prefix}a-b") | linear(f"{prefix}3x3") | linear(f"{prefix}{ACT}")
    held |= linear("first.y")
    save_file(held, tmp_path / "some.safetensors")
    write(generate(tmp_path / "some.safetensors"), tmp_path / "out")
    model = loaded(tmp_path / "out" / "some.py")
    assert set(model.state_dict()) == set(held)


def test_a_hostile_file_name(tmp_path: Path) -> None:
    path = tmp_path / f'a"""; {ACT}.safetensors'.replace("/", "")
    save_file(linear("fc"), path)
    text = generate(path).text
    exec(compile(text, "hostile", "exec"), {"__name__": "hostile"})
    assert not hasattr(builtins, "pwned")


@pytest.mark.parametrize("holder", ["state_dict", "model", "params", "theirs"])
def test_the_model_beside_an_optimizer(holder: str, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    layer = torch.nn.Linear(3, 4)
    moments = {n: torch.ones_like(p) for n, p in enumerate(layer.parameters())}
    groups = [{"lr": 1e-3, "betas": (0.9, 0.999), "params": [*moments]}]
    state = {n: {"step": torch.ones(()), "exp_avg": m} for n, m in moments.items()}
    adam = {"state": state, "param_groups": groups}
    held = {holder: {f"module.fc.{n}": t for n, t in layer.state_dict().items()}}
    beside = {} if holder == "theirs" else {"optimizer": adam}
    torch.save(held | beside | {"epoch": 3}, tmp_path / "last.ckpt")
    made = generate(tmp_path / "last.ckpt")
    assert "self.fc = nn.Linear(3, 4)" in made.text
    assert {entry.path for entry in made.weights} == {"fc.weight", "fc.bias"}
    assert any(holder in note for note in made.notes)


@pytest.mark.parametrize(
    ("held", "message"),
    [
        ({}, "expected tensors, the file holds none"),
        ({"a": ones(2), "a.b": ones(2)}, "'a' is both"),
        ({".".join("a" * 60): ones(2)}, "modules at most, got 59"),
    ],
    ids=["nothing", "a tensor and a module", "endless"],
)
def test_refusals(held: dict[str, np.ndarray], message: str, tmp_path: Path) -> None:
    save_file(held, tmp_path / "some.safetensors")
    with pytest.raises(UnsupportedError, match=message):
        generate(tmp_path / "some.safetensors")


@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor")
def test_quantized_tensors_are_refused(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    small = torch.quantize_per_tensor(torch.ones(2, 2), 0.1, 0, torch.qint8)
    torch.save({"fc.weight": small}, tmp_path / "some.pt")
    with pytest.raises(UnsupportedError, match=r"got quantized tensors: 'fc\.weight'"):
        generate(tmp_path / "some.pt")


def test_objects_are_refused(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    torch.save(torch.nn.Linear(3, 4), tmp_path / "whole.pt")
    with pytest.raises(RecordError, match="nothing of them was run"):
        generate(tmp_path / "whole.pt")


def test_a_table_is_known_by_what_follows(tmp_path: Path) -> None:
    path = tmp_path / "some.safetensors"
    gate = {f"mlp.{name}.weight": ones(6, 4) for name in ("w1", "w3")}
    save_file(gate, path)
    assert "nn.Embedding" not in generate(path).text
    save_file({"0.weight": ones(6, 4), "1.weight": ones(3, 4)}, path)
    assert "nn.Embedding(vocab, 4), nn.Linear(4, 3, bias=False)" in generate(path).text


def test_a_step_says_where_it_is(tmp_path: Path) -> None:
    save_file(linear("a", 3, 4) | linear("b", 4, 2), tmp_path / "some.safetensors")
    write(generate(tmp_path / "some.safetensors"), tmp_path)
    model = loaded(tmp_path / "some.py")
    with pytest.raises(UnwrittenError, match=r"a -> b: \(..., 4\): expected a step"):
        model(ones(2, 3))
    with pytest.raises(UnwrittenError, match=r"called with \(2, 3\)"):
        Unwritten("there")(ones(2, 3))


def test_a_guess_is_reported(tmp_path: Path) -> None:
    save_file({f"{name}.weight": ones(4) for name in "abc"}, tmp_path / "some.pt")
    explained: list[str] = []
    notes = generate(tmp_path / "some.pt", explain=explained.append).notes
    words = "RMSNorm; LayerNorm without a bias has the same tensor"
    assert f"a, b and 1 more: {words}" in notes
    assert {f"{name}: {words}" for name in "abc"} <= set(explained)


def test_the_same_bytes_every_time(tmp_path: Path) -> None:
    held = linear("a") | linear("heads.x-y") | {"table": ones(2, 3)}
    save_file(held, tmp_path / "some.safetensors")
    texts = {generate(tmp_path / "some.safetensors").text for _ in range(2)}
    assert len(texts) == 1


def test_half_precision_computes_in_single(tmp_path: Path) -> None:
    held = {"fc.weight": np.ones((4, 3), np.float16), "scale": np.ones(2, np.float16)}
    save_file(held, tmp_path / "some.safetensors")
    write(generate(tmp_path / "some.safetensors"), tmp_path / "out")
    model = loaded(tmp_path / "out" / "some.py")
    assert {str(tensor.dtype) for _, tensor in model.named_tensors()} == {"float32"}


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "some.safetensors"
    save_file(linear("a") | linear("b", 4, 2), path)
    assert main(["generate", str(path), "-o", str(tmp_path / "out")]) == 0
    out, report = capsys.readouterr()
    assert "some.py" in out
    assert "3 modules, of these layers: 2 Linear" in report
    assert "1 step of forward is to be written: look for nn.Unwritten" in report
    assert "verify" not in report
    source = str(tmp_path / "out")
    assert main(["check", source, "--source", str(tmp_path)]) == 0
    save_file(linear("a"), path)
    assert main(["check", source, "--source", str(tmp_path)]) == 1


def test_weights_that_lie_where_they_would_be_written(tmp_path: Path) -> None:
    path = tmp_path / "some.safetensors"
    save_file(linear("a"), path)
    before = path.read_bytes()
    assert write(generate(path), tmp_path) == [tmp_path / "some.py"]
    assert path.read_bytes() == before
    assert loaded(tmp_path / "some.py").num_params == 16
    with pytest.raises(UsageError, match="expected another out_dir or name"):
        write(generate(path, Options(half=True)), tmp_path)
    save_file(linear("module.a"), path)
    with pytest.raises(UsageError, match="expected another out_dir or name"):
        write(generate(path), tmp_path)


def test_the_command_in_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "some.safetensors"
    save_file(linear("a"), path)
    assert main(["generate", str(path), "--json", "-o", str(tmp_path)]) == 0
    (made,) = json.loads(capsys.readouterr().out)["generated"]
    assert made["parameters"] == 16


@pytest.mark.parametrize(
    ("rows", "peephole", "is_layer"),
    [
        (16, {"peephole_l0": 12}, True),
        (12, {"peephole_l0": 12}, False),
        (16, {"peephole_l0": 7}, False),
        (16, {"peephole_l1": 12}, False),
    ],
    ids=["lstm", "gru", "another size", "another layer"],
)
def test_peepholes_are_an_lstm_s(
    rows: int, peephole: dict[str, int], is_layer: bool, tmp_path: Path
) -> None:
    tensors = {
        "rnn.weight_ih_l0": ones(rows, 3),
        "rnn.weight_hh_l0": ones(rows, 4),
        **{f"rnn.{name}": ones(size) for name, size in peephole.items()},
    }
    save_file(tensors, tmp_path / "net.safetensors")
    made = write(generate(tmp_path / "net.safetensors"), tmp_path / "out")
    text = made[0].read_text()
    assert ("peepholes=True" in text) == is_layer
    assert loaded(made[0]).num_params == sum(a.size for a in tensors.values())
