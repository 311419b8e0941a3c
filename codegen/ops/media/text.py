"""Text: strings joined, split, matched and counted. They stay on the host."""

from __future__ import annotations

from typing import Any

import numpy as np

from burnish.codegen.ops.rule.expressions import call, plain
from burnish.codegen.ops.rule.registry import NodeContext, Result, onnx_op
from burnish.codegen.ops.rule.traits import BROADCAST, ELEMENTWISE, OWN_SHAPE, UNBOUNDED
from burnish.codegen.program import Expression, Literal, Subscript, Weight

_INLINE = 64


def listed(values: Any, hint: str) -> Any:
    """Known values as a list in the source; many numbers as a buffer."""
    array = np.asarray(values)
    if array.dtype.kind in "OU" or array.size <= _INLINE:
        return Literal(plain(array))
    return Weight(hint, array.dtype.name, array.shape, lambda: array, trained=False)


@onnx_op("StringConcat", since=20, traits=BROADCAST | UNBOUNDED)
def string_concat(X: Expression, Y: Expression) -> Result:
    return call("string_concat", X, Y)


@onnx_op("StringSplit", since=20, traits=OWN_SHAPE | UNBOUNDED)
def string_split(
    X: Expression,
    *,
    delimiter: str | None = None,
    maxsplit: int | None = None,
    node: NodeContext,
) -> Result:
    parts = call("string_split", X, delimiter=delimiter or None, maxsplit=maxsplit)
    return parts if len(node.outputs) > 1 else Subscript(parts, (Literal(0),))


@onnx_op("Tokenizer", domain="burnish", traits=OWN_SHAPE | UNBOUNDED)
def tokenizer(
    X: Expression,
    *,
    mark: int,
    mincharnum: int,
    pad_value: str,
    separators: list[str] | None = None,
    tokenexp: str | None = None,
) -> Result:
    """onnxruntime's; its regular expressions are RE2's, here Python's over ASCII."""
    return call(
        "tokenize",
        X,
        pattern=tokenexp,
        separators=separators or (),
        shortest=mincharnum,
        mark=mark,
        pad=pad_value,
    )


@onnx_op("MurmurHash3", domain="burnish", traits=ELEMENTWISE | UNBOUNDED)
def murmur_hash3(X: Expression, *, positive: int = 1, seed: int = 0) -> Result:
    return call("murmur_hash3", X, seed=seed, signed=not positive)


@onnx_op("RegexFullMatch", since=20, traits=ELEMENTWISE | UNBOUNDED)
def regex_full_match(X: Expression, *, pattern: str | None = None) -> Result:
    return call("regex_full_match", X, pattern=pattern or "")


@onnx_op("StringNormalizer", since=10, traits=OWN_SHAPE | UNBOUNDED)
def string_normalizer(
    X: Expression,
    *,
    case_change_action: str = "NONE",
    is_case_sensitive: int = 0,
    locale: str | None = None,
    stopwords: list[str] | None = None,
) -> Result:
    """Python's strings change case by Unicode's rules, whatever the locale."""
    return call(
        "string_normalizer",
        X,
        case_change_action=case_change_action,
        is_case_sensitive=is_case_sensitive,
        stopwords=tuple(stopwords or ()),
    )


@onnx_op("TfIdfVectorizer", since=9, traits=OWN_SHAPE | UNBOUNDED)
def tf_idf_vectorizer(
    X: Expression,
    *,
    max_gram_length: int,
    max_skip_count: int,
    min_gram_length: int,
    mode: str,
    ngram_counts: list[int],
    ngram_indexes: list[int],
    pool_int64s: list[int] | None = None,
    pool_strings: list[str] | None = None,
    weights: list[float] | None = None,
) -> Result:
    pool = pool_int64s if pool_strings is None else pool_strings
    scale = None
    if weights is not None and mode != "TF":
        scale = listed(np.asarray(weights, np.float32), "weights")
    return call(
        "tf_idf_vectorizer",
        X,
        pool=listed(pool, "pool"),
        starts=ngram_counts,
        indexes=listed(ngram_indexes, "indexes"),
        weights=scale,
        mode=mode,
        min_length=min_gram_length,
        max_length=max_gram_length,
        max_skip=max_skip_count,
    )
