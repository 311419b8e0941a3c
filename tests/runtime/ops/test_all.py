"""Rules for every operator: a name, a sentence, a row in a table."""

import importlib
import pkgutil

import pytest

import tests.runtime.ops
from burnish import ops
from burnish.operator import registry

FAMILIES = {
    *(
        "activation",
        "arithmetic",
        "bits",
        "classical",
        "compare",
        "create",
        "cumulative",
    ),
    *("boxes", "einsum", "fold", "training"),
    *("angle", "fourier", "grid", "linalg", "scan"),
    *("elementary", "index", "linear", "order", "padding", "reduce", "shape", "text"),
}


def family(op):
    return op.__module__.rpartition(".")[2]


@pytest.mark.parametrize("name", ops.__all__)
def test_every_operator_says_what_it_does(name):
    op = getattr(ops, name)
    assert op.__name__ == name.rstrip("_")
    assert op.__doc__


def test_every_registered_operator_can_be_imported():
    public = {id(getattr(ops, name)) for name in ops.__all__}
    of_families = [op for op in registry.values() if family(op) in FAMILIES]
    assert [op.name for op in of_families if id(op) not in public] == []


def test_every_operator_has_a_row():
    tested = set()
    for module in pkgutil.iter_modules(tests.runtime.ops.__path__):
        table = importlib.import_module(f"tests.runtime.ops.{module.name}")
        tested |= {row.op.__name__ for row in getattr(table, "CASES", ())}
    inside = {"running_product", "pad_constant", "top_k_places", "unique_places"}
    inside |= {"scatter_rows", "shift_left", "shift_right", "dropout", "zip_map"}
    inside |= {"cast_map", "dict_vectorizer"}
    inside |= {"last_diagonal", "permutation_matrix", "tall_qr", "median_places"}
    inside |= {"take_slices", "chunk"}  # in tables of `take` and of methods
    inside |= {"concat_of", "einsum_of"}  # in tables of `concat` and `einsum`
    inside |= {"lu_factor", "pad_repeated", "fold_repeated"}
    names = {n.rstrip("_") for n in ops.__all__ if family(getattr(ops, n)) in FAMILIES}
    assert names - inside <= tested
