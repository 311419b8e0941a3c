"""Every recorder with every precision and every kind of object."""

import base64
import gzip
import json
import sys
from dataclasses import dataclass, field
from enum import Enum

import hypothesis.extra.numpy as hnp
import ml_dtypes
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import burnish
from burnish import Tensor, optim, serialize, store
from burnish.config import Config
from burnish.errors import InputError, RecordError
from burnish.quantization import Quantizer
from burnish.record import (
    BinRecorder,
    CompactRecorder,
    DefaultRecorder,
    JsonGzRecorder,
    NamedMpkRecorder,
    NpzRecorder,
    PrettyJsonRecorder,
    SafetensorsRecorder,
)
from tests.harness.examples import examples
from tests.runtime.record.harness import MIXED, RECORDERS, Network, same, trained

PRECISIONS = {None: 0.0, "double": 0.0, "full": 1e-6, "half": 1e-2}
every_recorder = pytest.mark.parametrize("kind", RECORDERS)


class Mode(Enum):
    FAST = 1
    EXACT = 2


@dataclass
class Inner(Config):
    rate: float = float("inf")


@dataclass
class Outer(Config):
    size: int
    mode: Mode = Mode.EXACT
    inner: Inner = field(default_factory=Inner)


MODEL, ADAM, SCHEDULE = trained()
SMALL = Network().quantize_weights(Quantizer())
NESTED = {
    "model": MODEL.state_dict(),
    "step": 3,
    "best": [0.25, float("-inf"), None, True, "ä", 1 << 90, {}],
    "scalar": np.float32(2.5),
    "a": {"b": np.arange(3)},
    "a.b": np.arange(2),
}


@every_recorder
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize(
    ("item", "expected"),
    {
        "model": (MODEL, MODEL.state_dict()),
        "quantized": (SMALL, SMALL.state_dict()),
        "optimizer": (ADAM, ADAM.state_dict()),
        "schedule": (SCHEDULE, SCHEDULE.state_dict()),
        "arrays": (MIXED, MIXED),
        "nothing": ({}, {}),
        "one array": (np.arange(4.0), np.arange(4.0)),
        "tensor": ([Tensor([1.5], dtype="float32")], [np.array([1.5], "float32")]),
        "nested": (NESTED, NESTED),
        "tuple": ((1, (2.5, "x")), [1, [2.5, "x"]]),
        "objects": (
            {"model": MODEL, "optim": ADAM, "more": [SCHEDULE]},
            {
                "model": MODEL.state_dict(),
                "optim": ADAM.state_dict(),
                "more": [SCHEDULE.state_dict()],
            },
        ),
        "config": (
            {"config": Outer(3)},
            {"config": {"size": 3, "mode": "EXACT", "inner": {"rate": "inf"}}},
        ),
    }.values(),
    ids=lambda value: type(value).__name__,
)
def test_what_is_recorded_comes_back(kind, precision, item, expected, tmp_path):
    recorder = kind(precision)
    path = recorder.record(item, tmp_path / "name")
    assert path.name == "name" + recorder.suffix
    same(recorder.load(tmp_path / "name"), expected, PRECISIONS[precision])
    assert path.read_bytes() == recorder.to_bytes(item)
    same(recorder.load(path.read_bytes()), expected, PRECISIONS[precision])
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


@every_recorder
def test_integers_of_four_bits_come_back(kind):
    """Safetensors has no name for them: they come back in 8 bits."""
    array = np.array([-8, 7, 0], ml_dtypes.int4)
    recorder = kind()
    held = recorder.load(recorder.to_bytes({"x": array}))["x"]
    wider = isinstance(recorder, SafetensorsRecorder | CompactRecorder)
    assert held.dtype == (np.int8 if wider else array.dtype)
    assert held.tolist() == [-8, 7, 0]


names = st.text(max_size=6).filter(lambda name: name != "__metadata__")
DTYPES = [
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
    *("bfloat16", "float8_e5m2", "float8_e4m3fn"),
]


@st.composite
def arrays(draw):
    dtype = np.dtype(draw(st.sampled_from(DTYPES)))
    shape = draw(hnp.array_shapes(min_dims=0, min_side=0, max_side=3))
    count = int(np.prod(shape)) * dtype.itemsize
    raw = np.frombuffer(draw(st.binary(min_size=count, max_size=count)), np.uint8)
    if dtype.name == "bool":
        raw = raw & 1
    return raw.view(dtype).reshape(shape)


SIGNALLING = np.array([0x7F81], "uint16").view("bfloat16")
"""A NaN that NumPy warns of wherever it is cast."""


@every_recorder
@settings(max_examples=examples(40), deadline=None)
@given(state=st.dictionaries(names, arrays(), max_size=4))
@example(state={"signalling": SIGNALLING})
def test_any_bits_come_back_or_are_refused(kind, state):
    recorder = kind(None)
    wide = any(array.dtype.name == "complex128" for array in state.values())
    if not all(_is_unicode(name) for name in state):
        with pytest.raises(RecordError, match="expected Unicode text"):
            recorder.to_bytes(state)
    elif wide and isinstance(recorder, SafetensorsRecorder):
        with pytest.raises(RecordError, match=r"safetensors can hold, got complex128"):
            recorder.to_bytes(state)
    else:
        same(recorder.load(recorder.to_bytes(state)), state)


def _is_unicode(text):
    try:
        return text.encode() is not None
    except UnicodeEncodeError:
        return False


everywhere = arrays().filter(lambda array: array.dtype.name != "complex128")
plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text('aä"\\\n\0$'),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text("ab.$", max_size=3), inner | everywhere, max_size=3)
    ),
    max_leaves=8,
)


@every_recorder
@settings(max_examples=examples(30), deadline=None)
@given(value=plain)
def test_any_plain_values_come_back(kind, value):
    recorder = kind(None)
    same(recorder.load(recorder.to_bytes(value)), value)


FILES = [
    ("double", "float64", ["int64", "int8", "uint64", "bool", "complex64"]),
    ("full", "float32", ["int64", "int8", "uint64", "bool", "complex64"]),
    ("half", "float16", ["int64", "int8", "uint64", "bool", "complex64"]),
]


@pytest.mark.parametrize(("precision", "floats", "others"), FILES)
def test_a_precision_is_what_the_file_has(precision, floats, others, tmp_path):
    path = SafetensorsRecorder(precision).record(MIXED, tmp_path / "mixed")
    held = {name: x.dtype.name for name, x in serialize.load_file(path).items()}
    for name, array in MIXED.items():
        if "float" in array.dtype.name:
            assert held[name] == floats
    kept = [held[name] for name in ("long", "short", "unsigned", "truth", "complex")]
    assert kept == others
    small = {"n": np.array([7, -8]), "z": np.array([1j])}
    path = NpzRecorder(precision).record(small, tmp_path / "small")
    bits = {"double": 64, "full": 32, "half": 16}[precision]
    with np.load(path) as archive:
        assert archive["n"].dtype.name == f"int{bits}"
        assert archive["z"].dtype == ("complex128" if bits == 64 else "complex64")
    same(NpzRecorder().load(path), small)


@every_recorder
def test_files_are_read_whatever_the_recorders_precision(kind, tmp_path):
    path = kind("half").record(MODEL, tmp_path / "model")
    same(kind("double").load(path), MODEL.state_dict(), 1e-2)


def test_a_value_that_half_precision_cannot_hold_is_named(tmp_path):
    path = tmp_path / "x.safetensors"
    path.write_bytes(b"old")
    for state in ({"w": np.array([1.0, 7e4])}, {"a": [np.array([1.0, 7e4])]}):
        with pytest.raises(RecordError, match=r"x\.safetensors: .*70000.0, too large"):
            CompactRecorder().record(state, path)
    with pytest.raises(RecordError, match="too large"):
        BinRecorder("full").to_bytes({"z": np.array([1e300 + 0j])})
    assert path.read_bytes() == b"old"


def test_the_presets():
    assert DefaultRecorder().precision is None
    assert CompactRecorder().precision == "half"
    assert CompactRecorder("full").precision == "full"
    with pytest.raises(InputError, match="one of double, full, half or None, got 'x'"):
        BinRecorder("x")


# --- into objects ---


@every_recorder
def test_into_a_module_with_a_report(kind, tmp_path):
    path = kind(None).record(MODEL, tmp_path / "model")
    burnish.seed(5)
    model = Network()
    report = kind(None).load_into(model, path)
    assert isinstance(report, store.Report)
    assert report.complete
    assert set(report.applied) == set(MODEL.state_dict())
    same(model.state_dict(), MODEL.state_dict())


@every_recorder
def test_into_an_optimizer_and_a_schedule(kind):
    recorder = kind(None)
    adam, schedule = optim.Adam(), optim.Cosine(0.1, 10)
    report = recorder.load_into(adam, recorder.to_bytes(ADAM))
    assert report.applied
    same(adam.state_dict(), ADAM.state_dict())
    recorder.load_into(schedule, recorder.to_bytes(SCHEDULE))
    assert schedule.step() == SCHEDULE.at(SCHEDULE.count)


def _changed(**changes):
    state = dict(MODEL.state_dict())
    for name, value in changes.items():
        key = name.replace("__", ".")
        state.pop(key, None)
        if value is not None:
            state[key] = value
    return state


MISFITS = {
    "missing": (_changed(head__bias=None), r"missing \['head.bias'\], unexpected \[\]"),
    "unexpected": (_changed(tail=np.ones(2)), r"unexpected \['tail'\]"),
    "shape": (_changed(head__bias=np.ones(3)), r"head.bias has shape \(2,\), got \(3,"),
    "dtype": (_changed(head__bias=np.ones(2, "complex64")), "has dtype float32, got"),
    "nested": ({"model": 1}, r"unexpected \['model'\]"),
    "no names": ([np.ones(2)], "expected arrays by name, got list"),
}


@every_recorder
@pytest.mark.parametrize(("state", "message"), MISFITS.values(), ids=MISFITS)
def test_what_does_not_fit_changes_nothing(kind, state, message, tmp_path):
    recorder, model = kind(None), Network()
    before = {name: x.copy() for name, x in model.state_dict().items()}
    path = recorder.record(state, tmp_path / "model")
    with pytest.raises(RecordError, match=rf"model\{recorder.suffix}: .*{message}"):
        recorder.load_into(model, path)
    same(model.state_dict(), before)


def test_names_may_differ_without_strict():
    recorder, state = BinRecorder(), _changed(head__bias=None, tail=np.ones(2))
    report = recorder.load_into(Network(), recorder.to_bytes(state), strict=False)
    assert report.missing == ["head.bias"]
    assert report.unexpected == ["tail"]
    wrong = recorder.to_bytes(_changed(head__bias=np.ones(3)))
    with pytest.raises(RecordError, match="shape"):
        recorder.load_into(Network(), wrong, strict=False)


def test_a_record_of_another_optimizer_is_refused():
    recorder, sgd = BinRecorder(), optim.SGD(momentum=0.9)
    with pytest.raises(RecordError, match="binary bytes: optimizer state: SGD needs"):
        recorder.load_into(sgd, recorder.to_bytes(ADAM))
    assert sgd.state_dict() == {}
    both = optim.Composed(optim.Constant(0.5), optim.Cosine(0.5, 12))
    both.step()
    before = both.state_dict()
    wrong = {name: np.ones(3) for name in before}
    with pytest.raises(RecordError, match="bytes: Composed cannot go on from"):
        recorder.load_into(both, recorder.to_bytes(wrong))
    same(both.state_dict(), before)


# --- what cannot be recorded ---

REFUSED = {
    "object": ({"a": object()}, "a: expected a module, .* got object"),
    "function": ([len], "0: expected a module, .* got builtin_function"),
    "bytes": ({"a": {"b": b"x"}}, r"a\.b: expected .* got bytes"),
    "objects": ({"a": np.array([None])}, "a: expected an array of numbers, got object"),
    "text": ({"a": np.array(["x"])}, "a: expected an array of numbers, got <U1"),
    "dates": ({"a": np.array([0], "M8[s]")}, "an array of numbers, got datetime64"),
    "structure": ({"a": np.zeros(1, "f4,i4")}, "an array of numbers, got"),
    "key": ({1: 2}, "expected Unicode text, got 1"),
    "lone surrogate": ({"a": "\ud800"}, "a: expected Unicode text"),
    "reserved": ({"x": {"$array": 1}}, r"x: '\$array' is kept for records"),
}
CYCLE = {}
CYCLE["a"] = CYCLE
REFUSED["cycle"] = (CYCLE, "64 levels at most")


@every_recorder
@pytest.mark.parametrize(("item", "message"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_recorded_is_refused(kind, item, message, tmp_path):
    where = rf"x\{kind(None).suffix}: "
    with pytest.raises(RecordError, match=f"{where}.*{message}"):
        kind(None).record(item, tmp_path / "x")
    assert list(tmp_path.iterdir()) == []


# --- other programs ---


def test_safetensors_open_everywhere(tmp_path):
    path = SafetensorsRecorder().record(MODEL, tmp_path / "model")
    burnish.seed(6)
    same(Network().load_file(path).state_dict(), MODEL.state_dict())
    import safetensors.numpy

    same(safetensors.numpy.load_file(path), MODEL.state_dict())
    MODEL.save_file(path)  # without a checksum
    same(SafetensorsRecorder().load(path), MODEL.state_dict())


def test_numpy_opens_npz_and_its_archives_open_here(tmp_path):
    state = {"a": np.arange(3), "b.c": np.ones((2, 2))}
    with np.load(NpzRecorder().record(state, tmp_path / "ours")) as archive:
        same({name: archive[name] for name in state}, state)
    np.savez_compressed(tmp_path / "theirs.npz", **state)
    same(NpzRecorder().load(tmp_path / "theirs"), state)
    np.savez(tmp_path / "objects.npz", a=np.array([None]))
    with pytest.raises(RecordError, match=r"objects\.npz: .*got pickled objects"):
        NpzRecorder().load(tmp_path / "objects")


def test_messagepack_and_json_are_those_of_other_programs():
    import msgspec

    page = msgspec.msgpack.decode(NamedMpkRecorder().to_bytes({"a": np.arange(2.0)}))
    whole = np.arange(2.0).tobytes()
    assert page["tensors"] == {
        "a": {"dtype": "float64", "shape": [2], "bytes": [whole]}
    }
    page = json.loads(gzip.decompress(JsonGzRecorder().to_bytes({"a": np.arange(2)})))
    assert page["tensors"] == {"a": {"dtype": "int64", "shape": [2], "data": [0, 1]}}


def test_json_reads_well():
    state = {"w": np.array([[0.1, 2.0], [1e-9, -3]], "float32"), "n": np.array(3)}
    lines = PrettyJsonRecorder().to_bytes(state).decode().splitlines()
    assert lines[2:6] == [
        '  "tensors": {',
        '    "w": {"dtype": "float32", "shape": [2, 2], "data": [[0.1, 2.0],',
        "      [1e-09, -3.0]]},",
        '    "n": {"dtype": "int64", "shape": [], "data": 3}',
    ]


def test_bytes_in_the_source_are_embedded(monkeypatch):
    data = SafetensorsRecorder("half").to_bytes(MODEL)
    text = base64.b64encode(data).decode()
    monkeypatch.setattr(sys.modules[Network.__module__], "WEIGHTS", text, raising=False)
    same(Network.from_embedded().state_dict(), MODEL.state_dict(), 1e-2)
    model = Network()
    BinRecorder().load_into(model, bytearray(BinRecorder().to_bytes(MODEL)))
    same(model.state_dict(), MODEL.state_dict())


def test_messagepack_says_what_it_needs(monkeypatch):
    data = NamedMpkRecorder().to_bytes({})
    monkeypatch.setitem(sys.modules, "msgspec", None)
    monkeypatch.setitem(sys.modules, "msgspec.msgpack", None)
    for use in (lambda: NamedMpkRecorder().to_bytes({}), lambda: _load(data)):
        with pytest.raises(RecordError, match=r"pip install 'burnish\[record\]'"):
            use()


def _load(data):
    return NamedMpkRecorder().load(data)


def test_bfloat16_passes_where_half_would_not():
    state = {"w": np.array([1e30], ml_dtypes.bfloat16)}
    for kind in RECORDERS:
        same(kind("full").load(kind("full").to_bytes(state)), state)
