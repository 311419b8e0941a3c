"""JSON out of files: right, and refused before its values fill the memory."""

import json
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from burnish._files.budget import Budget
from burnish._files.jsontext import parse
from burnish.errors import BudgetError, RecordError

PLAIN = st.none() | st.booleans() | st.integers(-(10**40), 10**40) | st.text()
PLAIN |= st.floats(allow_nan=False)
TREES = st.recursive(PLAIN, lambda s: st.lists(s) | st.dictionaries(st.text(), s))
SLACK = 1 << 20

BOMBS = {
    "lists": b"[],",
    "lists of lists": b"[[]],",
    "objects": b"{},",
    "pairs": b'{"a":0},',
    "numbers": b"1.5,",
    "integers": b"999,",
    "one digit": b"9,",
    "short text": b'"ab",',
    "wide text": '"ab\U0001f600",'.encode(),
    "escapes": rb'"\ud83d\ude00",',
    "truth": b"true,",
}


@given(TREES, st.booleans())
def test_it_is_what_json_says(value, ascii_):
    text = json.dumps(value, ensure_ascii=ascii_)
    assert parse(text.encode("utf-8", "surrogatepass"), Budget(0, "x")) == value


@pytest.mark.parametrize("again", BOMBS.values(), ids=BOMBS)
@pytest.mark.parametrize("size", [1 << 18, 1 << 20])
def test_values_take_little_more_than_the_limit(again, size):
    text = b"[" + again * (size // len(again)) + b"0]"
    limit = 8 * len(text)
    tracemalloc.start()
    try:
        parse(text, Budget(len(text), "x", limit))
    except BudgetError:
        pass
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 1.25 * limit + SLACK


def test_large_text_that_is_no_bomb_is_read():
    rows = {
        f"model.layers.{i}.mlp.weight": f"model-{i:05}.safetensors"
        for i in range(99_999)
    }
    assert parse(json.dumps(rows).encode(), Budget(0, "x")) == rows
    text = b"[" + b"0, " * 3_000_000 + b"0]"
    assert len(parse(text, Budget(len(text), "x"))) == 3_000_001


@pytest.mark.parametrize(
    "text", [b"", b"{", b"\xff", b"[" * 10**5, b'{"a": 1', b"nul", b'"\n"']
)
def test_damage_is_one_line(text):
    with pytest.raises(RecordError, match=r"^config: expected JSON text: ") as caught:
        parse(text, Budget(len(text), "config"))
    assert "\n" not in str(caught.value)


def test_numbers_beyond_all_sizes_are_infinite():
    text = b'{"a": %s, "b": -%s}' % (b"9" * 5000, b"1" * 10**6)
    assert parse(text, Budget(0, "x")) == {"a": float("inf"), "b": float("-inf")}
