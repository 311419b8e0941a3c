"""Rules for every operator: a name, a sentence, a row in a table.

Tables are the `CASES` of the modules beside this one, whatever they are called.
"""

import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import tests.runtime.ops
from burnish import ops
from burnish.operator import registry

#: Operators whose family has a table, and which tests of their own call.
ELSEWHERE = {
    *("attention_weights", "conv_input_gradient", "conv_weight_gradient", "dropout"),
    *("blackman_window", "hamming_window", "hann_window", "mel_weight_matrix"),
    *("chunk", "ctc_shares", "group_norm", "instance_norm", "lu_factor"),
    *("power_of_two", "quantize_linear", "resample", "resample_adjoint"),
    "window_sum",
}
#: Operators that are a part of another one, in whose rows they run.
PARTS = {
    "adaptive_max_pool_with_indices": "adaptive_max_pool",
    "arg_top_k": "top_k",
    "cast_map": "CastMap",  # of ONNX, in tests of the generator
    "concat_of": "concat",
    "dequantize_blocks": "fake_quantize",
    "dict_vectorizer": "DictVectorizer",
    "einsum_of": "einsum",
    "elementwise_cross_entropy": "softmax_cross_entropy",
    "fake_quantize_slopes": "fake_quantize",
    "fold_repeated": "pad",
    "last_diagonal": "diagonal",
    "max_with_indices": "max",
    "median_places": "median",
    "min_with_indices": "min",
    "moved_array": "to",
    "pad_constant": "pad",
    "pad_repeated": "pad",
    "permutation_matrix": "lu",
    "quantize_blocks": "fake_quantize",
    "running_product": "cum_prod",
    "scatter_rows": "scatter",
    "shift_left": "bit_shift",
    "shift_right": "bit_shift",
    "take_slices": "take",
    "tall_qr": "qr",
    "to_device": "to",
    "top_k_places": "top_k",
    "transducer_shares": "transducer_paths",
    "unique_places": "unique_all",
}

#: Operators that others are written with and nobody else calls.
INTERNAL = {
    *("attended_heads", "channel_norm", "clipped_log", "sigmoid_gate"),
    "softmax_or_zero",
}


def family(name):
    return getattr(ops, name).__module__.rpartition(".")[2]


def _tabled():
    """The operators that a table has a row of."""
    for module in pkgutil.iter_modules(tests.runtime.ops.__path__):
        table = importlib.import_module(f"tests.runtime.ops.{module.name}")
        yield from (row.op.__name__ for row in getattr(table, "CASES", ()))


def _words():
    """The words of all tests of the runtime but this one."""
    for path in Path(__file__).parents[1].rglob("*.py"):
        if path.name != Path(__file__).name:
            yield from re.findall(r"\w+", path.read_text("utf-8"))


@pytest.mark.parametrize("name", ops.__all__)
def test_every_operator_says_what_it_does(name):
    op = getattr(ops, name)
    assert op.__name__ == name.rstrip("_")
    assert op.__doc__


def test_every_registered_operator_can_be_imported():
    public = {id(getattr(ops, name)) for name in ops.__all__}
    families = {getattr(ops, name).__module__ for name in ops.__all__}
    of_families = [op for op in registry.values() if op.__module__ in families]
    assert {op.name for op in of_families if id(op) not in public} == INTERNAL


def test_every_operator_has_a_row():
    """Where a family has no table, tests call its operators in other ways."""
    rows, words = set(_tabled()), set(_words())
    names = {name.rstrip("_"): family(name) for name in ops.__all__}
    tabled = {names[name] for name in rows & names.keys()}
    without = {
        name
        for name in names.keys() - rows
        if names[name] in tabled or name not in words
    }
    assert without - PARTS.keys() <= ELSEWHERE <= words
    assert ELSEWHERE | PARTS.keys() <= names.keys() - rows
