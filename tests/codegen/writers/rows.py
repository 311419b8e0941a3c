"""Rows of the operators' and layers' tables, exported and run.

python -m tests.codegen.writers.rows counts those whose numbers are the same.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

import tests.runtime.ops
from burnish import Tensor, nn
from burnish._engine.pytree import leaves
from burnish.codegen import export
from tests.harness.exported import ran

FAMILIES = ("activation", "attention", "layers", "norm", "recurrent", "window")


class Call(nn.Module):
    """A layer or a function with some of its arguments."""

    def __init__(self, function: Any, names: list[str], places: int):
        self.layer, self.names, self.places = function, names, places

    def forward(self, *args: Any) -> Any:
        options = dict(zip(self.names, args[self.places :], strict=True))
        return self.layer(*args[: self.places], **options)


def layer_rows() -> Iterator[Any]:
    """Every row of the tables that compare layers with PyTorch's."""
    for family in FAMILIES:
        table = importlib.import_module(f"tests.runtime.nn.test_{family}_oracle")
        yield from (row for row in table.LAYERS if hasattr(row, "inputs"))


def operator_rows() -> Iterator[tuple[str, Any]]:
    """Every row of the operators' tables, with a name."""
    for info in pkgutil.iter_modules(tests.runtime.ops.__path__):
        module = importlib.import_module(f"tests.runtime.ops.{info.name}")
        for number, row in enumerate(getattr(module, "CASES", ())):
            yield f"{info.name}-{number}-{row.op.__name__}", row


def check_layer(row: Any) -> None:
    """Raises where the exported layer gives something else."""
    module = getattr(nn, row.name)(*row.args, **row.options)
    more = [
        v.astype("float32") if getattr(v, "dtype", np.dtype(int)).kind == "f" else v
        for v in row.call.values()
    ]
    given = [_tensor(each) for each in (*row.arrays("float32"), *more)]
    check(Call(module, list(row.call), len(row.inputs)), given)


def check_operator(row: Any) -> None:
    """Raises where the exported operator gives something else."""
    arrays = row.arrays(np.dtype(row.dtypes[0]))
    places = [i for i, each in enumerate(arrays) if isinstance(each, np.ndarray)]

    class Operator(nn.Module):
        def forward(self, *tensors: Any) -> Any:
            every = list(arrays)
            for place, each in zip(places, tensors, strict=True):
                every[place] = each
            return row.op(*every, **row.options)

    check(Operator(), [Tensor(arrays[i]) for i in places])


def _tensor(item: Any) -> Any:
    return Tensor(item) if isinstance(item, np.ndarray) else item


def check(module: nn.Module, given: list[Any]) -> None:
    """Raises where the exported module gives something else."""
    expected = [each.numpy() for each in leaves(module(*given)) if each is not None]
    made = export(module, *given)
    names = {value.name for value in made.model.graph.inputs}
    assert len(names) == sum(isinstance(each, Tensor) for each in given)
    found = ran(made, *(each.numpy() for each in given if isinstance(each, Tensor)))
    for one, other in zip(found, expected, strict=True):
        assert np.shape(one) == other.shape
        if other.dtype.kind in "OU":
            assert np.asarray(one).tolist() == other.tolist()
            continue
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=2e-3, atol=1e-4)


def main() -> int:
    """Print how many operators and layers export, by the name of their rows."""
    tables: tuple[tuple[str, Any, list[Any]], ...] = (
        ("operators", check_operator, [(r.op.__name__, r) for _, r in operator_rows()]),
        ("layers", check_layer, [(r.name, r) for r in layer_rows()]),
    )
    for what, check_row, rows in tables:
        found: dict[str, list[bool]] = {}
        for name, row in rows:
            found.setdefault(name, []).append(_passes(check_row, row))
        whole, some = (sum(map(how, found.values())) for how in (all, any))
        print(f"{what}: {some} of {len(found)} export, {whole} with every row")
        print("  none of", ", ".join(n for n, rows in found.items() if not any(rows)))
    return 0


def _passes(check_row: Any, row: Any) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            check_row(row)
    except Exception:
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
