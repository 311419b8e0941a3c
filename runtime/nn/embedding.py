"""Embedding and EmbeddingBag. V rows of the table, D their size."""

from __future__ import annotations

from typing import Any

import numpy as np

from burnish import ops
from burnish.backend import Array, Device, as_indices, namespace, on_host
from burnish.errors import InputError
from burnish.nn import init
from burnish.nn.core.layer import Layer
from burnish.nn.core.param import Param
from burnish.steps import call, step
from burnish.tensor import Tensor


class _Table(Layer):
    num_embeddings: int
    padding_idx: int | None
    max_norm: float | None
    norm_type: float
    scale_grad_by_freq: bool
    weight: Param

    def _initial(self) -> init.Initializer:
        """Normal, but for the row of padding_idx."""
        place, count = self.padding_idx, self.num_embeddings
        if place is None:
            return init.normal()
        if not -count <= place < count:
            raise InputError(
                f"{type(self).__name__}: expected padding_idx from {-count} to "
                f"{count - 1}, got {place}"
            )

        def make(shape: tuple[int, ...], dtype: Any, device: Device) -> Array:
            rows = init.normal()(shape, dtype, device)
            rows[place] = 0
            return rows

        return make

    def _rows(self, ids: Tensor) -> Tensor:
        """ids (...) -> (..., D)"""
        norm: dict[str, Any] = {"max_norm": self.max_norm, "norm_type": self.norm_type}
        if self.weight.scheme is not None:
            return from_quantized(self.weight, ids, **norm)
        if self.max_norm is not None and not self.weight.derived:
            self.weight.assign(_shortened(self.weight, ids, **norm))
        rows = ops.embedding(ids, self.weight, padding_idx=self.padding_idx)
        if self.max_norm is not None and self.weight.derived:
            rows = rows * _scales(rows, **norm)
        if self.scale_grad_by_freq and rows.node is not None:
            count = self.num_embeddings
            rows = _held(rows, _rarity(ids, count=count, dtype=rows.dtype))
        return rows


@call
def from_quantized(
    weight: Param, ids: Any, *, max_norm: float | None, norm_type: float
) -> Tensor:
    """Rows of a quantized table; only these are dequantized."""
    table: Any = weight.held
    try:
        rows = table.take(ids.data if isinstance(ids, Tensor) else np.asarray(ids))
    except IndexError:
        return ops.embedding(ids, weight)  # says which ids there are
    if max_norm is not None:
        rows = rows * _scales(rows, max_norm=max_norm, norm_type=norm_type)
    return Tensor.wrap(rows, weight.device)


@step
def _shortened(weight: Array, ids: Array, *, max_norm: float, norm_type: float) -> Any:
    """The table with the rows that are asked for at most max_norm long."""
    asked = namespace(weight).unique(ids % len(weight))
    rows = weight[asked]
    scales = _scales(rows, max_norm=max_norm, norm_type=norm_type)
    if (scales == 1).all():
        return weight
    weight = weight.copy()
    weight[asked] = rows * scales
    return weight


@step
def _scales(rows: Array, *, max_norm: float, norm_type: float) -> Array:
    """The factors that limit each of rows (..., D) to max_norm: (..., 1)"""
    xp = namespace(rows)
    norms = xp.linalg.norm(rows, norm_type, axis=-1, keepdims=True)
    scales = xp.where(norms > max_norm, max_norm / (norms + 1e-7), 1)
    return scales.astype(rows.dtype)


@step
def _rarity(ids: Array, *, count: int, dtype: Any) -> Array:
    """1 / how often each id is asked for: (..., 1)"""
    places = ids % count
    often = namespace(ids).bincount(as_indices(places.reshape(-1)))
    return (1 / often[places]).astype(dtype)[..., None]


class Embedding(_Table):
    """ids (...) -> (..., embedding_dim): row `id` of weight for each id

    padding_idx: the id whose row starts as zeros and is not trained. max_norm: longer
    rows (by the norm_type-norm) are shortened when they are used, for good.
    scale_grad_by_freq: divides a row's gradient by how often it was used.
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        dtype: Any = "float32",
    ):
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.padding_idx = padding_idx
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        shape = (num_embeddings, embedding_dim)
        self.weight = Param(self._initial(), shape, dtype)

    def forward(self, ids: Tensor) -> Tensor:
        return self._rows(ids)


class EmbeddingBag(_Table):
    """ids (N, length) -> (N, embedding_dim): the sum, mean or maximum of rows

    Or ids (length,) with offsets (N,), where each bag starts; include_last_offset: the
    last offset is where the last bag ends. An empty bag gives zeros. per_sample_weights
    (the shape of ids) weighs rows in mode "sum". padding_idx: an id that takes no part.
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        dtype: Any = "float32",
    ):
        if mode not in ("sum", "mean", "max"):
            raise InputError(
                f"EmbeddingBag: expected mode 'sum', 'mean' or 'max', got {mode!r}"
            )
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.mode = mode
        self.include_last_offset = include_last_offset
        self.padding_idx = padding_idx
        shape = (num_embeddings, embedding_dim)
        self.weight = Param(self._initial(), shape, dtype)

    def forward(
        self, ids: Tensor, offsets: Any = None, per_sample_weights: Any = None
    ) -> Tensor:
        """Raises InputError for offsets with 2 axes, or without any with 1."""
        if per_sample_weights is not None and self.mode != "sum":
            raise InputError("EmbeddingBag: per_sample_weights need mode='sum'")
        if (len(ids.shape) == 1) != (offsets is not None):
            raise InputError(
                f"EmbeddingBag: expected ids (N, length), or ids (length,) with "
                f"offsets, got ids {ids.shape} and offsets {offsets}"
            )
        unused = self.padding_idx
        places, kept, count = _bags(
            ids,
            offsets,
            include_last_offset=self.include_last_offset,
            padding_idx=None if unused is None else unused % self.num_embeddings,
        )
        flat = ids.reshape(-1)
        rows = self._rows(flat)
        if per_sample_weights is not None:
            weights = per_sample_weights
            if not isinstance(weights, Tensor):
                weights = Tensor(weights, device=ids.device)
            rows = rows * weights.reshape(-1, 1)
        return self._gathered(rows, places, kept, count)

    def _gathered(self, rows: Tensor, places: Any, kept: Any, count: Any) -> Tensor:
        if not places.size:
            empty = (len(places), self.embedding_dim)
            return ops.reduce_sum(rows) * self.device.xp.zeros(empty, rows.dtype)
        each, kept = ops.embedding(places, rows), kept[..., None]
        if self.mode == "max":
            low = float(np.finfo(rows.dtype).min)
            top = ops.reduce_max(ops.where(kept, each, low), axes=1)
            return ops.where(count > 0, top, 0)
        total = ops.reduce_sum(each * kept.astype(rows.dtype), axes=1)
        if self.mode == "sum":
            return total
        return total * _inverse(count, dtype=rows.dtype)


@step
def _bags(
    ids: Array, offsets: Any, *, include_last_offset: bool, padding_idx: int | None
) -> tuple[Array, Array, Array]:
    """places in `ids` flattened, (N, longest), which are in the bag, and how many."""
    xp = namespace(ids)
    if offsets is None:
        n, longest = ids.shape
        starts = np.arange(n) * longest
        lengths = np.full(n, longest)
    else:
        starts = np.asarray(on_host(offsets))
        if include_last_offset:
            starts, ends = starts[:-1], starts[1:]
        else:
            ends = np.append(starts[1:], ids.shape[0])
        lengths = ends - starts
    along = np.arange(lengths.max(initial=0))
    kept = xp.asarray(along < lengths[:, None])
    places = xp.asarray(np.minimum(starts[:, None] + along, ids.size - 1))
    if padding_idx is not None and ids.size:
        kept = kept & (ids.reshape(-1) != padding_idx)[places]
    return places, kept, kept.sum(axis=1, keepdims=True)


@step
def _inverse(count: Array, *, dtype: Any) -> Array:
    return (1 / namespace(count).maximum(count, 1)).astype(dtype)


def _held(x: Tensor, share: Array) -> Tensor:
    """x, with its gradient scaled by a factor."""
    return x * share + x.detach() * (1 - share)
