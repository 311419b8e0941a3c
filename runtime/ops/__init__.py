"""Every operator, by family.

    from burnish import ops
    ops.sum(x, axis=0, keepdims=True)

A name that NumPy (the array API) or PyTorch has means the same here: `axis` and
`keepdims` are NumPy's words, options may be given in order. What they lack has ONNX's
name in snake case (`reduce_l1`, `depth_to_space`); forms that differ have names of
their own: of any number of arrays `sum_of`, `mean_of`, `max_of`, `min_of`.
"""

from burnish._engine.lazy import Names
from burnish.backend.namespace import at_first_cupy as _at_first_cupy
from burnish.operator import at_first_call as _at_first_call
from burnish.operator import memory_bound_in as _memory_bound_in

_memory_bound_in(  # not reductions: their results are small, and worth keeping
    "burnish.ops._shapes",
    "burnish.ops.activation",
    "burnish.ops.arrays.padding",
    "burnish.ops.arrays.shape",
    "burnish.ops.elementwise",
    "burnish.ops.normalization",
    "burnish.ops.sequences.embedding",
)

with Names(globals()):
    from burnish.ops._builtins import abs as abs
    from burnish.ops._builtins import all as all
    from burnish.ops._builtins import any as any
    from burnish.ops._builtins import max as max
    from burnish.ops._builtins import min as min
    from burnish.ops._builtins import pow as pow
    from burnish.ops._builtins import round as round
    from burnish.ops._builtins import sum as sum
    from burnish.ops._shapes import broadcast_to as broadcast_to
    from burnish.ops._shapes import cast as cast
    from burnish.ops._shapes import sum_to as sum_to
    from burnish.ops.activation.piecewise import hard_sigmoid as hard_sigmoid
    from burnish.ops.activation.piecewise import hard_swish as hard_swish
    from burnish.ops.activation.piecewise import hard_tanh as hard_tanh
    from burnish.ops.activation.piecewise import leaky_relu as leaky_relu
    from burnish.ops.activation.piecewise import prelu as prelu
    from burnish.ops.activation.piecewise import prelu_of as prelu_of
    from burnish.ops.activation.piecewise import relu as relu
    from burnish.ops.activation.piecewise import relu6 as relu6
    from burnish.ops.activation.piecewise import shrink as shrink
    from burnish.ops.activation.piecewise import threshold as threshold
    from burnish.ops.activation.piecewise import thresholded_relu as thresholded_relu
    from burnish.ops.activation.probabilities import hardmax as hardmax
    from burnish.ops.activation.probabilities import log_softmax as log_softmax
    from burnish.ops.activation.probabilities import quiet_softmax as quiet_softmax
    from burnish.ops.activation.probabilities import softmax as softmax
    from burnish.ops.activation.probabilities import softmin as softmin
    from burnish.ops.activation.smooth import celu as celu
    from burnish.ops.activation.smooth import dropout as dropout
    from burnish.ops.activation.smooth import elu as elu
    from burnish.ops.activation.smooth import gelu as gelu
    from burnish.ops.activation.smooth import glu as glu
    from burnish.ops.activation.smooth import log_sigmoid as log_sigmoid
    from burnish.ops.activation.smooth import mish as mish
    from burnish.ops.activation.smooth import selu as selu
    from burnish.ops.activation.smooth import sigmoid as sigmoid
    from burnish.ops.activation.smooth import silu as silu
    from burnish.ops.activation.smooth import softplus as softplus
    from burnish.ops.activation.smooth import softsign as softsign
    from burnish.ops.activation.smooth import swish as swish
    from burnish.ops.arrays.along import arg_top_k as arg_top_k
    from burnish.ops.arrays.along import argmax as argmax
    from burnish.ops.arrays.along import argmin as argmin
    from burnish.ops.arrays.along import cumprod as cumprod
    from burnish.ops.arrays.along import cumsum as cumsum
    from burnish.ops.arrays.along import logsumexp as logsumexp
    from burnish.ops.arrays.along import max_with_indices as max_with_indices
    from burnish.ops.arrays.along import mean as mean
    from burnish.ops.arrays.along import min_with_indices as min_with_indices
    from burnish.ops.arrays.along import prod as prod
    from burnish.ops.arrays.along import sort_with_indices as sort_with_indices
    from burnish.ops.arrays.along import var_mean as var_mean
    from burnish.ops.arrays.create import constant_of_shape as constant_of_shape
    from burnish.ops.arrays.create import eye_like as eye_like
    from burnish.ops.arrays.create import one_hot as one_hot
    from burnish.ops.arrays.create import one_hot_of as one_hot_of
    from burnish.ops.arrays.create import range_ as range_
    from burnish.ops.arrays.create import tril as tril
    from burnish.ops.arrays.create import trilu as trilu
    from burnish.ops.arrays.create import triu as triu
    from burnish.ops.arrays.cumulative import cum_prod as cum_prod
    from burnish.ops.arrays.cumulative import cum_sum as cum_sum
    from burnish.ops.arrays.cumulative import reduce_prod as reduce_prod
    from burnish.ops.arrays.cumulative import running_product as running_product
    from burnish.ops.arrays.elements import all_close as all_close
    from burnish.ops.arrays.elements import argwhere as argwhere
    from burnish.ops.arrays.elements import contains_nan as contains_nan
    from burnish.ops.arrays.elements import fmod as fmod
    from burnish.ops.arrays.elements import masked_fill as masked_fill
    from burnish.ops.arrays.elements import narrow as narrow
    from burnish.ops.arrays.elements import permute as permute
    from burnish.ops.arrays.elements import t as t
    from burnish.ops.arrays.gather import compress as compress
    from burnish.ops.arrays.gather import gather_elements as gather_elements
    from burnish.ops.arrays.gather import gather_nd as gather_nd
    from burnish.ops.arrays.gather import scatter_elements as scatter_elements
    from burnish.ops.arrays.gather import scatter_nd as scatter_nd
    from burnish.ops.arrays.gather import scatter_rows as scatter_rows
    from burnish.ops.arrays.gather import scatter_slices as scatter_slices
    from burnish.ops.arrays.gather import take as take
    from burnish.ops.arrays.gather import take_along_axis as take_along_axis
    from burnish.ops.arrays.index import getitem as getitem
    from burnish.ops.arrays.index import non_zero as non_zero
    from burnish.ops.arrays.index import put_at as put_at
    from burnish.ops.arrays.index import put_rows as put_rows
    from burnish.ops.arrays.index import set_item as set_item
    from burnish.ops.arrays.index import slice_ as slice_
    from burnish.ops.arrays.index import take_slices as take_slices
    from burnish.ops.arrays.index import unfold as unfold
    from burnish.ops.arrays.order import argsort as argsort
    from burnish.ops.arrays.order import median as median
    from burnish.ops.arrays.order import median_places as median_places
    from burnish.ops.arrays.order import median_with_indices as median_with_indices
    from burnish.ops.arrays.order import sort as sort
    from burnish.ops.arrays.order import top_k as top_k
    from burnish.ops.arrays.order import top_k_places as top_k_places
    from burnish.ops.arrays.order import unique_all as unique_all
    from burnish.ops.arrays.order import unique_of as unique_of
    from burnish.ops.arrays.order import unique_places as unique_places
    from burnish.ops.arrays.padding import fold_repeated as fold_repeated
    from burnish.ops.arrays.padding import pad as pad
    from burnish.ops.arrays.padding import pad_constant as pad_constant
    from burnish.ops.arrays.padding import pad_repeated as pad_repeated
    from burnish.ops.arrays.reduce import arg_max as arg_max
    from burnish.ops.arrays.reduce import arg_min as arg_min
    from burnish.ops.arrays.reduce import norm as norm
    from burnish.ops.arrays.reduce import reduce_all as reduce_all
    from burnish.ops.arrays.reduce import reduce_any as reduce_any
    from burnish.ops.arrays.reduce import reduce_l1 as reduce_l1
    from burnish.ops.arrays.reduce import reduce_l2 as reduce_l2
    from burnish.ops.arrays.reduce import reduce_log_sum as reduce_log_sum
    from burnish.ops.arrays.reduce import reduce_log_sum_exp as reduce_log_sum_exp
    from burnish.ops.arrays.reduce import reduce_max as reduce_max
    from burnish.ops.arrays.reduce import reduce_mean as reduce_mean
    from burnish.ops.arrays.reduce import reduce_min as reduce_min
    from burnish.ops.arrays.reduce import reduce_sum as reduce_sum
    from burnish.ops.arrays.reduce import reduce_sum_square as reduce_sum_square
    from burnish.ops.arrays.reduce import std as std
    from burnish.ops.arrays.reduce import var as var
    from burnish.ops.arrays.scan import cum_max as cum_max
    from burnish.ops.arrays.scan import cum_max_places as cum_max_places
    from burnish.ops.arrays.scan import cum_min as cum_min
    from burnish.ops.arrays.scan import cum_min_places as cum_min_places
    from burnish.ops.arrays.scan import sum_runs as sum_runs
    from burnish.ops.arrays.shape import chunk as chunk
    from burnish.ops.arrays.shape import concat as concat
    from burnish.ops.arrays.shape import concat_of as concat_of
    from burnish.ops.arrays.shape import depth_to_space as depth_to_space
    from burnish.ops.arrays.shape import expand as expand
    from burnish.ops.arrays.shape import flatten as flatten
    from burnish.ops.arrays.shape import flatten_to_matrix as flatten_to_matrix
    from burnish.ops.arrays.shape import flip as flip
    from burnish.ops.arrays.shape import meshgrid as meshgrid
    from burnish.ops.arrays.shape import moveaxis as moveaxis
    from burnish.ops.arrays.shape import reshape as reshape
    from burnish.ops.arrays.shape import roll as roll
    from burnish.ops.arrays.shape import space_to_depth as space_to_depth
    from burnish.ops.arrays.shape import split as split
    from burnish.ops.arrays.shape import squeeze as squeeze
    from burnish.ops.arrays.shape import stack as stack
    from burnish.ops.arrays.shape import swapaxes as swapaxes
    from burnish.ops.arrays.shape import tile as tile
    from burnish.ops.arrays.shape import transpose as transpose
    from burnish.ops.arrays.shape import unbind as unbind
    from burnish.ops.arrays.shape import unsqueeze as unsqueeze
    from burnish.ops.device import moved_array as moved_array
    from burnish.ops.device import to_device as to_device
    from burnish.ops.elementwise.angle import deg2rad as deg2rad
    from burnish.ops.elementwise.angle import hypot as hypot
    from burnish.ops.elementwise.angle import rad2deg as rad2deg
    from burnish.ops.elementwise.arithmetic import add as add
    from burnish.ops.elementwise.arithmetic import ceil as ceil
    from burnish.ops.elementwise.arithmetic import div as div
    from burnish.ops.elementwise.arithmetic import floor as floor
    from burnish.ops.elementwise.arithmetic import floor_div as floor_div
    from burnish.ops.elementwise.arithmetic import int_div as int_div
    from burnish.ops.elementwise.arithmetic import max_of as max_of
    from burnish.ops.elementwise.arithmetic import maximum as maximum
    from burnish.ops.elementwise.arithmetic import mean_of as mean_of
    from burnish.ops.elementwise.arithmetic import min_of as min_of
    from burnish.ops.elementwise.arithmetic import minimum as minimum
    from burnish.ops.elementwise.arithmetic import mod as mod
    from burnish.ops.elementwise.arithmetic import mul as mul
    from burnish.ops.elementwise.arithmetic import neg as neg
    from burnish.ops.elementwise.arithmetic import reciprocal as reciprocal
    from burnish.ops.elementwise.arithmetic import rint as rint
    from burnish.ops.elementwise.arithmetic import sign as sign
    from burnish.ops.elementwise.arithmetic import square as square
    from burnish.ops.elementwise.arithmetic import sub as sub
    from burnish.ops.elementwise.arithmetic import sum_of as sum_of
    from burnish.ops.elementwise.arithmetic import trunc as trunc
    from burnish.ops.elementwise.bits import bit_cast as bit_cast
    from burnish.ops.elementwise.bits import bit_shift as bit_shift
    from burnish.ops.elementwise.bits import bitwise_and as bitwise_and
    from burnish.ops.elementwise.bits import bitwise_not as bitwise_not
    from burnish.ops.elementwise.bits import bitwise_or as bitwise_or
    from burnish.ops.elementwise.bits import bitwise_xor as bitwise_xor
    from burnish.ops.elementwise.bits import shift_left as shift_left
    from burnish.ops.elementwise.bits import shift_right as shift_right
    from burnish.ops.elementwise.clip import clip as clip
    from burnish.ops.elementwise.compare import equal as equal
    from burnish.ops.elementwise.compare import greater as greater
    from burnish.ops.elementwise.compare import greater_or_equal as greater_or_equal
    from burnish.ops.elementwise.compare import is_close as is_close
    from burnish.ops.elementwise.compare import is_finite as is_finite
    from burnish.ops.elementwise.compare import is_inf as is_inf
    from burnish.ops.elementwise.compare import is_nan as is_nan
    from burnish.ops.elementwise.compare import less as less
    from burnish.ops.elementwise.compare import less_or_equal as less_or_equal
    from burnish.ops.elementwise.compare import logical_and as logical_and
    from burnish.ops.elementwise.compare import logical_not as logical_not
    from burnish.ops.elementwise.compare import logical_or as logical_or
    from burnish.ops.elementwise.compare import logical_xor as logical_xor
    from burnish.ops.elementwise.compare import not_equal as not_equal
    from burnish.ops.elementwise.compare import where as where
    from burnish.ops.elementwise.elementary import acos as acos
    from burnish.ops.elementwise.elementary import acosh as acosh
    from burnish.ops.elementwise.elementary import asin as asin
    from burnish.ops.elementwise.elementary import asinh as asinh
    from burnish.ops.elementwise.elementary import atan as atan
    from burnish.ops.elementwise.elementary import atan2 as atan2
    from burnish.ops.elementwise.elementary import atanh as atanh
    from burnish.ops.elementwise.elementary import cos as cos
    from burnish.ops.elementwise.elementary import cosh as cosh
    from burnish.ops.elementwise.elementary import erf as erf
    from burnish.ops.elementwise.elementary import exp as exp
    from burnish.ops.elementwise.elementary import expm1 as expm1
    from burnish.ops.elementwise.elementary import log as log
    from burnish.ops.elementwise.elementary import log1p as log1p
    from burnish.ops.elementwise.elementary import ndtr as ndtr
    from burnish.ops.elementwise.elementary import sin as sin
    from burnish.ops.elementwise.elementary import sinh as sinh
    from burnish.ops.elementwise.elementary import sqrt as sqrt
    from burnish.ops.elementwise.elementary import tan as tan
    from burnish.ops.elementwise.elementary import tanh as tanh
    from burnish.ops.linalg.decompositions import cosine_similarity as cosine_similarity
    from burnish.ops.linalg.decompositions import cov as cov
    from burnish.ops.linalg.decompositions import cross as cross
    from burnish.ops.linalg.decompositions import diag as diag
    from burnish.ops.linalg.decompositions import diag_embed as diag_embed
    from burnish.ops.linalg.decompositions import diagonal as diagonal
    from burnish.ops.linalg.decompositions import dot as dot
    from burnish.ops.linalg.decompositions import last_diagonal as last_diagonal
    from burnish.ops.linalg.decompositions import lu as lu
    from burnish.ops.linalg.decompositions import lu_factor as lu_factor
    from burnish.ops.linalg.decompositions import normalize as normalize
    from burnish.ops.linalg.decompositions import (
        permutation_matrix as permutation_matrix,
    )
    from burnish.ops.linalg.decompositions import qr as qr
    from burnish.ops.linalg.decompositions import solve as solve
    from burnish.ops.linalg.decompositions import tall_qr as tall_qr
    from burnish.ops.linalg.decompositions import trace as trace
    from burnish.ops.linalg.einsum import einsum as einsum
    from burnish.ops.linalg.einsum import einsum_of as einsum_of
    from burnish.ops.linalg.linear import det as det
    from burnish.ops.linalg.linear import gemm as gemm
    from burnish.ops.linalg.linear import inverse as inverse
    from burnish.ops.linalg.linear import linear as linear
    from burnish.ops.linalg.linear import matmul as matmul
    from burnish.ops.linalg.linear import outer as outer
    from burnish.ops.linalg.low_rank import low_rank_add as low_rank_add
    from burnish.ops.loss import elementwise_cross_entropy as elementwise_cross_entropy
    from burnish.ops.loss import huber as huber
    from burnish.ops.loss import softmax_cross_entropy as softmax_cross_entropy
    from burnish.ops.media.boxes import max_roi_pool as max_roi_pool
    from burnish.ops.media.boxes import non_max_suppression as non_max_suppression
    from burnish.ops.media.boxes import roi_align as roi_align
    from burnish.ops.media.fourier import irfft as irfft
    from burnish.ops.media.fourier import istft as istft
    from burnish.ops.media.fourier import rfft as rfft
    from burnish.ops.media.fourier import stft as stft
    from burnish.ops.media.picture import decode_image as decode_image
    from burnish.ops.media.signal import blackman_window as blackman_window
    from burnish.ops.media.signal import dft as dft
    from burnish.ops.media.signal import hamming_window as hamming_window
    from burnish.ops.media.signal import hann_window as hann_window
    from burnish.ops.media.signal import mel_weight_matrix as mel_weight_matrix
    from burnish.ops.media.text import murmur_hash3 as murmur_hash3
    from burnish.ops.media.text import regex_full_match as regex_full_match
    from burnish.ops.media.text import string_concat as string_concat
    from burnish.ops.media.text import string_normalizer as string_normalizer
    from burnish.ops.media.text import string_split as string_split
    from burnish.ops.media.text import tf_idf_vectorizer as tf_idf_vectorizer
    from burnish.ops.media.text import tokenize as tokenize
    from burnish.ops.ml.classical import label_encoder as label_encoder
    from burnish.ops.ml.classical import pairwise_coupling as pairwise_coupling
    from burnish.ops.ml.classical import pairwise_votes as pairwise_votes
    from burnish.ops.ml.classical import probit as probit
    from burnish.ops.ml.classical import softmax_zero as softmax_zero
    from burnish.ops.ml.classical import svm_kernel as svm_kernel
    from burnish.ops.ml.maps import cast_map as cast_map
    from burnish.ops.ml.maps import dict_vectorizer as dict_vectorizer
    from burnish.ops.ml.maps import zip_map as zip_map
    from burnish.ops.ml.trees import tree_ensemble as tree_ensemble
    from burnish.ops.normalization import batch_norm as batch_norm
    from burnish.ops.normalization import batch_norm_train as batch_norm_train
    from burnish.ops.normalization import group_norm as group_norm
    from burnish.ops.normalization import group_norm_of as group_norm_of
    from burnish.ops.normalization import instance_norm as instance_norm
    from burnish.ops.normalization import layer_norm as layer_norm
    from burnish.ops.normalization import layer_norm_from as layer_norm_from
    from burnish.ops.normalization import lp_normalization as lp_normalization
    from burnish.ops.normalization import lrn as lrn
    from burnish.ops.normalization import (
        mean_variance_normalization as mean_variance_normalization,
    )
    from burnish.ops.normalization import rms_norm as rms_norm
    from burnish.ops.normalization import rms_norm_from as rms_norm_from
    from burnish.ops.normalization import standardize as standardize
    from burnish.ops.quantized.blocks import block_sums as block_sums
    from burnish.ops.quantized.blocks import dequantize_blocks as dequantize_blocks
    from burnish.ops.quantized.blocks import fake_quantize as fake_quantize
    from burnish.ops.quantized.blocks import (
        fake_quantize_slopes as fake_quantize_slopes,
    )
    from burnish.ops.quantized.blocks import quantize_blocks as quantize_blocks
    from burnish.ops.quantized.quantize import dequantize_linear as dequantize_linear
    from burnish.ops.quantized.quantize import power_of_two as power_of_two
    from burnish.ops.quantized.quantize import quantize_linear as quantize_linear
    from burnish.ops.sample import multinomial as multinomial
    from burnish.ops.sequences.alignment import ctc_paths as ctc_paths
    from burnish.ops.sequences.alignment import ctc_shares as ctc_shares
    from burnish.ops.sequences.alignment import (
        dynamic_time_warping as dynamic_time_warping,
    )
    from burnish.ops.sequences.alignment import transducer_paths as transducer_paths
    from burnish.ops.sequences.alignment import transducer_shares as transducer_shares
    from burnish.ops.sequences.attention import attention_weights as attention_weights
    from burnish.ops.sequences.attention import (
        scaled_dot_product_attention as scaled_dot_product_attention,
    )
    from burnish.ops.sequences.embedding import embedding as embedding
    from burnish.ops.sequences.recurrent import gru as gru
    from burnish.ops.sequences.recurrent import lstm as lstm
    from burnish.ops.sequences.recurrent import rnn as rnn
    from burnish.ops.sequences.rotary import rotary_embedding as rotary_embedding
    from burnish.ops.spatial.adaptive import adaptive_avg_pool as adaptive_avg_pool
    from burnish.ops.spatial.adaptive import adaptive_max_pool as adaptive_max_pool
    from burnish.ops.spatial.adaptive import (
        adaptive_max_pool_with_indices as adaptive_max_pool_with_indices,
    )
    from burnish.ops.spatial.conv import conv as conv
    from burnish.ops.spatial.conv import conv_input_gradient as conv_input_gradient
    from burnish.ops.spatial.conv import conv_transpose as conv_transpose
    from burnish.ops.spatial.conv import conv_weight_gradient as conv_weight_gradient
    from burnish.ops.spatial.deform_conv import deform_conv as deform_conv
    from burnish.ops.spatial.fold import col2im as col2im
    from burnish.ops.spatial.fold import im2col as im2col
    from burnish.ops.spatial.grid import affine_grid as affine_grid
    from burnish.ops.spatial.grid_sample import grid_sample as grid_sample
    from burnish.ops.spatial.image import interpolate as interpolate
    from burnish.ops.spatial.image import resample as resample
    from burnish.ops.spatial.image import resample_adjoint as resample_adjoint
    from burnish.ops.spatial.image import resize_image as resize_image
    from burnish.ops.spatial.pool import avg_pool as avg_pool
    from burnish.ops.spatial.pool import global_avg_pool as global_avg_pool
    from burnish.ops.spatial.pool import global_lp_pool as global_lp_pool
    from burnish.ops.spatial.pool import global_max_pool as global_max_pool
    from burnish.ops.spatial.pool import lp_pool as lp_pool
    from burnish.ops.spatial.pool import max_pool as max_pool
    from burnish.ops.spatial.pool import max_pool_with_indices as max_pool_with_indices
    from burnish.ops.spatial.pool import max_unpool as max_unpool
    from burnish.ops.spatial.pool import window_spread as window_spread
    from burnish.ops.spatial.pool import window_sum as window_sum
    from burnish.ops.training import adagrad_step as adagrad_step
    from burnish.ops.training import adam_step as adam_step
    from burnish.ops.training import momentum_step as momentum_step


def _for_cpu() -> None:
    """Register the kernels of the C library, which a process of plans alone lacks."""
    from burnish.ops._cpu import families as families


def _for_gpu() -> None:
    """Register the kernels for CuPy's arrays, which a process without them lacks."""
    from burnish.ops import _gpu as _gpu


_at_first_call.append(_for_cpu)
_at_first_cupy.append(_for_gpu)
