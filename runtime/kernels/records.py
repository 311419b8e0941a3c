"""The format of a plan's table: one record a step, declared for Python and C.

A record is 64 numbers of 8 bytes. The first two are its kind and into how many shares
threads may split it. References name an array of the call and a place in it, -1 none.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

WORDS = 64
"""Numbers in a record."""

PLACE = 40
"""Bits of a reference that tell the place in its array, in bytes."""


class Record(NamedTuple):
    """The fields of one kind of record: references, integers and reals, in order."""

    name: str
    references: tuple[str, ...]
    integers: tuple[str, ...]
    reals: tuple[str, ...] = ()

    @property
    def fields(self) -> tuple[str, ...]:
        return self.references + self.integers + self.reals


def _record(name: str, references: str, integers: str, reals: str = "") -> Record:
    words = (tuple(part.split()) for part in (references, integers, reals))
    return Record(name, *words)


_OUTER = "size0 size1 size2 size3"
_SIX = f"{_OUTER} size4 size5"
_GRID = "size0 size1 size2 place0 place1 place2 step0 step1 step2"
_COPY = "low0 low1 low2 wide0 wide1 wide2 row"
_PLACES = ("batch", "head", "row")
_BATCHES = " ".join(f"{p}_{q}" for p in "qkv" for q in _PLACES)
_SLOPES = " ".join(f"{p}_{q}" for p in ("g", "y", "dq", "dk", "dv") for q in _PLACES)
FORMULA = {"slots": 6, "constants": 32, "registers": 40, "tile": 256}
"""Of formulas of optimizers: the most arrays of a state, numbers, and values that are
used at a time; elements that go through together."""
_SLOTS = " ".join(f"s{i}" for i in range(FORMULA["slots"]))
_CONSTANTS = " ".join(f"k{i}" for i in range(FORMULA["constants"]))
_MASK = "mask_batch mask_head mask_query mask_key mask_is_bool"

RECORDS = (
    _record(
        "conv",
        "x weight bias residual out from to tiles runs unpacked scales zeros space "
        "ahead",
        "ahead_groups ahead_step n_tiles chunk groups inner nr blocks x_step "
        "weight_step group_step outer_x outer_out out_step width by_group act of_outs "
        "of_ins of_taps of_depth of_group_step of_out_step of_in_step "
        "of_mode of_block room half",
        "low high",
    ),
    _record(
        "conv_planes",
        "x weight bias places out space",
        "images height width channels x_image x_channel x_row x_column out_height "
        "out_width stride0 stride1 before0 before1 span0 span1 phases pitch "
        "window_rows unit_rows unit_columns sums groups nr out_step act room",
        "low high",
    ),
    _record(
        "narrow",
        "x weight bias residual out from to tiles runs",
        "n_tiles outs row blocks x_step weight_step out_step act",
        "low high",
    ),
    _record("to_half", "x out", "rows width x_row out_row"),
    _record("float16", "x out", "count way"),
    _record(
        "winograd",
        "x weight bias residual out space fault",
        "images height width out_height out_width before0 before1 rows columns chunk "
        "splits groups nr blocks ins x_step out_step room act",
        "low high",
    ),
    _record("winograd_pack", "x out", "outs ins wide out_step in_step is_turned"),
    _record(
        "winograd_weight",
        "x g out space",
        "images height width out_height out_width before0 before1 rows columns chunk "
        "ins outs x_block g_block room",
    ),
    _record(
        "window",
        "x weight bias out from to tiles runs",
        "mode n_tiles blocks x_step weight_step out_step act",
        "low high scale",
    ),
    _record("copy", "x out", f"{_SIX} x0 x1 x2 x3 x4 x5 y0 y1 y2 y3 y4 y5"),
    _record(
        "whole",
        "a b c out",
        f"step operands a_kind b_kind c_kind to {_SIX} a0 a1 a2 a3 a4 a5 "
        "b0 b1 b2 b3 b4 b5 c0 c1 c2 c3 c4 c5",
    ),
    _record(
        "program",
        "out code table",
        f"steps operands result other to {_OUTER} rows width",
    ),
    _record("layer_norm", "x weight bias out", "rows width center", "eps"),
    _record("group_norm", "x weight bias out", "count groups channels inner", "eps"),
    _record("softmax", "x out", "rows width inner zero_if_empty is_log"),
    _record("reduce", "x out", "mode outer width inner", "scale"),
    _record("arg_max", "x out", "outer width inner is_min last is_int"),
    _record("fold", "x out", "mode outer width inner"),
    _record("top_k", "x out space", "outer width inner k largest is_int"),
    _record("look_up", "x keys values others out", "count keys_count bytes is_int"),
    _record(
        "attention",
        "q k v mask keep out kept space",
        f"batches heads shared queries keys size values {_BATCHES} out_batch out_head "
        f"out_row {_MASK} is_causal zero_if_empty keep_bound room",
        "scale blocked keep_factor",
    ),
    _record(
        "attention_gradient",
        "q k v mask keep g y kept dq dk dv space",
        f"batches heads shared queries keys size values {_BATCHES} {_SLOPES} {_MASK} "
        "is_causal keep_bound room",
        "scale keep_factor",
    ),
    _record(
        "matmul",
        "a b out space",
        "size0 size1 size2 rows k n a0 a1 a2 a_row a_column b0 b1 b2 b_row b_column "
        "room",
    ),
    _record(
        "gemv",
        "x digits weight scales zeros bias residual out",
        "rows ins outs mode block act",
        "low high",
    ),
    _record("digits", "x out", "rows ins"),
    _record(
        "gather",
        "ids x scales zeros out fault",
        "outer count rows width block by_row bits",
    ),
    _record(
        "grid_sample",
        "x grid out fault",
        "images channels positions rank size0 size1 size2 taps padding corners "
        "is_blocked x_image x_channel out_image out_channel",
        "cubic",
    ),
    _record("places", "ids sizes steps base out fault", "count depth"),
    _record("places_along", "ids out fault", "outer count rows inner"),
    _record("set_rows", "x updates ids out", "count rows width is_sum"),
    _record("put", "x places out fault", "size0 size1 rows width room x0 x1 x2"),
    _record("resample", "x index weight out", "outer size places inner taps"),
    _record(
        "recurrent",
        "x weight bias h c hs cs kept acted space",
        "mode steps count hidden gates reverse gate0 gate1 gate2 gate3 room",
    ),
    _record(
        "recurrent_gradient",
        "by_h by_c gates acted states first weight out offsets dh dc space",
        "mode steps count hidden gates_each reverse gate0 gate1 gate2 gate3 room",
    ),
    _record("batch_norm", "x scale bias out mean var", "count channels inner", "eps"),
    _record(
        "batch_norm_gradient",
        "g x mean var scale out dscale dbias",
        "count channels inner",
        "eps",
    ),
    _record("channel_affine", "x factor offset out", "count channels inner"),
    _record(
        "depthwise",
        "x weight taps numbers bias out space",
        f"planes channels multiplier n_taps all_taps {_GRID} {_COPY} to0 to1 to2 "
        "out_plane out_start room",
    ),
    _record(
        "depthwise_weight",
        "x g taps out space",
        f"batch channels multiplier n_taps {_GRID} {_COPY} room",
    ),
    _record(
        "trees",
        "x roots features thresholds yes no modes missing targets weights packed space "
        "keys out fault",
        "rows width trees nodes leaves votes outputs groups how divisor is_double "
        "copies block room",
    ),
    _record("votes", "space out", "rows outputs groups how divisor is_double"),
    _record(
        "svm_kernel", "x vectors out", "rows width count kernel", "gamma coef0 degree"
    ),
    _record("pairwise_votes", "scores out", "rows classes"),
    _record("pairwise_coupling", "wins out space", "rows classes room"),
    _record(
        "pack",
        "x out",
        "groups outs ins taps wide depth group_step out_step in_step half",
    ),
    _record(
        "conv_weight",
        "x g runs starts out space",
        "ins outs taps chunks x_by g_by x_block g_block room",
    ),
    _record(
        "window_weight",
        "x g runs starts out space",
        "channels taps chunks x_by g_by x_block g_block room",
    ),
    _record(
        "channel_norm",
        "x scale bias out mean var",
        "pixels channels has_low",
        "eps low high",
    ),
    _record(
        "channel_norm_gradient",
        "g x y mean var scale out dscale dbias",
        "pixels channels",
        "eps above below",
    ),
    _record(
        "max_gradient",
        "g x out",
        "planes size0 size1 place0 place1 step0 step1 kernel0 kernel1 dilation0 "
        "dilation1 before0 before1",
    ),
    _record("gate", "g x out", "count has_below", "above below slope"),
    _record(
        "layer_norm_gradient",
        "g x weight out dweight dbias",
        "rows width center",
        "eps",
    ),
    _record(
        "group_norm_gradient",
        "g x weight out dweight dbias",
        "count groups channels inner",
        "eps",
    ),
    _record("add_rows", "g ids out", "count rows width skip"),
    _record("softmax_gradient", "g y out", "rows width inner is_log"),
    _record(
        "target_classes",
        "targets weight out by blank fault",
        "count classes ignores ignored is_mean",
    ),
    _record("cross_entropy", "x classes by softmax out", "rows width inner"),
    _record(
        "cross_entropy_gradient",
        "g softmax classes by out",
        "rows width inner is_summed",
    ),
    _record(
        "max_pool_gradient",
        "g x out",
        f"planes {_GRID} kernel0 kernel1 kernel2 dilation0 dilation1 dilation2 before0 "
        "before1 before2",
    ),
    _record(
        "max_windows",
        "x windows out places space",
        "planes size0 size1 size2 place0 place1 place2 even_first even length step "
        "room",
    ),
    _record("cum_sum", "x out", "rows width reverse exclusive"),
    _record(
        "dft",
        "x table out space fault",
        "outer inner places length results room x_pair is_packed is_half is_inverse",
    ),
    _record("calibrate", "x scale zero fault", "rows width x_row low high"),
    _record("fake_quantize", "x scale zero out", "rows width one low high"),
    _record(
        "quantize",
        "x scale zero out fault",
        "images size0 size1 before0 before1 behind0 behind1 width one x_row x_block "
        "x_plane out_row low high",
    ),
    _record(
        "quantized",
        "x x_scale x_zero weight scale zero total bias residual out from runs codes "
        "places values y_scale y_zero fault",
        "n_runs rows groups nr depth one outs out_row out_block act y_low y_high "
        "kernel0 kernel1 dilation0 dilation1 stride line row width",
        "low high",
    ),
    _record(
        "codes_sum",
        "a a_scale a_zero b b_scale b_zero out scale zero",
        "images size0 size1 margin0 margin1 start row y_low y_high",
        "low high",
    ),
    _record(
        "recurrent_codes",
        "x weight scale zero total h c hs last space fault",
        "steps count hidden reverse gate0 gate1 gate2 gate3 low high",
    ),
    _record("dequantize", "x scale zero out", "rows width row out_row out_block"),
    _record(
        "sgd",
        "weight grad velocity out factor",
        "count maximize nesterov has_decay",
        "rate momentum share decay bound",
    ),
    _record(
        "adam",
        "weight grad mean square largest out factor",
        "count maximize decays",
        "rate beta1 beta2 unbias eps decay bound",
    ),
    _record(
        "formula",
        f"weight grad out {_SLOTS} code factor",
        "count maximize slots steps constants",
        f"bound {_CONSTANTS}",
    ),
    _record("powers", "x out", "count", "p"),
    _record("clip_factor", "x out", "count", "p limit epsilon"),
    _record("keep_mask", "key out", "count bound"),
)
"""Every kind, in the order of its number."""

BY_NAME = {record.name: record for record in RECORDS}

ACTIVATIONS = (
    "none",
    "relu",
    "clip",
    "gelu",
    "gelu_tanh",
    "sigmoid",
    "tanh",
    "swish",
    "hard_swish",
    "ramp",
    "leaky",
    "elu",
    "softplus",
)
"""Activations applied to a result as it is stored; `low`, `high`: their numbers."""

_STEPS = (
    "add sub mul div max min neg abs exp sqrt erf square reciprocal log log1p expm1 "
    "sin cos pow floor ceil rint trunc greater at_least less at_most equal unequal "
    "and or not where leak huber huber_slope gelu_slope gelu_tanh_slope swish_slope "
    "hard_swish_slope sigmoid_slope tanh_slope leaky_slope elu_slope softplus_slope"
)
STEPS = {name: i for i, name in enumerate(_STEPS.split())}
"""Operators of element-wise programs by number; activations follow."""
STEPS |= {name: len(STEPS) + i for i, name in enumerate(ACTIVATIONS)}

_WHOLE = (
    "none add sub mul int_div floor_div mod fmod maximum minimum neg abs_ sign greater "
    "greater_or_equal less less_or_equal equal not_equal logical_and logical_or "
    "logical_xor logical_not bitwise_and bitwise_or bitwise_xor bitwise_not where"
)
WHOLE = {name: i for i, name in enumerate(_WHOLE.split())}
"""Element-wise steps on integers and truth values, by number."""
_WHOLE_KINDS = "int64 bool float32 int32 int8 uint8 int16"
WHOLE_KINDS = {name: i for i, name in enumerate(_WHOLE_KINDS.split())}
"""Dtypes that they read and write; of single precision they read the whole part."""

HELD_KINDS = (*WHOLE_KINDS, "float64")
"""Dtypes of the values that plans hold and move."""

FLOAT16 = {"widen": 0, "narrow": 1, "round": 2}
"""What happens to values of float16, which records have in single precision."""
READS = {"dense": 0, "one": 1, "strided": 2, "drawn": 3, "drawn_rows": 4}
RESULTS = {"values": 0, "bools": 1, "sums": 2, "pairs": 3}
PROGRAM = {"tile": 1024}
"""Of element-wise programs: what they store, and elements that go through together."""
WINDOWS = {"weights": 0, "max": 1, "sum": 2}
CELLS = {"lstm": 0, "gru": 1, "tanh": 2, "relu": 3}
_GEMV = "rows columns int8 int4 dots8 dots4 wide8 wide4"
GEMV = {name: i for i, name in enumerate(_GEMV.split())}
"""Layouts of weights: floats (outs, ins), (ins, outs); quantized (outs, ins), packed
for sums of 16 outputs in integers, and of 32 in floats."""
DIGITS = {"bytes": 112, "block": 32}
"""Of values as digits: the bytes of a block, and its values."""
REDUCTIONS = {"sum": 0, "max": 1}
FOLDS = {"prod": 0, "log_sum_exp": 1}
VOTES = {"sum": 0, "min": 1, "max": 2}
SVM_KERNELS = {"linear": 0, "poly": 1, "sigmoid": 2, "rbf": 3}
GRIDS = {"zeros": 0, "border": 1, "reflection": 2}
"""What is outside of a map that a grid samples."""
DECAYS = {"none": 0, "grad": 1, "weight": 2, "cautious": 3}
POWERS = {"block": 1 << 12}
"""Of sums of powers: the elements that are summed at a time."""


def reference(array: int, place: int = 0) -> int:
    """A place, in bytes, in an array of the call."""
    return array << PLACE | place


def packed(name: str, shares: int, **values: float) -> bytes:
    """A record's bytes. Every field has to be given."""
    kind, form, whole, real = _form(name)
    if len(values) != len(whole) + len(real) or not values.keys() >= {*whole, *real}:
        missing = {*whole, *real} ^ set(values)
        raise TypeError(f"record {name}: expected its fields alone, not {missing}")
    integers = [int(values[field]) for field in whole]
    return form.pack(kind, shares, *integers, *[values[field] for field in real])


def record_of(
    name: str, shares: int, references: Sequence[int], values: Mapping[str, float]
) -> bytes:
    """A record's bytes, given its references and, among others, its numbers."""
    kind, form, whole, real = _form(name)
    integers = map(int, map(values.__getitem__, whole[len(references) :]))
    reals = map(values.__getitem__, real)
    return form.pack(kind, shares, *references, *integers, *reals)


def records_of(
    name: str,
    shares: Sequence[int],
    references: Sequence[Sequence[int]],
    values: Sequence[Mapping[str, float]],
) -> bytes:
    """Records of one kind, with the references of each, and the values of each."""
    record, (kind, *_) = BY_NAME[name], _form(name)
    rows = np.zeros((len(values), WORDS), np.int64)
    rows[:, 0], rows[:, 1] = kind, shares
    column = 2 + len(record.references)
    rows[:, 2:column] = references
    for field in record.integers:
        rows[:, column] = [each[field] for each in values]
        column += 1
    reals = rows.view(np.float64)
    for field in record.reals:
        reals[:, column] = [each[field] for each in values]
        column += 1
    return rows.tobytes()


@functools.cache
def _form(
    name: str,
) -> tuple[int, struct.Struct, tuple[str, ...], tuple[str, ...]]:
    """A kind's number, its bytes, and the fields that are integers and reals."""
    record = BY_NAME[name]
    whole = record.references + record.integers
    spare = 8 * (WORDS - 2 - len(record.fields))
    form = struct.Struct(f"={2 + len(whole)}q{len(record.reals)}d{spare}x")
    return RECORDS.index(record), form, whole, record.reals


def header() -> str:
    """records.h: the same for C."""
    lines = ["#pragma once", "#include <stdint.h>", ""]
    lines += [
        "typedef struct { int64_t kind, shares; } record_head;",
        f"enum {{ RECORD_BYTES = {8 * WORDS} }};",
    ]
    for record in RECORDS:
        whole = ", ".join(("kind", "shares", *record.references, *record.integers))
        real = f" double {', '.join(record.reals)};" if record.reals else ""
        lines.append(
            f"typedef struct {{ int64_t {whole};{real} }} {record.name}_record;"
        )
    lines.append(_enum("ACT", {name: i for i, name in enumerate(ACTIVATIONS)}))
    lines.append(_enum("DO", STEPS | {"activation": STEPS["none"]}))
    lines.append(_enum("WHOLE_DO", WHOLE))
    lines.append(_enum("WHOLE", WHOLE_KINDS))
    lines.append(_enum("FLOAT16", FLOAT16))
    lines.append(_enum("READ", READS))
    lines.append(_enum("RESULT", RESULTS))
    lines.append(_enum("PROGRAM", PROGRAM))
    lines.append(_enum("WINDOW", WINDOWS))
    lines.append(_enum("CELL", CELLS))
    lines.append(_enum("GEMV", GEMV))
    lines.append(_enum("REDUCE", REDUCTIONS))
    lines.append(_enum("FOLD", FOLDS))
    lines.append(_enum("GRID", GRIDS))
    lines.append(_enum("DECAY", DECAYS))
    lines.append(_enum("POWERS", POWERS))
    lines.append(_enum("FORMULA", FORMULA))
    lines.append(_enum("VOTES", VOTES))
    lines.append(_enum("KERNEL", SVM_KERNELS))
    return "\n".join(lines) + "\n"


def table() -> str:
    """table.h: the kernels by their records' numbers."""
    names = [record.name for record in RECORDS]
    lines = ["#pragma once", '#include "call.h"']
    lines += [
        f"void {name}(const void *, const call *, int64_t, int64_t);" for name in names
    ]
    lines.append(f"static const kernel KERNEL_TABLE[] = {{{', '.join(names)}}};")
    return "\n".join(lines) + "\n"


def _enum(prefix: str, names: dict[str, int]) -> str:
    items = ", ".join(f"{prefix}_{name.upper()} = {i}" for name, i in names.items())
    return f"enum {{ {items} }};"
