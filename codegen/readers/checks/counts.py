"""Limits on the number of nodes, tensors and attributes of a model."""

from __future__ import annotations

from typing import Any

from burnish.codegen.errors import ReadError

#: By what the message calls them. A node takes about a millisecond and 5 KiB.
MOST = {"nodes": 100_000, "initializers": 100_000, "values": 200_000}
MOST |= {"names in nodes": 1_000_000, "attributes": 1_000_000}
MOST |= {"functions": 20_000, "other entries": 100_000}


def check(model: Any) -> None:
    """Raise a ReadError when a ModelProto has more parts than any model."""
    counts = dict.fromkeys(MOST, 0)
    _add(counts, "functions", len(model.functions))
    held = (model.metadata_props, model.opset_import, model.training_info)
    _add(counts, "other entries", sum(map(len, held)))
    bodies = [model.graph, *model.functions]
    while bodies:
        body = bodies.pop()
        _add(counts, "nodes", len(body.node))
        _add(counts, "initializers", len(getattr(body, "initializer", ())))
        values = (body.input, body.output, body.value_info)
        _add(counts, "values", sum(map(len, values)))
        for field in ("quantization_annotation", "attribute", "opset_import"):
            _add(counts, "other entries", len(getattr(body, field, ())))
        _add(counts, "other entries", len(body.metadata_props))
        for node in body.node:
            _add(counts, "names in nodes", len(node.input) + len(node.output))
            _add(counts, "attributes", len(node.attribute) + len(node.metadata_props))
            for attribute in node.attribute:
                if attribute.HasField("g"):
                    bodies.append(attribute.g)
                bodies += attribute.graphs


def _add(counts: dict[str, int], what: str, more: int) -> None:
    counts[what] += more
    if counts[what] > MOST[what]:
        raise ReadError(
            f"expected at most {MOST[what]} {what}, got {counts[what]} or more; "
            "generate from a part of the model"
        )
