"""Configurations: saved, read again, and every mistake in a file named."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path, PurePosixPath
from typing import Any, Literal, Optional

import pytest
from hypothesis import given
from hypothesis import strategies as st

from burnish.config import Config, from_plain, to_plain
from burnish.errors import InputError, RecordError


class Activation(Enum):
    RELU = "relu"
    GELU = "gelu"


@dataclass
class AdamConfig(Config):
    lr: float
    betas: tuple[float, float] = (0.9, 0.999)


@dataclass(frozen=True)
class SgdConfig(Config):
    lr: float
    momentum: float | None = None


@dataclass
class Plain:
    """A dataclass that is no Config may stand in one."""

    width: int = 4


@dataclass
class TrainConfig(Config):
    name: str
    optimizer: AdamConfig | SgdConfig
    layers: list[Plain] = field(default_factory=lambda: [Plain()])
    epochs: int = 10
    dropout: float = 0.1
    activation: Activation = Activation.RELU
    mode: Literal["fast", "exact", 3] = "fast"
    bias: bool = True
    sizes: tuple[int, ...] = ()
    table: dict[str, Activation] = field(default_factory=dict)
    counts: dict[int, float] = field(default_factory=dict)
    kinds: frozenset[str] = frozenset()
    folder: Path | None = None
    extra: Any = None
    seed: Optional[int] = None  # noqa: UP045
    limit: int | str = 0
    derived: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self.derived = self.epochs * 2
        if self.epochs < 1:
            raise ValueError(f"epochs: expected 1 or more, got {self.epochs}")


FULL = TrainConfig(
    name="ä",
    optimizer=SgdConfig(0.1, momentum=0.9),
    layers=[Plain(), Plain(8)],
    epochs=3,
    dropout=math.inf,
    activation=Activation.GELU,
    mode=3,
    bias=False,
    sizes=(1, 2, 3),
    table={"a": Activation.GELU},
    counts={1: 0.5, -2: 2.0},
    kinds=frozenset({"x", "y"}),
    folder=Path("runs"),
    extra={"free": [1, None, {"x": 2.5}]},
    seed=7,
    limit="many",
)
LEAST = TrainConfig("a", AdamConfig(1e-3))


@pytest.mark.parametrize("config", [FULL, LEAST], ids=["full", "least"])
def test_what_is_saved_is_loaded(config, tmp_path):
    path = tmp_path / "config.json"
    config.save(path)
    assert TrainConfig.load(path) == config
    assert TrainConfig.from_bytes(config.to_bytes()) == config
    assert TrainConfig.from_dict(config.to_dict()) == config
    assert path.read_bytes() == config.to_bytes()
    json.loads(config.to_bytes(), parse_constant=pytest.fail)  # no NaN, no Infinity


def test_the_file_has_every_field_in_order():
    assert json.loads(LEAST.to_bytes()) == {
        "name": "a",
        "optimizer": {"$type": "AdamConfig", "lr": 1e-3, "betas": [0.9, 0.999]},
        "layers": [{"width": 4}],
        "epochs": 10,
        "dropout": 0.1,
        "activation": "RELU",
        "mode": "fast",
        "bias": True,
        "sizes": [],
        "table": {},
        "counts": {},
        "kinds": [],
        "folder": None,
        "extra": None,
        "seed": None,
        "limit": 0,
    }
    text = AdamConfig(0.5).to_bytes().decode()
    assert text.startswith('{\n  "lr": 0.5,\n  "betas": [\n')


def changed(**changes):
    return {**LEAST.to_dict(), **changes}


def without(name):
    values = LEAST.to_dict()
    del values[name]
    return values


ADAM = {"$type": "AdamConfig", "lr": 0.1}
MISTAKES = {
    "not a dict": ([1], "expected TrainConfig, got [1]"),
    "missing": (without("name"), "name: expected str, it is not there"),
    "unknown": (
        changed(dropuot=0.2) | {"dropout": 0.1},
        "dropuot: TrainConfig has no such field",
    ),
    "misspelt": (
        {**without("dropout"), "dropuot": 0.2},
        "dropuot: TrainConfig has no such field (is 'dropout' meant?)",
    ),
    "text": (changed(epochs="ten"), "epochs: expected int, got 'ten'"),
    "fraction": (changed(epochs=1.0), "epochs: expected int, got 1.0"),
    "large": (
        changed(dropout=10**400),
        "dropout: expected float, got an integer of 1329 bits",
    ),
    "truth": (changed(epochs=True), "epochs: expected int, got True"),
    "number": (changed(bias=1), "bias: expected bool, got 1"),
    "null": (changed(name=None), "name: expected str, got null"),
    "own check": (changed(epochs=0), "epochs: expected 1 or more, got 0"),
    "enumeration": (
        changed(activation="GLU"),
        "activation: expected 'RELU' or 'GELU', got 'GLU' (is 'GELU' meant?)",
    ),
    "literal": (
        changed(mode="fats"),
        "mode: expected 'fast' or 'exact' or 3, got 'fats' (is 'fast' meant?)",
    ),
    "list": (changed(layers={}), "layers: expected list[Plain], got {}"),
    "inside a list": (
        changed(layers=[{}, {"width": "4"}]),
        "layers[1].width: expected int, got '4'",
    ),
    "inside a dict": (
        changed(table={"a": "RELU", "b": 3}),
        "table['b']: expected 'RELU' or 'GELU', got 3",
    ),
    "key": (
        changed(counts={"x": 1.0}),
        "counts, key 'x': expected int, got 'x'",
    ),
    "optional": (changed(seed=1.5), "seed: expected int or null, got 1.5"),
    "path": (changed(folder=3), "folder: expected Path or null, got 3"),
    "deep": (
        changed(optimizer=ADAM | {"betas": [0.9, "x"]}),
        "optimizer.betas[1]: expected float, got 'x'",
    ),
    "length": (
        changed(optimizer=ADAM | {"betas": [0.9]}),
        "optimizer.betas: expected 2 values (tuple[float, float]), got 1",
    ),
    "tag": (
        changed(optimizer={"$type": "AdmConfig", "lr": 0.1}),
        "optimizer.$type: expected AdamConfig or SgdConfig, got 'AdmConfig' "
        "(is 'AdamConfig' meant?)",
    ),
    "union": (
        changed(optimizer=3),
        "optimizer: expected AdamConfig or SgdConfig, got 3",
    ),
    "of a union": (
        changed(optimizer=ADAM | {"momentum": 0.9}),
        "optimizer.momentum: AdamConfig has no such field",
    ),
    "several": (
        changed(epochs="x", bias=0),
        "epochs: expected int, got 'x'; bias: expected bool, got 0",
    ),
}


@pytest.mark.parametrize(("values", "message"), MISTAKES.values(), ids=MISTAKES)
def test_mistakes_are_named(values, message, tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(values))
    with pytest.raises(RecordError) as caught:
        TrainConfig.load(path)
    assert sorted(str(caught.value).removeprefix(f"{path}: ").split("; ")) == sorted(
        message.split("; ")
    )
    with pytest.raises(RecordError, match=r"^TrainConfig: "):
        TrainConfig.from_dict(values)


def test_whole_numbers_are_floats_too_and_a_union_is_distinguished_by_its_fields():
    values = changed(dropout=1, optimizer={"lr": 1, "momentum": 0.5}, limit=3)
    config = TrainConfig.from_dict(values)
    assert type(config.dropout) is float
    assert config.optimizer == SgdConfig(1.0, 0.5)
    assert config.limit == 3
    assert type(config.limit) is int


def test_fields_that_a_file_lacks_have_their_defaults():
    assert TrainConfig.from_dict({"name": "a", "optimizer": ADAM}).epochs == 10


def test_many_mistakes_are_cut_short():
    with pytest.raises(RecordError, match=r"counts\['9'\].*; and 5 more$"):
        TrainConfig.from_dict(changed(counts={str(i): "x" for i in range(15)}))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"{", "expected JSON text: "),
        (b"", "expected JSON text: "),
        (b"\xff\xfe", "expected JSON text: "),
        (b"[" * 100_000, "expected JSON text: "),
        (b"3", "expected TrainConfig, got 3"),
    ],
)
def test_text_that_is_no_json_is_refused(data, message, tmp_path):
    path = tmp_path / "config.json"
    path.write_bytes(data)
    with pytest.raises(RecordError, match=r"config\.json: " + message):
        TrainConfig.load(path)


def test_replace():
    changed = FULL.replace(dropout=0.2, bias=True)
    assert (changed.dropout, changed.bias, changed.name) == (0.2, True, "ä")
    assert FULL.dropout == math.inf
    with pytest.raises(InputError, match=r"no field 'droput' \(is 'dropout' meant\?\)"):
        FULL.replace(droput=0.3)


def test_a_dataclass_is_needed():
    class Bare(Config):
        size: int

    @dataclass
    class Base(Config):
        size: int = 1

    class Extended(Base):
        more: int = 2

    for kind in (Bare, Extended):
        with pytest.raises(InputError, match=r"put @dataclass on it"):
            kind.from_dict({})
        with pytest.raises(InputError, match=r"put @dataclass on it"):
            kind().to_dict()


def test_what_a_configuration_cannot_hold_is_named(tmp_path):
    @dataclass
    class Odd(Config):
        value: Any = None

    @dataclass
    class Special(AdamConfig):
        more: int = 1

    path = tmp_path / "odd.json"
    for value, message in [
        (object(), "value: expected plain values, .* got object"),
        ([1, {"a": {1.5: 2}}], r"value\[1\]\['a'\]: expected keys of text .* got 1.5"),
        (b"x", "value: expected plain values, .* got bytes"),
    ]:
        with pytest.raises(InputError, match=message):
            Odd(value).save(path)
    wrong = LEAST.replace(optimizer=Special(0.1))
    with pytest.raises(InputError, match=r"optimizer: .* got Special, .* a union"):
        wrong.save(path)
    assert not path.exists()

    @dataclass
    class Unknown(Config):
        value: complex = 1j

    with pytest.raises(RecordError, match="value: no configuration can hold complex"):
        Unknown.from_dict({"value": 1})


def test_annotations_that_cannot_be_resolved_are_named():
    @dataclass
    class Later(Config):
        value: "Nowhere"  # noqa: F821

    with pytest.raises(InputError, match=r"Later: .* resolved .*Nowhere"):
        Later.from_dict({"value": 1})


@dataclass
class Abstract(Config):
    items: Sequence[int]
    table: Mapping[str, Sequence[float]]
    path: PurePosixPath
    bare: list
    pair: tuple
    choice: dict[Activation, int]
    none: None = None


def test_abstract_containers_and_bare_ones():
    config = Abstract([1], {"a": [0.5]}, PurePosixPath("a/b"), [1, "x"], (1, [2]), {})
    assert Abstract.from_bytes(config.to_bytes()) == config
    config = config.replace(choice={Activation.GELU: 1})
    assert Abstract.from_bytes(config.to_bytes()) == config


floats = st.floats(allow_nan=False)


@given(
    st.builds(
        TrainConfig,
        name=st.text(st.characters(exclude_categories=["Cs"])),
        optimizer=st.builds(AdamConfig, floats, st.tuples(floats, floats))
        | st.builds(SgdConfig, floats, st.none() | floats),
        layers=st.lists(st.builds(Plain, st.integers()), max_size=3),
        epochs=st.integers(1),
        dropout=floats,
        activation=st.sampled_from(Activation),
        mode=st.sampled_from(["fast", "exact", 3]),
        sizes=st.lists(st.integers()).map(tuple),
        counts=st.dictionaries(st.integers(), floats),
        kinds=st.frozensets(st.text("abc")),
        limit=st.integers() | st.text("abc"),
    )
)
def test_any_configuration_comes_back(config):
    assert TrainConfig.from_bytes(config.to_bytes()) == config


def test_dataclasses_of_others_are_read_too():
    assert from_plain(Plain, to_plain(Plain(3))) == Plain(3)
    with pytest.raises(RecordError, match=r"here: width: expected int, got '3'"):
        from_plain(Plain, {"width": "3"}, "here")


@pytest.mark.oracle
def test_a_configuration_is_read_from_a_pytorch_file(tmp_path):
    from burnish.store import config_from_file

    values = {"config": LEAST.to_dict()}
    torch = pytest.importorskip("torch")
    torch.save(values, tmp_path / "net.pt")
    assert config_from_file(tmp_path / "net.pt", TrainConfig, "config") == LEAST
    values["config"]["epochs"] = "x"
    torch.save(values, tmp_path / "net.pt")
    with pytest.raises(RecordError, match="TrainConfig: epochs: expected int, got 'x'"):
        config_from_file(tmp_path / "net.pt", TrainConfig, "config")


def test_a_module_is_made_by_convention():
    from burnish import nn

    @dataclass
    class NetConfig(Config):
        width: int
        bias: bool = True

        def init(self, device="cpu"):
            return nn.Linear(4, self.width, bias=self.bias).to(device)

    net = NetConfig.from_dict({"width": 3, "bias": False}).init()
    assert net.weight.shape == (3, 4)
    assert net.bias is None
