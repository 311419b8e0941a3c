"""Votes of tree ensembles by a kernel."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from burnish.backend import Array
from burnish.ops._cpu.call import usable
from burnish.ops.ml import trees

_STEPS = 64
"""The cost of a walk down a tree, in elements."""

_MOST = 64
"""Prepared calls that are kept."""


@trees.tree_ensemble.on("numpy")
def _(
    x, roots, features, thresholds, yes, no, targets, weights, modes=None, missing=None,
    members=None, *, outputs, aggregate="sum",
):  # fmt: skip
    y = None
    if members is None and x.dtype in _FLOATS and usable():
        held = (roots, features, thresholds, yes, no, targets, weights, modes, missing)
        run = _run(x, held, outputs, aggregate)
        y = None if run is None else run(np.ascontiguousarray(x))
    if y is not None:
        return y
    return trees.tree_ensemble.value(
        x, roots, features, thresholds, yes, no, targets, weights, modes, missing,
        members, outputs=outputs, aggregate=aggregate,
    )  # fmt: skip


Run = Callable[[Array], Array | None]
"""Rows to aggregated votes; None where some index is out of range."""


class _Prepared(NamedTuple):
    run: Run
    alive: list[weakref.ref[Any]]


_prepared: dict[tuple[Any, ...], _Prepared] = {}
"""Calls by the identities of the trees' arrays, the rows' sizes and the options.

A call is forgotten when one of its arrays is freed.
"""


def _run(x: Array, held: tuple[Any, ...], outputs: int, aggregate: str) -> Run | None:
    """A call of the kernel for rows like x; None where it does not fit the trees."""
    from burnish.kernels import direct

    if x.ndim != 2 or not x.size:
        return None
    parts = direct.shares(len(x) * len(held[0]) * _STEPS)
    key = (*map(id, held), x.shape, x.dtype, outputs, aggregate, parts)
    found = _prepared.get(key)
    if found is not None:
        return found.run
    fields = dict(zip(_KINDS, held, strict=True))
    if not _fits(fields, x.dtype):
        return None

    def forget(_: Any) -> None:
        _prepared.pop(key, None)

    alive = [weakref.ref(array, forget) for array in held if array is not None]
    if len(_prepared) >= _MOST:
        _prepared.clear()
    run = _call(x, fields, outputs, aggregate, parts)
    _prepared[key] = _Prepared(run, alive)
    return run


_KINDS = {
    "roots": np.int64,
    "features": np.int64,
    "thresholds": None,
    "yes": np.int64,
    "no": np.int64,
    "targets": np.int64,
    "weights": None,
    "modes": np.uint8,
    "missing": np.bool_,
}
"""The kernel's arrays, in the operator's order, and their dtypes; None is that of x."""

_FLOATS = (np.float32, np.float64)


def _fits(fields: dict[str, Any], dtype: Any) -> bool:
    """Whether the kernel goes down such trees."""
    for name, array in fields.items():
        if array is None:
            continue
        if array.dtype != (_KINDS[name] or dtype) or not array.flags.c_contiguous:
            return False
    nodes = ("features", "thresholds", "yes", "no", "modes", "missing")
    shapes = {fields[name].shape for name in nodes if fields[name] is not None}
    whole = len(shapes) == 1 and fields["targets"].shape == fields["weights"].shape
    return whole and len(fields["roots"]) > 0


def _call(
    x: Array, fields: dict[str, Any], outputs: int, aggregate: str, parts: int
) -> Run:
    from burnish.kernels import direct

    (rows, width), dtype = x.shape, x.dtype
    count = len(fields["roots"])
    ends = dict(trees.totals(rows, count, outputs, aggregate, dtype))
    sizes = {"width": width, "trees": count, "nodes": len(fields["yes"])}
    sizes |= {"leaves": len(fields["targets"]), "votes": fields["targets"].shape[1]}
    sizes |= {"packed": None, "keys": None, "copies": 1, "block": rows, "room": 0}
    calls = [("trees", parts, fields | ends | sizes)]
    if ends["groups"] > 1:
        calls.append(("votes", 1, ends))
    launch = direct.prepared(calls, "x", "space", "out", "fault")
    space_shape = ends["groups"], rows, outputs + 1

    def run(x: Array) -> Array | None:
        out, fault = np.empty((rows, outputs), dtype), np.zeros(1, np.int64)
        launch(x, np.empty(space_shape), out, fault)
        return None if fault[0] else out

    return run
