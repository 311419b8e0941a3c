"""What a page offers for an input, and what the page's Python makes of an answer."""

import importlib.util
import json
import sys
import types
from importlib import resources

import numpy as np
import pytest

from burnish.codegen.errors import UsageError
from burnish.codegen.web.inputs import model_in


def source(arguments, **specs):
    words = ", ".join(f"{name}={text!r}" for name, text in specs.items())
    return (
        "class Model(nn.Module):\n"
        f"    @nn.accepts({words})\n"
        f"    def forward(self, {arguments}):\n"
        "        return 0\n"
    )


PICTURES = [
    ("float32[batch, 28, 28]", ("HW", 1, 28, 28)),
    ("float32[batch, 1, 28, 28]", ("CHW", 1, 28, 28)),
    ("float32[1, 3, 224, 320]", ("CHW", 3, 224, 320)),
    ("float32[batch, 224, 224, 3]", ("HWC", 3, 224, 224)),
    ("uint8[height, width, 3]", ("HWC", 3, 224, 224)),
    ("float32[?, 3, height, width]", ("CHW", 3, 224, 224)),
    ("float16[3, 64, 64]", ("CHW", 3, 64, 64)),
]
NUMBERS = [
    "float32[batch, 80, 3000]",  # a spectrogram
    "float32[batch, 12]",
    "float32[2, batch, 128]",
    "float32[batch, 64, 7, 7]",
    "float32[batch, 3, 4, 4]",
    "int64[]",
    "int64[1, 2, length]",
    "bool[batch]",
]


@pytest.mark.parametrize(("spec", "expected"), PICTURES)
def test_pictures(spec, expected):
    _, (made,) = model_in(source("x", x=spec))
    assert made["kind"] == "picture"
    found = made["layout"], made["channels"], made["height"], made["width"]
    assert found == expected


@pytest.mark.parametrize("spec", NUMBERS)
def test_numbers(spec):
    _, (made,) = model_in(source("x", x=spec))
    assert made["kind"] == "numbers"


def test_ids_and_what_follows_from_them():
    text = source(
        "input_ids, attention_mask, token_type_ids, position_ids, past=None",
        input_ids="int64[batch, time]",
        attention_mask="int64[batch, time]",
        token_type_ids="int64[batch, time]",
        position_ids="int64[batch, time]",
        past="float32[batch, time]",
    )
    _, made = model_in(text)
    assert [(each["kind"], each.get("fill")) for each in made] == [
        ("ids", None),
        ("derived", "ones"),
        ("derived", "zeros"),
        ("derived", "positions"),
    ]


@pytest.mark.parametrize(
    ("specs", "message"),
    [
        ({}, "input 'x', got none in @nn.accepts"),
        ({"x": "float32[..., 4]"}, r"input 'x', got float32\[..., 4\]"),
        ({"x": "complex64[4]"}, r"got complex64\[4\] for 'x'"),
    ],
)
def test_other_inputs_are_refused_by_name(specs, message):
    with pytest.raises(UsageError, match=message):
        model_in(source("x", **specs))


class Proxy(dict):
    """An object of JavaScript."""

    def to_py(self):
        return dict(self)


@pytest.fixture
def page(monkeypatch):
    """The page's Python beside an app that hands on what it is asked."""
    app = types.ModuleType("app")
    app.LABELS = ["cat", "dog"]
    monkeypatch.setitem(sys.modules, "app", app)
    path = resources.files("burnish.templates") / "web" / "page.py"
    spec = importlib.util.spec_from_file_location("page", str(path))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.app = app
    return module


def asked(page, sizes=None, **inputs):
    """What predict gets."""
    got = {}

    def predict(**arrays):
        got.update(arrays)
        return np.zeros(())

    page.app.predict = predict
    assert "outputs" in json.loads(page.answer(Proxy(inputs), Proxy(sizes or {})))
    return got


@pytest.mark.parametrize(("spec", "expected"), PICTURES)
def test_pixels_take_the_axes_of_the_model(page, spec, expected):
    _, (made,) = model_in(source("x", x=spec))
    layout, channels, height, width = expected
    pixels = np.zeros((height, width, 4), np.uint8)
    pixels[3, 5] = 255, 0, 51, 255
    x = asked(page, x={**made, "pixels": pixels.reshape(-1)})["x"]
    assert x.dtype == np.dtype(made["dtype"])
    assert x.ndim == len(made["shape"])
    picture = x[0] if x.ndim == 4 or layout == "HW" else x
    at = {"CHW": (slice(None), 3, 5), "HWC": (3, 5), "HW": (3, 5)}[layout]
    colour = np.atleast_1d(picture[at]).astype(float)
    top = 255 if x.dtype == np.uint8 else 1
    grey = round(0.299 * 255 + 0.114 * 51) / 255
    wanted = [grey] if channels == 1 else [1, 0, 0.2]
    np.testing.assert_allclose(colour / top, wanted, atol=1e-3)
    assert np.count_nonzero(picture) == np.count_nonzero(colour)


def number(shape, text, dtype="float32", kind="numbers"):
    return {"kind": kind, "dtype": dtype, "shape": shape, "text": text}


@pytest.mark.parametrize(
    ("shape", "text", "expected"),
    [
        (["batch", 3], "1 2,3; 4 5 6", [[1, 2, 3], [4, 5, 6]]),
        (["batch", "time"], "1 2 3", [[1, 2, 3]]),
        (["batch", "time", 2], "1 2 3 4", [[[1, 2], [3, 4]]]),
        ([2, 2], "[[1, 2], [3, 4]]", [[1, 2], [3, 4]]),
        ([], "7", 7),
    ],
)
def test_text_becomes_numbers(page, shape, text, expected):
    if shape == ["batch", 3]:
        shape = ["rows", 3]
    x = asked(page, x=number(shape, text))["x"]
    np.testing.assert_array_equal(x, np.array(expected, np.float32))
    assert x.dtype == np.float32


def test_too_few_numbers_name_the_input(page):
    inputs = {"x": number([2, 3], "1 2 3 4")}
    printed = json.loads(page.answer(Proxy(inputs), Proxy()))
    assert printed["message"] == "ValueError: x: expected numbers for 2 x 3, got 4"
    assert printed["details"].startswith("Traceback")


def test_masks_have_the_length_of_the_ids(page):
    ids = number(["batch", "time"], "5 6 7", "int64", "ids")
    follow = {"kind": "derived", "dtype": "int64", "shape": ["batch", "time"]}
    got = asked(
        page,
        mask={**follow, "fill": "ones"},
        ids=ids,
        places={**follow, "fill": "positions"},
    )
    np.testing.assert_array_equal(got["mask"], [[1, 1, 1]])
    np.testing.assert_array_equal(got["places"], [[0, 1, 2]])


def test_no_text_is_random_numbers_of_the_open_sizes(page):
    x = asked(page, {"time": 5}, x=number(["time", 2], ""))["x"]
    assert x.shape == (5, 2)
    assert x.std() > 0


def described(page, value):
    page.app.predict = lambda: value
    return json.loads(page.answer(Proxy(), Proxy()))["outputs"]


def test_scores_are_probabilities_with_labels(page):
    (found,) = described(page, np.array([[0.0, np.log(3)]], np.float32))
    assert [s["label"] for s in found["scores"]] == ["cat", "dog"]
    assert [s["share"] for s in found["scores"]] == pytest.approx([0.25, 0.75])
    assert found["softmax"]
    (found,) = described(page, np.array([[0.1, 0.9]], np.float32))
    assert [s["share"] for s in found["scores"]] == pytest.approx([0.1, 0.9])
    assert not found["softmax"]


def test_the_last_of_many_rows_of_a_vocabulary_is_shown(page):
    logits = np.zeros((1, 4, 2000), np.float32)
    logits[0, -1, 1234] = 50
    (found,) = described(page, logits)
    assert found["scores"][0] == {"label": "1234", "share": pytest.approx(1)}
    assert len(found["scores"]) == 10


def test_pictures_and_numbers_and_their_names(page):
    picture = np.zeros((1, 1, 16, 20), np.float32)
    picture[..., 2, 3] = 1
    first, second = described(page, {"mask": picture, "rest": (np.arange(3) * np.nan,)})
    assert first["name"] == "mask"
    assert (first["picture"]["height"], first["picture"]["width"]) == (16, 20)
    assert first["picture"]["pixels"][4 * (2 * 20 + 3)] == 255
    assert second["name"] == "rest[0]"
    assert second["first"] == ["nan"] * 3
