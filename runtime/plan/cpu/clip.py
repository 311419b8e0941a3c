"""Norms of gradients as records, and the factors that clip the gradients to a limit.

The powers of a gradient are summed behind the last record that reads it, block by block
in double precision: the same bits for any number of threads.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from burnish.kernels.records import POWERS
from burnish.optim.core.clip import EPSILON, ClipGlobalNorm, ClipNorm
from burnish.plan.cpu.buffers import Spot, Step
from burnish.plan.cpu.builder import Builder
from burnish.plan.graph import Value


def limited(
    b: Builder,
    clip: Any,
    grads: Mapping[str, Spot],
    params: Mapping[str, Value],
    label: str,
) -> tuple[list[tuple[int, Step]], dict[str, Spot]]:
    """(before which record, record), in order, and the place of each gradient's factor.

    There are none where the limit is none of norms.
    """
    if isinstance(clip, ClipGlobalNorm):
        groups = [list(grads)]
    elif isinstance(clip, ClipNorm):
        groups = [[path] for path in grads]
    else:
        return [], {}
    items: list[tuple[int, Step]] = []
    factors: dict[str, Spot] = {}
    for paths in groups:
        counts = {path: -(-params[path].size // POWERS["block"]) for path in paths}
        sums, factor = b.new(8 * sum(counts.values())), b.new(4)
        done, behind = 0, b.closed
        for path, count in counts.items():
            grad, size = grads[path], params[path].size
            at = max(grad.root.buffer.last + 1, b.closed)
            fields = {"x": grad, "out": sums.moved(8 * done), "count": size}
            fields["p"] = clip.norm
            step = Step("powers", b.shares(size), fields, label, 0, 4 * size)
            items.append((at, step))
            done, behind = done + count, max(behind, at)
            factors[path] = factor
        fields = {"x": sums, "out": factor, "count": done, "p": clip.norm}
        fields |= {"limit": clip.limit, "epsilon": EPSILON}
        items.append((behind, Step("clip_factor", 1, fields, label, 0, 8 * done)))
    return items, factors
