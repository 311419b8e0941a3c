"""While loops of TensorFlow: invariants are read from outside, counters make a for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from tests.harness.source import floats, source_of

#: A recurrence that keeps its state where the mask is false, as tf2onnx writes it.
TEXT = """
<ir_version: 9, opset_import: ["" : 18]>
masked (float[T, 2, 4] x, bool[T, 2, 1] mask) => (float[S, 2, 4] y, float[2, 4] last)
{
  sizes = Shape(x)
  length = Gather(sizes, place)
  short = Cast<to = 6>(length)
  most = Cast<to = 1>(short)
  begins = Less(from, most)
  end, last, length_end, W_end, y = Loop(, begins, zero, h0, short, W) <
    body = step (int64 turn, bool going, int32 at, float[2, 4] h, int32 n,
                 float[4, 4] w)
    => (bool goes, int32 next, float[2, 4] Select_0, int32 n, float[4, 4] w,
        float[2, 4] each) {
      next = Add(at, one)
      xt = Gather(x, at)
      kept = Gather(mask, at)
      product = MatMul(h, w)
      sum = Add(xt, product)
      state = Tanh(sum)
      dropped = Not(kept)
      yes = Cast<to = 1>(kept)
      no = Cast<to = 1>(dropped)
      new = Mul(yes, state)
      old = Mul(no, h)
      Select_0 = Add(new, old)
      each = Identity(Select_0)
      at1 = Cast<to = 1>(next)
      n1 = Cast<to = 1>(n)
      goes = Less(at1, n1)
    }>
}
"""


def masked(text: str = TEXT) -> onnx.ModelProto:
    """The model of a text, with its weights."""
    model = onnx.parser.parse_model(text)
    values = {
        "W": floats(4, 4),
        "h0": floats(2, 4, seed=1),
        "from": np.float32(0),
        "zero": np.int32(0),
        "one": np.int32(1),
        "two": np.int32(2),
        "place": np.int64(0),
    }
    model.graph.initializer.extend(
        numpy_helper.from_array(np.asarray(value), name)
        for name, value in values.items()
        if name in text
    )
    return model


def _source(model: onnx.ModelProto, folder: Path) -> str:
    """The text; its numbers are those of the file, as it is."""
    text, made = source_of(model, folder)
    _, plain = source_of(model, folder, simplify=False)
    for steps in (5, 1):
        x = floats(steps, 2, 4, seed=2)
        mask = np.arange(steps * 2).reshape(steps, 2, 1) % 3 > 0
        for one, other in zip(made(x, mask), plain(x, mask), strict=True):
            np.testing.assert_allclose(np.asarray(one), np.asarray(other), 1e-6, 1e-6)
    return text


def test_a_while_that_counts_is_a_for(tmp_path: Path) -> None:
    text = _source(masked(), tmp_path)
    assert "for turn in range(x.shape[0]):" in text, text
    step = "h = ops.where(mask[turn], ops.tanh(x[turn] + self.linear(h)), h)"
    assert step in text, text


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("next = Add(at, one)", "next = Add(at, two)"),
        ("Less(from, most)", "Less(most, from)"),
        ("goes = Less(at1, n1)", "goes = Less(n1, at1)"),
        ("short, W)", "zero, W)"),
    ],
)
def test_other_conditions_stay(old: str, new: str, tmp_path: Path) -> None:
    assert old in TEXT
    text, _ = source_of(masked(TEXT.replace(old, new)), tmp_path)
    assert "while " in text, text


def test_a_limit_that_a_cast_changes_stays_a_condition(tmp_path: Path) -> None:
    """As an int8, 258 is 2."""
    text = TEXT.replace("Cast<to = 1>(short)", "Cast<to = 1>(tiny)")
    text = text.replace("  most", "  tiny = Cast<to = 3>(short)\n  most")
    text = text.replace("(n)", "(n0)").replace("n1", "n0 = Cast<to = 3>(n) n1", 1)
    text, _ = source_of(masked(text), tmp_path)
    assert "while " in text, text


def test_products_of_an_author_are_no_choice(tmp_path: Path) -> None:
    text = _source(masked(TEXT.replace("Select_0", "sums")), tmp_path)
    assert "ops.where" not in text


def test_a_limit_that_is_no_whole_number_stays(tmp_path: Path) -> None:
    changes = {
        "masked (": "masked (float most, ",
        "  most = Cast<to = 1>(short)\n": "",
        "short, W)": "most, W)",
        "int32 n": "float n",
    }
    text = TEXT
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    source, made = source_of(masked(text), tmp_path)
    assert "while " in source, source
    x, mask = floats(5, 2, 4, seed=2), np.ones((5, 2, 1), bool)
    assert np.asarray(made(np.float32(2.5), x, mask)[0]).shape[0] == 3


#: The same with a limit of 5, whose casts the exporter has folded, and with the last
#: output carried beside the state.
FIXED = """
<ir_version: 9, opset_import: ["" : 18]>
masked (float[5, N, 4] x, bool[5, N, 1] mask) => (float[5, N, 4] y, float[N, 4] last)
{
  h0 = Gather(start, place)
  sizes = Shape(h0)
  o0 = ConstantOfShape(sizes)
  end, last, out, y = Loop(, begins, zero, h0, o0) <
    body = step (int64 turn, bool going, int32 at, float[M, 4] h, float[K, 4] o)
    => (bool goes, int32 next, float[M, 4] Select_0, float[K, 4] Select_1,
        float[K, 4] each) {
      next = Add(at, one)
      xt = Gather(x, at)
      kept = Gather(mask, at)
      product = MatMul(h, W)
      sum = Add(xt, product)
      state = Tanh(sum)
      Select_0 = Where(kept, state, h)
      Select_1 = Where(kept, state, o)
      each = Identity(Select_1)
      at1 = Cast<to = 1>(next)
      turn1 = Cast<to = 1>(turn)
      more = Less(at1, most)
      other = Less(turn1, most)
      goes = And(more, other)
    }>
}
""".replace(
    "h0 = Gather(start, place)",
    """n = Shape<start = 1, end = 2>(x)
  both = Concat<axis = 0>(n, four)
  h0 = Expand(from, both)""",
)


def fixed(text: str = FIXED, **changed: object) -> onnx.ModelProto:
    """The model of a text, with its weights."""
    model = onnx.parser.parse_model(text)
    values = {
        "W": floats(4, 4),
        "begins": np.bool_(True),
        "most": np.float32(5),
        "zero": np.int32(0),
        "one": np.int32(1),
        "from": np.float32(0),
        "four": np.array([4], np.int64),
        **changed,
    }
    model.graph.initializer.extend(
        numpy_helper.from_array(np.asarray(value), name)
        for name, value in values.items()
    )
    return model


def _fixed_source(model: onnx.ModelProto, folder: Path) -> str:
    """The text; its numbers are those of the file, as it is."""
    text, made = source_of(model, folder)
    _, plain = source_of(model, folder, simplify=False)
    x, mask = floats(5, 2, 4, seed=2), np.arange(10).reshape(5, 2, 1) % 3 > 0
    for one, other in zip(made(x, mask), plain(x, mask), strict=True):
        np.testing.assert_allclose(np.asarray(one), np.asarray(other), 1e-6, 1e-6)
    return text


def test_a_while_up_to_a_number_is_a_for_with_one_state(tmp_path: Path) -> None:
    text = _fixed_source(fixed(), tmp_path)
    assert "range(5)" in text, text
    assert text.count("ops.where") == 1, text
    assert text.count("Tensor.zeros") == 1, text


@pytest.mark.parametrize(
    "changed",
    [{"most": np.float32(4.5)}, {"zero": np.int32(1)}, {"begins": np.bool_(False)}],
)
def test_other_numbers_stay_conditions(
    changed: dict[str, object], tmp_path: Path
) -> None:
    text, _ = source_of(fixed(**changed), tmp_path)
    assert "range(5)" not in text, text


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("ConstantOfShape(sizes)", "ConstantOfShape<value = float[1] {1.0}>(sizes)"),
        ("Where(kept, state, o)", "Where(kept, o, state)"),
        ("Where(kept, state, o)", "Where(kept, h, o)"),
    ],
)
def test_states_that_differ_stay_two(old: str, new: str, tmp_path: Path) -> None:
    assert old in FIXED
    text = _fixed_source(fixed(FIXED.replace(old, new)), tmp_path)
    assert text.count("ops.where") == 2, text


def test_sizes_that_rounds_keep_are_known_inside_and_behind(tmp_path: Path) -> None:
    """A list that grows in each round is not of the size that it starts with."""
    text = FIXED.replace("each = Identity(Select_1)", "each = Shape(Select_1)")
    text = text.replace("float[K, 4] each", "int64[2] each")
    text = text.replace("float[5, N, 4] y", "int64[5, 2] y")
    source, made = source_of(fixed(text), tmp_path)
    assert "batch" in source or ".shape[1]" in source, source
    x, mask = floats(5, 3, 4, seed=2), np.ones((5, 3, 1), bool)
    assert np.asarray(made(x, mask)[0]).tolist() == [[3, 4]] * 5
    grown = text.replace("Where(kept, state, o)", "Concat<axis = 0>(o, state)")
    _, made = source_of(fixed(grown), tmp_path)
    assert np.asarray(made(x, mask)[0])[:, 0].tolist() == [6, 9, 12, 15, 18]


def test_the_first_of_two_equal_states_may_be_computed_behind_the_second(
    tmp_path: Path,
) -> None:
    one, other = (
        f"      Select_{n} = Where(kept, state, {h})\n" for n, h in enumerate("ho")
    )
    assert one + other in FIXED
    text = FIXED.replace(one + other, f"{other}      used = Neg(Select_1)\n{one}")
    text = text.replace("each = Identity(Select_1)", "each = Add(used, o)")
    source = _fixed_source(fixed(text), tmp_path)
    assert source.count("ops.where") == 1, source


SWAPPED = """
<ir_version: 9, opset_import: ["" : 18]>
swapped (float[M, 4] x, float[K, 4] w, int64 n) => (int64[2] last)
{
  h, g = Loop(n, , x, w) <
    body = step (int64 turn, bool going, float[M, 4] h0, float[K, 4] g0)
    => (bool goes, float[K, 4] g1, float[M, 4] h1) {
      goes = Identity(going)
      g1 = Identity(g0)
      h1 = Identity(h0)
    }>
  last = Shape(h)
}
"""


def test_sizes_that_a_file_tells_of_the_first_round_are_no_others(
    tmp_path: Path,
) -> None:
    _, made = source_of(onnx.parser.parse_model(SWAPPED), tmp_path)
    x, w = floats(2, 4), floats(3, 4)
    sizes = [np.asarray(made(x, w, np.array(n)))[0] for n in range(3)]
    assert sizes == [2, 3, 2]
