"""Cross-entropy and its gradient."""

from __future__ import annotations

from burnish.backend.cuda.norms import loss
from burnish.ops import loss as losses
from burnish.ops._gpu.call import or_plain


@losses.softmax_cross_entropy.on("cupy")
def _(x, classes, shares, offset=0, *, axis=-1, summed=False):
    found = loss.cross_entropy(x, classes, shares, axis, offset, summed)
    if found is None:
        given = (x, classes, shares, offset)
        return losses.softmax_cross_entropy.value(*given, axis=axis, summed=summed)
    return found


@losses.softmax_cross_entropy.vjp("x", on="cupy")
def _(g, y, x, classes, shares, offset=0, *, axis, summed):
    slope, share_g = g
    if share_g is not None:
        return NotImplemented
    return or_plain(loss.cross_entropy_gradient(slope, shares, y[1], classes, axis))
