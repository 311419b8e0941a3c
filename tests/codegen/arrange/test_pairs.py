"""Lists whose items are called in turn are one loop over their pairs."""

from __future__ import annotations

import onnx
import pytest

from tests.harness.source import check_source, floats, graph, node


def pairs(steps: int, *, mixed: bool = False) -> onnx.ModelProto:
    """x + relu(conv(norm(x))), step after step.

    mixed: behind each step but the last, an item of a third list takes its result and
    what the one before gave; the first one lacks that, and the last gives one value.
    """
    nodes, weights, x, state = [], {}, "x", ""

    def layer(kind: str, read: str, at: str, **given: object) -> str:
        shape = (4, 4, 1) if kind == "Conv" else (4,)
        weights[f"{at}.weight"] = floats(*shape, seed=len(weights))
        weights[f"{at}.bias"] = floats(4, seed=len(weights))
        held = f"{read} {at}.weight {at}.bias"
        nodes.append(node(kind, held, f"/{at}/out", f"/{at}/{kind}", **given))
        return f"/{at}/out"

    def put(kind: str, read: str, at: str = "") -> str:
        name = f"v{len(nodes)}"
        nodes.append(node(kind, read, name, f"{at}/{kind}"))
        return name

    for number in range(steps):
        made = layer("InstanceNormalization", x, f"norms.{number}")
        made = layer("Conv", made, f"convs.{number}")
        x = put("Add", f"{x} {put('Relu', made)}")
        if mixed and number < steps - 1:
            at = f"links.{number}"
            own = layer("Conv", x, f"{at}.fc")
            own = put("Add", f"{state} {own}", f"/{at}") if state else own
            state = put("Tanh", own, f"/{at}")
            x = put("Add", f"{x} {layer('Conv', state, f'{at}.proj')}")
    nodes.append(node("Sigmoid", x, "y", "/Sigmoid"))
    return graph(nodes, weights, x=(2, 4, 16))


def test_lists_of_one_length_are_zipped() -> None:
    check_source(
        pairs(4),
        """
        for norm, conv in zip(self.norms, self.convs, strict=True):
            y = y + ops.relu(conv(norm(y)))
        return ops.sigmoid(y)
        """,
    )


def test_items_at_the_ends_that_differ_are_called_apart() -> None:
    text = check_source(
        pairs(7, mixed=True),
        """
        for norm, conv, link in zip(
            self.norms[1:5], self.convs[1:5], self.links[1:5], strict=True
        ):
            u = y + ops.relu(conv(norm(y)))
            z, v = link(u, z)
            y = u + v
        y = y + ops.relu(self.convs[5](self.norms[5](y)))
        y = y + self.links[5](y, z)
        y = y + ops.relu(self.convs[6](self.norms[6](y)))
        return ops.sigmoid(y)
        """,
    )
    assert text.count("zip(") == 1, text


@pytest.mark.parametrize("steps", [1, 2])
def test_few_steps_are_written_out(steps: int) -> None:
    assert "for " not in check_source(pairs(steps))
