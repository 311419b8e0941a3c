"""Cross-entropy and its gradient."""

from __future__ import annotations

from burnish.backend.cuda.norms import loss
from burnish.ops import loss as losses
from burnish.ops._gpu.call import together


@losses.softmax_cross_entropy.prepared
def _(x, classes, shares, offset=0, *, axis=-1, summed=False):
    return loss.prepared_cross_entropy(x, classes, shares, offset, axis, summed)


@losses.softmax_cross_entropy.prepared_vjp
def _(slope, share_g, y, share, x, classes, shares, *offset, needed, axis, summed):
    def to_x():
        run = loss.prepared_gradient(slope, shares, share, classes, axis)
        return run and (lambda g, _, y, s, x, c, shares, *o: run(g, shares, s, c))

    return None if share_g is not None else together(needed, to_x)
