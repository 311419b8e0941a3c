"""Steps over the elements of a sequence, written out by an exporter, are a loop."""

from __future__ import annotations

import pytest

from tests.codegen.passes.forms import becomes, form, stays

INPUTS = {"x": "batch,6,4", "h0": "batch,4", "g": "batch,4"}


def steps(count: int, *, lists: bool) -> str:
    """h <- tanh(g h) + x[:, t] for each t."""
    lines, made = [], []
    for t in range(count):
        lines.append(
            f"i{t} = Constant<value_int={t}>() "
            f"x{t} = Gather<axis=1>(x, i{t}) a{t} = Mul(h{t}, g) "
            f"b{t} = Tanh(a{t}) h{t + 1} = Add(b{t}, x{t})"
        )
        made.append(f"o{t}")
        lines.append(
            f"e{t} = Constant<value_ints=[1]>() o{t} = Unsqueeze(h{t + 1}, e{t})"
        )
    if lists:
        return " ".join([*lines, f"y = Concat<axis=1>({', '.join(made)})"])
    return " ".join([*lines[::2], f"y = Identity(h{count})"])


def test_the_last_state():
    becomes(
        form(steps(6, lists=False), **INPUTS),
        """
        for i in range(6):
            y = ops.tanh(y * g) + x[:, i]
        """,
    )


def test_all_states():
    becomes(
        form(steps(6, lists=True), **INPUTS),
        """
        for i in range(6):
            y = ops.tanh(y * g) + x[:, i]
            collected.append(y)
        return ops.stack(collected, axis=1)
        """,
    )


def test_a_first_step_of_its_own():
    """A state that begins with zeros is folded away."""
    text = steps(6, lists=True).replace("a0 = Mul(h0, g) b0 = Tanh(a0)", "b0 = Cos(h0)")
    becomes(
        form(text, **INPUTS),
        """
        for i in range(5):
            z = ops.tanh(z * g) + x[:, i + 1]
            collected.append(z)
        """,
        "return ops.stack([y, *collected], axis=1)",
    )


@pytest.mark.parametrize(
    ("elements", "written"),
    [
        ((5, 4, 3, 2, 1, 0), "5 - i"),
        ((0, -1, -2, -3, -4, -5), "-i"),
        ((-2, -3, -4, -5, -6), "-2 - i"),
        ((0, 2, 4, 6, 8), "2 * i"),
        ((9, 7, 5, 3, 1), "9 - 2 * i"),
    ],
)
def test_elements_in_another_order(elements, written):
    text = steps(len(elements), lists=False)
    for t, element in enumerate(elements):
        made = f"i{t} = Constant<value_int="
        text = text.replace(f"{made}{t}>", f"{made}{element}>")
    becomes(
        form(text, **INPUTS | {"x": "batch,10,4"}),
        f"""
        for i in range({len(elements)}):
            y = ops.tanh(y * g) + x[:, {written}]
        """,
    )


def test_elements_of_two_sequences():
    text = steps(6, lists=True)
    for t in range(6):
        text = text.replace(f"a{t} = Mul(h{t}, g)", f"a{t} = Mul(h{t}, g{t})")
        read = f"k{t} = Constant<value_int={5 - t}>() g{t} = Gather<axis=1>(z, k{t})"
        text = text.replace(f"x{t} = Gather", f"{read} x{t} = Gather")
    becomes(
        form(text, x="batch,6,4", h0="batch,4", z="batch,6,4"),
        """
        for i in range(6):
            y = ops.tanh(y * z[:, 5 - i]) + x[:, i]
            collected.append(y)
        """,
    )


@pytest.mark.parametrize(
    "text",
    [
        steps(3, lists=False),
        steps(6, lists=False).replace("value_int=3", "value_int=5"),
        steps(6, lists=False).replace("Tanh(a3)", "Sin(a3)"),
    ],
    ids=["few", "elements in no order", "steps that differ"],
)
def test_other_steps_are_written_out(text):
    stays(form(text, **INPUTS), "for i in")
