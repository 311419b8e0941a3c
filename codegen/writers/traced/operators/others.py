"""Random numbers, signals, text, training's losses."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from burnish.codegen.writers.traced.emitter import Emitter, data_type, tensor
from burnish.codegen.writers.traced.operators.shape import slices
from burnish.codegen.writers.traced.table import same_as, writers, writes

writers.update({
    "string_concat": same_as("StringConcat"),
    "regex_full_match": same_as("RegexFullMatch"),
    "decode_image": same_as("ImageDecoder"),
})  # fmt: skip
_INT64 = int(ir.DataType.INT64)


@writes("bit_cast")
def bit_cast(emit: Emitter, x: Any, *, dtype: Any) -> Any:
    return emit("BitCast", x, to=int(data_type(dtype)))


@writes("dft")
def dft(
    emit: Emitter, x: Any, *, axis: int, length: Any, inverse: bool, onesided: bool
) -> Any:
    if inverse and onesided:
        raise emit.cannot("the inverse of half a spectrum")
    count = None if length is None else np.int64(length)
    if onesided and x.shape[-1] == 2:
        full = emit("DFT", x, count, np.int64(axis))
        half = emit.result.shape[axis % len(x.shape)]
        return slices(emit, full, {axis % len(x.shape): slice(0, half)})
    return emit(
        "DFT", x, count, np.int64(axis), inverse=int(inverse), onesided=int(onesided)
    )


@writes("range_")
def range_(emit: Emitter, start: Any, limit: Any, delta: Any) -> Any:
    ends = (emit.cast(n, emit.result.dtype) for n in (start, limit, delta))
    return emit("Range", *ends)


@writes("constant_of_shape")
def constant_of_shape(emit: Emitter, shape: Any, *, value: Any) -> Any:
    held = np.asarray(np.float32(0) if value is None else value).reshape(())
    return emit("Expand", held, emit.cast(shape, np.int64))


@writes("bernoulli")
def bernoulli(emit: Emitter, x: Any) -> Any:
    return emit("Bernoulli", x, dtype=int(data_type(emit.result.dtype)))


@writes("multinomial")
def multinomial(
    emit: Emitter, x: Any, num_samples: int, replacement: bool = False
) -> Any:
    """Multinomial; without replacement the shortest of waiting times, as `ops` does."""
    n = x.shape[-1] if x.shape else 1
    weights = emit.cast(emit.reshape(x, (-1, n)), np.float32)
    if replacement:
        logs = emit("Log", weights)
        made = emit("Multinomial", logs, dtype=_INT64, sample_size=num_samples)
    else:
        never = emit("LessOrEqual", weights, np.float32(0))
        u = emit("RandomUniformLike", weights, dtype=int(ir.DataType.FLOAT))
        waits = emit(
            "Neg", emit("Div", emit("Log", emit("Sub", np.float32(1), u)), weights)
        )
        waits = emit("Where", never, np.float32(np.inf), waits)
        _, made = emit("TopK", waits, emit.ints([num_samples]), outputs=2, largest=0)
    return emit.reshape(made, emit.result.shape)


@writes("power_of_two")
def power_of_two(emit: Emitter, x: Any, *, rounding: str, saturate: bool) -> Any:
    single = emit.cast(x, np.float32)
    kind = int(ir.DataType.FLOAT8E8M0)
    return emit("Cast", single, to=kind, round_mode=rounding, saturate=int(saturate))


@writes("string_split")
def string_split(emit: Emitter, x: Any, *, delimiter: Any, maxsplit: Any) -> Any:
    return emit("StringSplit", x, outputs=2, delimiter=delimiter, maxsplit=maxsplit)


@writes("string_normalizer")
def string_normalizer(
    emit: Emitter,
    x: Any,
    *,
    case_change_action: str,
    is_case_sensitive: bool,
    stopwords: Any,
) -> Any:
    return emit(
        "StringNormalizer", x, case_change_action=case_change_action,
        is_case_sensitive=int(is_case_sensitive), stopwords=list(stopwords) or None,
    )  # fmt: skip


@writes("label_encoder")
def label_encoder(
    emit: Emitter, x: Any, keys: Any, values: Any, *, default: Any, dtype: Any
) -> Any:
    """Of equal keys the first one counts; in a table of ONNX's each comes once."""
    kind = emit.result.dtype
    held = np.asarray(keys, x.dtype)
    pairs = zip(held.tolist(), np.asarray(values, kind).tolist(), strict=True)
    table = dict(reversed([*pairs]))
    if nan := [key for key in table if key != key]:
        first = table[nan[-1]]
        table = {key: v for key, v in table.items() if key == key} | {nan[0]: first}
    tensors = {
        "keys_tensor": np.asarray([*table], x.dtype),
        "values_tensor": np.asarray([*table.values()], kind),
        "default_tensor": np.asarray([default], kind),
    }
    attributes = {name: tensor(array, name) for name, array in tensors.items()}
    return emit("LabelEncoder", x, domain="ai.onnx.ml", **attributes)


@writes("tf_idf_vectorizer")
def tf_idf_vectorizer(
    emit: Emitter,
    x: Any,
    *,
    pool: Any,
    starts: Any,
    indexes: Any,
    weights: Any,
    mode: str,
    min_length: int,
    max_length: int,
    max_skip: int,
) -> Any:
    words = np.asarray(pool)
    texts = words.dtype.kind in "OU"
    return emit(
        "TfIdfVectorizer",
        x,
        mode=mode,
        min_gram_length=min_length,
        max_gram_length=max_length,
        max_skip_count=max_skip,
        ngram_counts=[int(n) for n in starts],
        ngram_indexes=[int(n) for n in np.asarray(indexes)],
        weights=None if weights is None else [float(w) for w in np.asarray(weights)],
        **{"pool_strings" if texts else "pool_int64s": words.tolist()},
    )
