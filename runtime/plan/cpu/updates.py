"""Steps of optimizers as records, each where its gradient still is in cache.

A parameter's new values are written over the old ones: `plan/updates.py` sees to it
that nobody else has these.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from burnish.optim.core.clip import is_planned
from burnish.optim.rules.elementwise import Elementwise
from burnish.plan.cpu.buffers import Spot, Step
from burnish.plan.cpu.builder import Builder
from burnish.plan.cpu.clip import limited
from burnish.plan.cpu.layout import PLAIN
from burnish.plan.cpu.table import lower, need
from burnish.plan.graph import Constant, Node, Value


class Update(NamedTuple):
    """One parameter's record, and what its numbers come from.

    place: the parameter's among a run's values. slots: of the optimizer's state, by
    their names. code: of a formula, given anew to each run.
    """

    rule: Elementwise
    rate: Any
    module: Any
    path: str
    place: int
    weight: Spot
    slots: dict[str, Spot]
    code: Spot | None
    step: Step


@lower("update")
def update(b: Builder, node: Node) -> None:
    rule, rate, module, found, params = node.args
    need(isinstance(rule, Elementwise), f"{type(rule).__name__} has no kernel")
    need(is_planned(rule.clip), "it clips gradients by a function")
    need(rule.has_records, f"{type(rule).__name__} has no kernel")
    need(params, "it has no parameters")
    need(not isinstance(rate, Value | Constant), "its learning rate is a tensor")
    need(found.keys() == params.keys(), "a gradient is of no parameter")
    for path, param in params.items():
        grad = found[path]
        need(isinstance(grad, Value | Constant), "a gradient is no array")
        is_known = isinstance(grad, Constant) or b.knows(grad.place)
        need(is_known, f"a gradient is {grad.dtype}")
        need(grad.shape == param.shape and param.size, "a gradient is of another shape")
        for each in (grad, param):
            need(each.dtype == np.float32, "it is not in single precision")
        need(not _is_seen_later(b, node, param), "a view of a parameter is read later")
    kernel, numbers = rule.record()
    names = rule.slot_fields(kernel)
    grads = {path: b.spot(_dense(grad)) for path, grad in found.items()}
    limits, factors = limited(b, rule.clip, grads, params, node.label)
    ready = max((at for at, _ in limits), default=0)
    items: list[tuple[int, Update]] = []
    for path, param in params.items():
        grad, weight = grads[path], b.spot(param)
        slots = {slot: b.held(4 * param.size) for slot in rule.slots()}
        fields = numbers | {names[slot]: spot for slot, spot in slots.items()}
        fields |= {"weight": weight, "out": weight, "grad": grad}
        fields["factor"] = factors.get(path)
        code = b.held(numbers["code"].nbytes) if "code" in numbers else None
        if code is not None:
            fields["code"] = code
        step = Step(
            kernel, b.shares(param.size), fields | {"count": param.size}, node.label,
            0, 4 * param.size * (3 + 2 * len(slots)),
        )  # fmt: skip
        after = max(weight.root.buffer.last, grad.root.buffer.last)
        made = Update(rule, rate, module, path, param.place, weight, slots, code, step)
        items.append((max(after + 1, b.closed, ready), made))
    steps = [*limits, *((at, made.step) for at, made in items)]
    b.insert(sorted(steps, key=lambda item: item[0]))
    b.updates += [made for _, made in items]
    for param in params.values():
        b.forms[param.place] = {PLAIN: b.forms[param.place][PLAIN]}


def _dense(grad: Value | Constant) -> Value | Constant:
    return grad.then(np.ascontiguousarray) if isinstance(grad, Constant) else grad


def _is_seen_later(b: Builder, node: Node, param: Value) -> bool:
    """Whether a value that has its elements where the parameter has them lives on."""
    home = b.spot(param).root.buffer
    places = {
        place
        for place, forms in b.forms.items()
        if any(spot.root.buffer is home for spot in forms.values())
    }
    places |= {p for p, (spot, _) in b.views.items() if spot.root.buffer is home}
    return any(b.is_read_after(node, place) for place in places - {param.place})
