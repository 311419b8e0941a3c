"""Distances and similarities of vectors."""

from __future__ import annotations

from burnish import ops
from burnish.nn.core.layer import Layer
from burnish.operator import explained
from burnish.tensor import Tensor


@explained
def cosine_similarity(a: Tensor, b: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """a . b / (|a| |b|) along `dim`, norms held above eps; a and b broadcast"""
    return ops.cosine_similarity(a, b, axis=dim, eps=eps)


@explained
def pairwise_distance(
    a: Tensor, b: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Tensor:
    """The p-norm of a - b + eps along the last axis; a and b broadcast"""
    return ops.norm(a - b + eps, p, -1, keepdim)


class CosineSimilarity(Layer):
    __doc__ = cosine_similarity.__doc__

    def __init__(self, dim: int = 1, eps: float = 1e-8):
        self.dim = dim
        self.eps = eps

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        return cosine_similarity(a, b, self.dim, self.eps)


class PairwiseDistance(Layer):
    __doc__ = pairwise_distance.__doc__

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False):
        self.p = p
        self.eps = eps
        self.keepdim = keepdim

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        return pairwise_distance(a, b, self.p, self.eps, self.keepdim)
