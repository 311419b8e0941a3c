"""Every operator, by family; names are ONNX's in snake case.

from burnish import ops
ops.reduce_sum(x, axes=(0,))
"""

from burnish.ops._scatter import put_flat, take_flat
from burnish.ops._shapes import broadcast_to, sum_to
from burnish.ops.adaptive import (
    adaptive_avg_pool,
    adaptive_max_pool,
    adaptive_max_pool_with_indices,
)
from burnish.ops.arithmetic import add, mul, neg, sub
from burnish.ops.conv import (
    conv,
    conv_input_gradient,
    conv_transpose,
    conv_weight_gradient,
)
from burnish.ops.elementary import exp
from burnish.ops.embedding import embedding, sum_rows
from burnish.ops.linear import linear, matmul
from burnish.ops.norm import (
    batch_norm,
    batch_norm_train,
    group_norm,
    instance_norm,
    layer_norm,
    lp_normalization,
    lrn,
    mean_variance_normalization,
    rms_norm,
    standardize,
)
from burnish.ops.pool import (
    avg_pool,
    global_avg_pool,
    global_lp_pool,
    global_max_pool,
    lp_pool,
    max_pool,
    max_pool_with_indices,
    max_unpool,
    window_spread,
    window_sum,
)

__all__ = [
    "adaptive_avg_pool",
    "adaptive_max_pool",
    "adaptive_max_pool_with_indices",
    "add",
    "avg_pool",
    "batch_norm",
    "batch_norm_train",
    "broadcast_to",
    "conv",
    "conv_input_gradient",
    "conv_transpose",
    "conv_weight_gradient",
    "embedding",
    "exp",
    "global_avg_pool",
    "global_lp_pool",
    "global_max_pool",
    "group_norm",
    "instance_norm",
    "layer_norm",
    "linear",
    "lp_normalization",
    "lp_pool",
    "lrn",
    "matmul",
    "max_pool",
    "max_pool_with_indices",
    "max_unpool",
    "mean_variance_normalization",
    "mul",
    "neg",
    "put_flat",
    "rms_norm",
    "standardize",
    "sub",
    "sum_rows",
    "sum_to",
    "take_flat",
    "window_spread",
    "window_sum",
]
