"""Tables of vectors. V rows, D their size."""

from __future__ import annotations

from typing import Any

import numpy as np

from burnish import ops
from burnish.backend import Array, Device
from burnish.errors import InputError
from burnish.lowbit import Packed
from burnish.nn import init
from burnish.nn.layer import Layer
from burnish.nn.param import Param
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
        if self.max_norm is not None:
            self._shorten(ids)
        if (few := self._few(ids)) is not None:
            return few
        rows = ops.embedding(self.weight, ids, padding_idx=self.padding_idx)
        if self.scale_grad_by_freq and rows.node is not None:
            rows = _held(rows, self._rarity(ids.data, rows.dtype))
        return rows

    def _few(self, ids: Any) -> Tensor | None:
        """Rows of a quantized table, of which no others are computed."""
        table = self.weight.held if self.weight.scheme is not None else None
        if not isinstance(table, Packed):
            return None
        places = ids.data if isinstance(ids, Tensor) else np.asarray(ids)
        try:
            return Tensor.wrap(table.take(places), self.weight.device)
        except IndexError:
            return None  # `ops.embedding` says which ids there are

    def _shorten(self, ids: Tensor) -> None:
        """Scale the rows that are asked for to at most max_norm, for good."""
        xp = self.weight.device.xp
        asked = xp.unique(ids.data % self.num_embeddings)
        rows = self.weight.data[asked]
        norms = xp.linalg.norm(rows, self.norm_type, axis=1)
        long = norms > self.max_norm
        if long.any():
            weight = self.weight.data.copy()
            scale = (self.max_norm / (norms[long] + 1e-7)).astype(weight.dtype)
            weight[asked[long]] = rows[long] * scale[:, None]
            self.weight.assign(weight)

    def _rarity(self, ids: Array, dtype: Any) -> Array:
        """1 / how often each id is asked for: (..., 1)"""
        count = self.device.xp.bincount(ids.reshape(-1) % self.num_embeddings)
        return (1 / count[ids % self.num_embeddings]).astype(dtype)[..., None]


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
        places, kept = self._bags(ids, offsets)
        flat = ids.reshape(-1)
        rows = self._rows(flat)
        if per_sample_weights is not None:
            weights = per_sample_weights
            if not isinstance(weights, Tensor):
                weights = Tensor(weights, device=ids.device)
            rows = rows * weights.reshape(-1, 1)
        return self._gathered(rows, places, kept)

    def _bags(self, ids: Tensor, offsets: Any) -> tuple[Array, Array]:
        """places in `ids` flattened, (N, longest), and which of them are in the bag."""
        xp = self.device.xp
        if offsets is None:
            n, longest = ids.shape
            starts = np.arange(n) * longest
            lengths = np.full(n, longest)
        else:
            starts = np.asarray(
                offsets.numpy() if isinstance(offsets, Tensor) else offsets
            )
            if self.include_last_offset:
                starts, ends = starts[:-1], starts[1:]
            else:
                ends = np.append(starts[1:], ids.shape[0])
            lengths = ends - starts
        along = np.arange(lengths.max(initial=0))
        kept = xp.asarray(along < lengths[:, None])
        places = xp.asarray(np.minimum(starts[:, None] + along, ids.data.size - 1))
        if self.padding_idx is not None and ids.data.size:
            unpadded = ids.data.reshape(-1) != self.padding_idx % self.num_embeddings
            kept = kept & unpadded[places]
        return places, kept

    def _gathered(self, rows: Tensor, places: Array, kept: Array) -> Tensor:
        xp = self.device.xp
        if not places.size:
            return ops.reduce_sum(rows) * xp.zeros(
                (len(places), self.embedding_dim), rows.dtype
            )
        each = ops.gather(rows, places)
        count = kept.sum(axis=1, keepdims=True)
        if self.mode == "max":
            low = float(xp.finfo(rows.dtype).min)
            top = ops.reduce_max(ops.where(kept[..., None], each, low), axes=1)
            return ops.where(count > 0, top, 0)
        total = ops.reduce_sum(each * kept[..., None].astype(rows.dtype), axes=1)
        if self.mode == "sum":
            return total
        return total * (1 / xp.maximum(count, 1)).astype(rows.dtype)


def _held(x: Tensor, share: Array) -> Tensor:
    """x, of whose gradient only a share goes on."""
    return x * share + x.detach() * (1 - share)
