"""Plans on a GPU as text: launches, and their share of the time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from burnish.plan.cuda.plan import GraphPlan


def listed_on_gpu(name: str, plan: GraphPlan, given: list[Any]) -> str:
    """A line for each call, with the time that the GPU takes for it."""
    times = plan.seconds(given)
    whole = sum(times) or 1.0
    why = {id(unit): why for unit, why in plan.eager}
    rows = []
    for unit, seconds in zip(plan.units, times, strict=True):
        if id(unit) in why:
            rows.append(f"{unit.label} eagerly: {why[id(unit)]}"[:88])
            continue
        shapes = ", ".join(str(ref.shape) for ref in unit.gives)
        what = f"{unit.label} {shapes}"
        rows.append(f"{what:58} {seconds * 1e6:9.1f} us {seconds / whole:6.1%}")
    head = (
        f"{name}: {plan.summary}, {len(plan.eager)} eager calls; "
        f"memory {plan.nbytes / 1e6:.2f} MB"
    )
    return "\n".join([head, *(f"    {row}" for row in rows)])
