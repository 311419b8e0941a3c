"""Text: arrays of strings, which are NumPy arrays of objects and live on the host.

Nothing here has a gradient. Numbers that text becomes (counts, matches, weights of
n-grams) are ordinary arrays.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from burnish.backend import Array
from burnish.errors import InputError
from burnish.operator import operator


@operator
def string_concat(x, y) -> Array:
    """Each string of x followed by y's; both broadcast."""
    return np.asarray(np.asarray(x, object) + np.asarray(y, object), object)


@operator
def string_split(
    x, *, delimiter: str | None = None, maxsplit: int | None = None
) -> tuple[Array, Array]:
    """The parts of each string along a new last axis, and how many they are (int64).

    Shorter rows end in "". Without a delimiter (None or "") strings are split at runs
    of white space. After maxsplit splits the rest is the last part.
    """
    limit = -1 if maxsplit is None else maxsplit
    parts = [text.split(delimiter or None, limit) for text in x.ravel()]
    counts = np.fromiter(map(len, parts), np.int64, len(parts))
    longest = int(counts.max(initial=0))
    rows = [row + [""] * (longest - len(row)) for row in parts]
    padded = np.asarray(rows, object).reshape(*x.shape, longest)
    return padded, counts.reshape(x.shape)


@operator
def tokenize(
    x,
    *,
    pattern: str | None = None,
    separators: Sequence[str] = (),
    shortest: int = 1,
    mark: bool = False,
    pad: str = "",
) -> Array:
    """The tokens of each string along a new last axis; shorter rows end in `pad`.

    pattern: the regular expression of a token; without one, separators: those of what
    lies between tokens, in the order in which they split; one "" makes each character
    a token. Tokens of fewer than
    `shortest` characters are left out. mark: "\\x02" before a row's tokens and "\\x03"
    behind them.
    """
    find = _tokens(pattern, separators)
    rows = [list(filter(None, find(text))) for text in x.ravel().tolist()]
    if shortest > 1:
        rows = [[token for token in row if len(token) >= shortest] for row in rows]
    longest = max(map(len, rows), default=0)
    if mark and longest:
        rows, longest = [["\x02", *row, "\x03"] for row in rows], longest + 2
    padded = [row + [pad] * (longest - len(row)) for row in rows]
    return np.asarray(padded, object).reshape(*x.shape, longest)


def _tokens(pattern: str | None, separators: Sequence[str]) -> Callable[[str], Any]:
    """The tokens of a string, by what they are or by what separates them."""
    if pattern is None and list(separators) == [""]:
        return list
    if pattern is not None:
        found = _compiled("tokenize", pattern)
        if not found.groups:
            return found.findall
        return lambda text: [match.group() for match in found.finditer(text)]
    between = [_compiled("tokenize", separator) for separator in separators]

    def split(text: str) -> list[str]:
        parts = [text]
        for each in between:
            parts = [piece for part in parts for piece in _pieces(each, part)]
        return parts

    return split


def _pieces(separator: re.Pattern[str], text: str) -> Iterator[str]:
    """The text between matches. `re.split` would add a separator's groups."""
    start = 0
    for match in separator.finditer(text):
        yield text[start : match.start()]
        start = match.end()
    yield text[start:]


def _compiled(operator: str, pattern: str) -> re.Pattern[str]:
    """With RE2's classes, as in onnxruntime: \\d, \\w and \\b are of ASCII alone."""
    try:
        return re.compile(pattern, 0 if pattern.startswith("(?u)") else re.ASCII)
    except (re.error, ValueError) as error:
        raise InputError(
            f"{operator}: expected a regular expression, got {pattern!r}: {error}"
        ) from None


@operator
def murmur_hash3(x, *, seed: int = 0, signed: bool = False) -> Array:
    """MurmurHash3 (x86, 32 bits) of each string's UTF-8 or number's bytes, uint32.

    signed: the same bits as int32, as scikit-learn's FeatureHasher has them.
    """
    array = np.asarray(x)
    if array.dtype.kind == "O":
        texts = [str(text).encode() for text in array.ravel()]
    else:
        texts = [number.tobytes() for number in array.ravel()]
    hashes = np.empty(len(texts), np.uint32)
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    for length in np.unique(lengths):
        (places,) = np.nonzero(lengths == length)
        alike = b"".join(texts[place] for place in places)
        rows = np.frombuffer(alike, np.uint8).reshape(len(places), length)
        hashes[places] = _murmur_hash3(rows, seed)
    return hashes.view(np.int32 if signed else np.uint32).reshape(array.shape)


def _murmur_hash3(rows: np.ndarray, seed: int) -> np.ndarray:
    """The hash of each row of bytes."""
    count, length = rows.shape
    padded = np.zeros((count, -(-length // 4) * 4), np.uint8)
    padded[:, :length] = rows
    words = padded.view("<u4").astype(np.uint32)
    h = np.full(count, seed, np.uint32)
    for place in range(words.shape[1]):
        word = _rotated(words[:, place] * np.uint32(0xCC9E2D51), 15)
        h ^= word * np.uint32(0x1B873593)
        if place < length // 4:  # the last bytes are mixed in without these steps
            h = _rotated(h, 13) * np.uint32(5) + np.uint32(0xE6546B64)
    h ^= np.uint32(length)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1)):
        h = (h ^ (h >> np.uint32(shift))) * np.uint32(factor)
    return h


def _rotated(words: np.ndarray, bits: int) -> np.ndarray:
    return (words << np.uint32(bits)) | (words >> np.uint32(32 - bits))


@operator
def regex_full_match(x, *, pattern: str) -> Array:
    """Whether each string matches the regular expression as a whole (bool)."""
    matches = _compiled("regex_full_match", pattern).fullmatch
    return _mapped(lambda text: matches(text) is not None, x, bool)


_CASES: dict[str, Callable[[str], str]] = {
    "NONE": str,
    "LOWER": str.lower,
    "UPPER": str.upper,
}


@operator
def string_normalizer(
    x,
    *,
    case_change_action: str = "NONE",
    is_case_sensitive: bool = False,
    stopwords: Sequence[str] = (),
) -> Array:
    """x (C,) or (1, C) without its stop words; "UPPER" or "LOWER" changes case.

    Where nothing is left, one empty string is. Stop words are found in any case unless
    `is_case_sensitive`.
    """
    if len(x.shape) not in (1, 2) or (len(x.shape) == 2 and x.shape[0] != 1):
        raise InputError(f"string_normalizer: expected (C,) or (1, C), got {x.shape}")
    seen: Callable[[str], str] = str if is_case_sensitive else str.lower
    stops = set(map(seen, stopwords))
    change = _CASES[case_change_action]
    texts = x.ravel().tolist()
    if stops:
        texts = [text for text in texts if seen(text) not in stops]
    kept = [*map(change, texts)]
    return np.asarray(kept or [""], object).reshape(*x.shape[:-1], -1)


@operator
def tf_idf_vectorizer(
    x,
    *,
    pool: Any,
    starts: Sequence[int],
    indexes: Any,
    weights: Any = None,
    mode: str = "TF",
    min_length: int = 1,
    max_length: int = 1,
    max_skip: int = 0,
) -> Array:
    """How often each n-gram occurs: tokens (C,) or (N, C) -> (size,) or (N, size)

    pool: the n-grams' tokens, all of one token first, then all of two, and so on;
    starts: where each length begins. indexes: the column of each n-gram. mode: "TF"
    counts, "IDF" gives the n-gram's weight where it occurs, "TFIDF" count times weight.
    Between the tokens of an n-gram up to max_skip others may lie, equally many each.
    """
    given = (pool, starts, indexes, () if weights is None else weights)
    grams = _grams(*map(_listed, given))
    return _counted(x, grams, mode, min_length, max_length, max_skip)


@tf_idf_vectorizer.bound
def _(
    x,
    *,
    pool,
    starts,
    indexes,
    weights=None,
    mode="TF",
    min_length=1,
    max_length=1,
    max_skip=0,
):
    given = (pool, starts, indexes, () if weights is None else weights)
    grams = _grams(*map(_listed, given))
    return lambda x: _counted(x, grams, mode, min_length, max_length, max_skip)


def _counted(
    x: Any, grams: _Grams, mode: str, shortest: int, longest: int, most_skipped: int
) -> Any:
    """See `tf_idf_vectorizer`."""
    tokens = grams.places(np.atleast_2d(x))
    size = grams.scale.shape[1]
    cells = []
    for n, (columns, levels) in enumerate(grams.of, 1):
        if shortest <= n <= longest:
            for step in range(1, most_skipped + 2 if n > 1 else 2):
                rows, places = _found(tokens, levels, step, grams.size)
                cells.append(rows * size + columns[places])
    every = np.concatenate(cells) if cells else np.zeros(0, np.int64)
    counts = np.bincount(every, minlength=len(tokens) * size).astype(np.float32)
    counts = counts.reshape(len(tokens), size)
    if mode != "TF":
        counts = (np.minimum(counts, 1) if mode == "IDF" else counts) * grams.scale
    return counts.reshape(*x.shape[:-1], size)


class _Grams(NamedTuple):
    """places: a token's number, -1 for others; size: how many there are. scale: weights
    of columns (1, C). of: for each length, the column of each n-gram, and the sorted
    beginnings of one token, of two and so on; see `_found`."""

    places: Callable[[Any], Any]
    size: int
    scale: Any
    of: list[tuple[Any, list[Any]]]


@functools.lru_cache(maxsize=32)
def _grams(pool: Any, starts: Any, indexes: Any, weights: Any) -> _Grams:
    """The n-grams of a pool, looked up again by every call with the same."""
    vocabulary, known = np.unique(np.asarray(pool), return_inverse=True)
    columns = np.asarray(indexes, np.int64)
    scale = np.ones((1, int(columns.max(initial=-1)) + 1), np.float32)
    of, first = [], 0
    ends = (*starts[1:], len(pool))
    for n, (start, end) in enumerate(zip(starts, ends, strict=True), 1):
        grams = known[start:end].reshape(-1, n)
        behind = first + len(grams)
        if weights:
            scale[0, columns[first:behind]] = weights[first:behind]
        levels, ours = [], np.zeros(len(grams), np.int64)
        for i in range(n):
            codes = ours * len(vocabulary) + grams[:, i]
            beginnings, ours = np.unique(codes, return_inverse=True)
            levels.append(beginnings)
        whole = np.empty(len(levels[-1]), np.int64)
        whole[ours] = columns[first:behind]
        of.append((whole, levels))
        first = behind
    if vocabulary.dtype.kind in "iu":
        return _Grams(
            functools.partial(_places, vocabulary), len(vocabulary), scale, of
        )
    find = {token: i for i, token in enumerate(vocabulary.tolist())}.get

    def places(tokens: Any) -> Any:
        found = map(find, tokens.ravel().tolist(), itertools.repeat(-1))
        return np.fromiter(found, np.int64, tokens.size).reshape(tokens.shape)

    return _Grams(places, len(vocabulary), scale, of)


def _listed(values: Any) -> tuple[Any, ...]:
    return tuple(values.tolist() if hasattr(values, "tolist") else values)


def _places(held: Any, values: Any) -> Any:
    """Where each value is among sorted ones; -1 where it is not."""
    if not len(held):
        return np.full(values.shape, -1)
    places = np.minimum(np.searchsorted(held, values), len(held) - 1)
    return np.where(held[places] == values, places, -1)


def _found(tokens: Any, levels: list[Any], step: int, size: int) -> tuple[Any, Any]:
    """The rows of tokens (N, C) in which n-grams occur, and which of the last level.

    Token by token, a beginning seen in the pool gets a number and others -1, so that
    pairs (beginning, next token) are all that is ever compared.
    """
    count = max(tokens.shape[1] - (len(levels) - 1) * step, 0)
    begun: Any = 0
    for i, beginnings in enumerate(levels):
        here = tokens[:, i * step : i * step + count]
        pairs = np.where((begun < 0) | (here < 0), -1, begun * size + here)
        begun = _places(beginnings, pairs)
    rows, at = np.nonzero(begun >= 0)
    return rows, begun[rows, at]


def _mapped(function: Callable[[str], Any], x: Any, dtype: Any) -> Any:
    """The function of each string, in x's shape."""
    results: Iterable[Any] = map(function, x.ravel())
    return np.fromiter(results, dtype, x.size).reshape(x.shape)
