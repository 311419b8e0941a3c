"""ai.onnx.ml: scalers and encoders, linear models, support vectors, trees."""

from __future__ import annotations

from typing import Any

import numpy as np

from burnish.codegen.ops.media.text import listed
from burnish.codegen.ops.rule.expressions import DEVICE, call, method, operand, tensor
from burnish.codegen.ops.rule.registry import NodeContext, Result, onnx_op
from burnish.codegen.ops.rule.traits import ELEMENTWISE, OWN_SHAPE, SAME_SHAPE
from burnish.codegen.ops.rule.words import cast
from burnish.codegen.program import (
    BinOp,
    Call,
    Constant,
    Expression,
    Literal,
    Weight,
)

ML = "ai.onnx.ml"


def _row(values: Any, hint: str, dtype: Any = np.float32) -> Any:
    """Numbers beside a tensor: one alone, or a buffer of them."""
    array = np.asarray(values, dtype)
    if array.size == 1:
        return Literal(
            float(str(array[0])) if array.dtype.kind == "f" else array.item()
        )
    return Weight(hint, array.dtype.name, array.shape, lambda: array, trained=False)


@onnx_op("ArrayFeatureExtractor", domain=ML, traits=OWN_SHAPE)
def array_feature_extractor(X: Expression, Y: Expression) -> Result:
    places = Y if Y.rank == 1 else method(Y, "reshape", -1)
    chosen = call("take", X, places, axis=-1)
    return method(chosen, "reshape", 1, -1) if X.rank == 1 else chosen


@onnx_op("Binarizer", domain=ML, traits=ELEMENTWISE)
def binarizer(X: Expression, *, threshold: float = 0.0) -> Result:
    return cast(BinOp(">", tensor(X), Literal(threshold)), X.dtype)


@onnx_op("Scaler", domain=ML, traits=SAME_SHAPE)
def scaler(
    X: Expression,
    *,
    offset: list[float] | None = None,
    scale: list[float] | None = None,
) -> Result:
    y = cast(operand(X), "float32")
    if offset and any(offset):
        y = BinOp("-", y, _row(offset, "offset"))
    if scale and any(s != 1 for s in scale):
        y = BinOp("*", y, _row(scale, "scale"))
    return y


@onnx_op("Normalizer", domain=ML, traits=SAME_SHAPE)
def normalizer(X: Expression, *, norm: str = "MAX") -> Result:
    x = cast(operand(X), "float32")
    if norm == "MAX":
        top = call("reduce_max", x, axes=-1, keepdims=True)
        return BinOp("/", x, call("where", BinOp("==", top, Literal(0)), 1.0, top))
    return call("lp_normalization", x, p=1 if norm == "L1" else 2)


@onnx_op("Imputer", domain=ML, traits=SAME_SHAPE)
def imputer(
    X: Expression,
    *,
    imputed_value_floats: list[float] | None = None,
    imputed_value_int64s: list[int] | None = None,
    replaced_value_float: float = 0.0,
    replaced_value_int64: int = 0,
) -> Result:
    x = tensor(X)
    if not imputed_value_floats:
        lacking: Expression = BinOp("==", x, Literal(replaced_value_int64))
        value = _row(imputed_value_int64s, "imputed", X.dtype)
    else:
        is_nan = np.isnan(replaced_value_float)
        lacking = (
            call("is_nan", x)
            if is_nan
            else BinOp("==", x, Literal(replaced_value_float))
        )
        value = _row(imputed_value_floats, "imputed", X.dtype)
    return call("where", lacking, value, x)


@onnx_op("FeatureVectorizer", domain=ML, traits=OWN_SHAPE)
def feature_vectorizer(
    *X: Expression, inputdimensions: list[int] | None = None
) -> Result:
    parts = []
    sizes: list[Any] = [*(inputdimensions or ())] or [None] * len(X)
    for x, size in zip(X, sizes, strict=True):
        part = cast(operand(x), "float32")
        part = method(part, "unsqueeze", 0) if x.rank == 1 else tensor(part)
        have = x.shape[-1] if x.shape else None
        if isinstance(size, int) and isinstance(have, int) and size != have:
            part = call("pad", part, pad_width=((0, 0), (0, size - have)))
        parts.append(part)
    return call("concat", parts, axis=1) if len(parts) > 1 else parts[0]


@onnx_op("OneHotEncoder", domain=ML, traits=OWN_SHAPE)
def one_hot_encoder(
    X: Expression,
    *,
    cats_int64s: list[int] | None = None,
    cats_strings: list[str] | None = None,
    zeros: int = 1,
) -> Result:
    """Unknown categories are zeros everywhere, also where the file wants an error."""
    if cats_int64s:
        x = cast(operand(X), "int64")
        categories = operand(Constant(np.asarray(cats_int64s, np.int64)))
    else:
        x = tensor(X)
        categories = operand(Constant(np.asarray(cats_strings, object)))
    same = call("equal", method(x, "unsqueeze", -1), categories)
    return cast(same, "float32")


@onnx_op("LabelEncoder", since=1, domain=ML)
def label_encoder_of_classes(
    X: Expression,
    *,
    classes_strings: list[str] | None = None,
    default_int64: int = -1,
    default_string: str = "_Unused",
) -> Result:
    return _mapped(X, classes_strings or [], default_int64, default_string)


@onnx_op("CategoryMapper", domain=ML, traits=ELEMENTWISE)
def category_mapper(
    X: Expression,
    *,
    cats_int64s: list[int] | None = None,
    cats_strings: list[str] | None = None,
    default_int64: int = -1,
    default_string: str = "_Unused",
) -> Result:
    numbers, words = cats_int64s or [], cats_strings or []
    if X.dtype == "object":
        return call("label_encoder", X, words, numbers, default=default_int64)
    return call("label_encoder", X, numbers, words, default=default_string)


def _mapped(x: Expression, words: list[str], number: int, word: str) -> Result:
    places = list(range(len(words)))
    if x.dtype == "object":
        return call("label_encoder", x, words, places, default=number)
    return call("label_encoder", x, places, words, default=word)


@onnx_op("LabelEncoder", since=2, domain=ML, traits=ELEMENTWISE)
def label_encoder(
    X: Expression,
    *,
    default_float: float = -0.0,
    default_int64: int = -1,
    default_string: str = "_Unused",
    default_tensor: Constant | None = None,
    keys_floats: list[float] | None = None,
    keys_int64s: list[int] | None = None,
    keys_strings: list[str] | None = None,
    keys_tensor: Constant | None = None,
    values_floats: list[float] | None = None,
    values_int64s: list[int] | None = None,
    values_strings: list[str] | None = None,
    values_tensor: Constant | None = None,
) -> Result:
    keys: Any = keys_floats or keys_int64s or keys_strings
    if keys_tensor is not None:
        keys = keys_tensor.array
    kind: Any = (None, None, None)
    if values_tensor is not None:
        array = values_tensor.array
        default = {"O": default_string, "f": default_float}.get(array.dtype.kind, -1)
        if default_tensor is not None:
            default = default_tensor.array.reshape(-1)[0]
        kind = (array, array.dtype, default)
    return _encoded(
        X,
        keys,
        kind,
        (values_floats, np.float32, default_float),
        (values_int64s, np.int64, default_int64),
        (values_strings, object, default_string),
    )


def _encoded(x: Expression, keys: Any, *kinds: tuple[Any, Any, Any]) -> Result:
    """The first kind of values that the node has."""
    values, dtype, default = next(kind for kind in kinds if kind[0] is not None)
    table = np.asarray(values, dtype)
    natural = table.dtype in (np.dtype(object), np.float32, np.int64)
    return call(
        "label_encoder",
        x,
        listed(np.asarray(keys, None if x.dtype is None else x.dtype), "keys"),
        listed(table, "values"),
        default=np.asarray(default, dtype).item(),
        dtype=None if natural else table.dtype.name,
    )


@onnx_op("DictVectorizer", domain=ML, traits=OWN_SHAPE)
def dict_vectorizer(
    X: Expression,
    *,
    int64_vocabulary: list[int] | None = None,
    string_vocabulary: list[str] | None = None,
    node: NodeContext,
) -> Result:
    """The reader says the type of the result, which that of the map's values is."""
    keys = string_vocabulary or int64_vocabulary or []
    dtype = node.dtypes[0] or "float32"
    return _on_device(call("dict_vectorizer", X, keys, dtype=dtype))


@onnx_op("CastMap", domain=ML, traits=OWN_SHAPE)
def cast_map(
    X: Expression,
    *,
    cast_to: str = "TO_FLOAT",
    map_form: str = "DENSE",
    max_map: int = 1,
) -> Result:
    dtypes = {"TO_FLOAT": "float32", "TO_INT64": "int64", "TO_STRING": "object"}
    size = max_map if map_form == "SPARSE" else None
    return _on_device(call("cast_map", X, dtype=dtypes[cast_to], size=size))


def _on_device(array: Expression) -> Expression:
    return Call("Tensor", (array,), (("device", DEVICE),))


@onnx_op("ZipMap", domain=ML, traits=OWN_SHAPE)
def zip_map(
    X: Expression,
    *,
    classlabels_int64s: list[int] | None = None,
    classlabels_strings: list[str] | None = None,
) -> Result:
    return call("zip_map", X, classlabels_strings or classlabels_int64s)
