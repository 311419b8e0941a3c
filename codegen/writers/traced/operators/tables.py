"""Operators of ai.onnx.ml whose tables are buffers: trees, votes of pairs."""

from __future__ import annotations

from typing import Any

import numpy as np

from burnish.codegen.ops.rule.trees import MODES
from burnish.codegen.writers.traced.emitter import Emitter, data_type
from burnish.codegen.writers.traced.table import writes

_MODES, _MEMBER = [*MODES], MODES["BRANCH_MEMBER"]


@writes("tree_ensemble")
def tree_ensemble(
    emit: Emitter,
    x: Any,
    roots: Any,
    *tables: Any,
    outputs: int,
    aggregate: str,
) -> Any:
    names = (
        "features", "thresholds", "yes", "no", "targets", "weights", "modes", "missing",
        "members",
    )  # fmt: skip
    held = {
        name: emit.held(each)
        for name, each in zip(names, tables, strict=False)
        if each is not None
    }
    if held["weights"].dtype != np.float32:
        raise emit.cannot(f"trees of {held['weights'].dtype}, whose sums it rounds")
    forest = _Forest(held, outputs)
    for number, root in enumerate(emit.held(roots)):
        forest.grow(number, int(root))
    columns: dict[str, Any] = {f"nodes_{n}": each for n, each in forest.nodes.items()}
    columns |= {f"target_{name}": each for name, each in forest.votes.items()}
    return emit(
        "TreeEnsembleRegressor",
        emit.cast(x, np.float32) if x.dtype.kind != "f" else x,
        domain="ai.onnx.ml",
        n_targets=outputs,
        aggregate_function=aggregate.upper(),
        **columns,
    )


class _Forest:
    """Nodes with the number of their tree and their own, as ONNX lists them."""

    def __init__(self, tables: dict[str, np.ndarray], outputs: int):
        self.tables, self.outputs = tables, outputs
        columns = (
            "treeids", "nodeids", "modes", "featureids", "values", "truenodeids",
            "falsenodeids", "missing_value_tracks_true",
        )  # fmt: skip
        self.nodes: dict[str, list[Any]] = {name: [] for name in columns}
        votes = ("treeids", "nodeids", "ids", "weights")
        self.votes: dict[str, list[Any]] = {name: [] for name in votes}

    def grow(self, tree: int, root: int) -> None:
        """One tree; a question about a set becomes one about each of its members."""
        todo: list[tuple[int, int, int]] = [
            (root, 0, 0)
        ]  # a node, its number, a member
        count = 1
        while todo:
            node, number, member = todo.pop()
            if node < 0:
                self._leaf(tree, number, ~node)
                continue
            yes, no = (int(self.tables[side][node]) for side in ("yes", "no"))
            mode = int(self.tables["modes"][node]) if "modes" in self.tables else 0
            value, again = self.tables["thresholds"][node], 0
            if mode == _MEMBER:
                members = self.tables["members"][int(value)]
                members = members[~np.isnan(members)]
                if not len(members):  # no value is in it
                    todo.append((no, number, 0))
                    continue
                value, mode = members[member], _MODES.index("BRANCH_EQ")
                if member + 1 < len(members):
                    no, again = node, member + 1
            self._node(tree, number, node, mode, value, count)
            todo += [(yes, count, 0), (no, count + 1, again)]
            count += 2

    def _node(
        self, tree: int, number: int, node: int, mode: int, value: Any, yes: int
    ) -> None:
        missing = self.tables.get("missing")
        feature = int(self.tables["features"][node])
        row = (
            tree, number, _MODES[mode], feature, float(value), yes,
            yes + 1, 0 if missing is None else int(missing[node]),
        )  # fmt: skip
        _add(self.nodes, row)

    def _leaf(self, tree: int, number: int, leaf: int) -> None:
        row = (tree, number, "LEAF", 0, 0.0, 0, 0, 0)
        _add(self.nodes, row)
        pairs = zip(
            self.tables["targets"][leaf], self.tables["weights"][leaf], strict=True
        )
        for target, weight in pairs:
            if target < self.outputs:
                _add(self.votes, (tree, number, int(target), float(weight)))


def _add(columns: dict[str, list[Any]], row: tuple[Any, ...]) -> None:
    for column, item in zip(columns.values(), row, strict=True):
        column.append(item)


@writes("svm_kernel")
def svm_kernel(
    emit: Emitter,
    x: Any,
    vectors: Any,
    *,
    kernel: str,
    gamma: float,
    coef0: float,
    degree: float,
) -> Any:
    """In products; squared distances in float64, as differences of sums cancel."""
    kind, number = x.dtype, np.float64 if kernel == "RBF" else x.dtype

    def constant(value: float) -> Any:
        return np.asarray(value, number)

    if kernel == "RBF":
        x, vectors = (emit("Cast", part, to=11) for part in (x, vectors))
        own, others = (
            emit("ReduceSumSquare", part, emit.ints([1])) for part in (x, vectors)
        )
        product = emit("MatMul", x, emit("Transpose", vectors, perm=[1, 0]))
        both = emit("Add", own, emit("Transpose", others, perm=[1, 0]))
        apart = emit("Sub", both, emit("Mul", product, constant(2)))
        near = emit("Exp", emit("Mul", apart, constant(-gamma)))
        return emit("Cast", near, to=int(data_type(kind)))
    product = emit("MatMul", x, emit("Transpose", vectors, perm=[1, 0]))
    if kernel == "LINEAR":
        return product
    moved = emit("Add", emit("Mul", product, constant(gamma)), constant(coef0))
    if kernel == "SIGMOID":
        return emit("Tanh", moved)
    return emit("Pow", moved, constant(degree))


@writes("pairwise_votes")
def pairwise_votes(emit: Emitter, scores: Any, *, classes: int) -> Any:
    first, second = np.triu_indices(classes, 1)
    wins = emit("Greater", scores, np.zeros((), scores.dtype))
    winner = emit("Where", wins, first.astype(np.int64), second.astype(np.int64))
    winner = emit("Unsqueeze", winner, emit.ints([-1]))
    votes = emit("Equal", winner, np.arange(classes, dtype=np.int64))
    counted = emit("Cast", votes, to=7)
    return emit("ReduceSum", counted, emit.ints([1]), keepdims=0)
