"""Ensembles of decision trees."""

from __future__ import annotations

from typing import Any

from burnish import ops
from burnish.nn import init
from burnish.nn.core.layer import Layer
from burnish.nn.core.param import Buffer
from burnish.tensor import Tensor


class TreeEnsemble(Layer):
    """(N, F) -> (N, targets): votes of the leaves that a row reaches, over all trees

    trees, nodes, leaves: how many there are, nodes without leaves; votes: how many
    targets a leaf speaks of. modes: whether nodes compare in other ways than `<=`;
    missing: whether some answer yes to nan; members: (sets, largest) for nodes that ask
    whether a value is in a set. `ops.tree_ensemble` says what the buffers hold. Trees
    are read from files and have no gradient.
    """

    def __init__(
        self,
        trees: int,
        nodes: int,
        leaves: int,
        targets: int,
        votes: int = 1,
        aggregate: str = "sum",
        modes: bool = False,
        missing: bool = False,
        members: tuple[int, int] | None = None,
        dtype: Any = "float32",
    ):
        self.outputs = targets
        self.aggregate = aggregate
        leaf = init.constant(-1)
        self.roots = Buffer(leaf, (trees,), "int64")
        self.features = Buffer(init.zeros, (nodes,), "int64")
        self.thresholds = Buffer(init.zeros, (nodes,), dtype)
        self.yes = Buffer(leaf, (nodes,), "int64")
        self.no = Buffer(leaf, (nodes,), "int64")
        self.targets = Buffer(init.zeros, (leaves, votes), "int64")
        self.weights = Buffer(init.zeros, (leaves, votes), dtype)
        self.modes = Buffer(init.zeros, (nodes,), "uint8") if modes else None
        self.missing = Buffer(init.zeros, (nodes,), "bool") if missing else None
        self.members = None if members is None else Buffer(init.zeros, members, dtype)

    def forward(self, x: Tensor) -> Tensor:
        """Raises InputError unless x is (N, F)."""
        return ops.tree_ensemble(
            x,
            self.roots,
            self.features,
            self.thresholds,
            self.yes,
            self.no,
            self.targets,
            self.weights,
            self.modes,
            self.missing,
            self.members,
            outputs=self.outputs,
            aggregate=self.aggregate,
        )
