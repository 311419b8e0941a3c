"""Layers, with PyTorch's parameter names and layouts.

from burnish import nn
nn.Linear(8, 32)
"""

from burnish._engine.lazy import Names
from burnish.nn import init as init

with Names(globals(), "accepts", "init"):
    from burnish.nn.accepts import accepts as accepts
    from burnish.nn.activations.piecewise import Hardshrink as Hardshrink
    from burnish.nn.activations.piecewise import Hardsigmoid as Hardsigmoid
    from burnish.nn.activations.piecewise import Hardswish as Hardswish
    from burnish.nn.activations.piecewise import Hardtanh as Hardtanh
    from burnish.nn.activations.piecewise import LeakyReLU as LeakyReLU
    from burnish.nn.activations.piecewise import PReLU as PReLU
    from burnish.nn.activations.piecewise import ReLU as ReLU
    from burnish.nn.activations.piecewise import ReLU6 as ReLU6
    from burnish.nn.activations.piecewise import RReLU as RReLU
    from burnish.nn.activations.piecewise import Shrink as Shrink
    from burnish.nn.activations.piecewise import Softshrink as Softshrink
    from burnish.nn.activations.piecewise import Threshold as Threshold
    from burnish.nn.activations.piecewise import ThresholdedReLU as ThresholdedReLU
    from burnish.nn.activations.probabilities import LogSoftmax as LogSoftmax
    from burnish.nn.activations.probabilities import Softmax as Softmax
    from burnish.nn.activations.probabilities import Softmax2d as Softmax2d
    from burnish.nn.activations.probabilities import Softmin as Softmin
    from burnish.nn.activations.smooth import CELU as CELU
    from burnish.nn.activations.smooth import ELU as ELU
    from burnish.nn.activations.smooth import GELU as GELU
    from burnish.nn.activations.smooth import GLU as GLU
    from burnish.nn.activations.smooth import SELU as SELU
    from burnish.nn.activations.smooth import LogSigmoid as LogSigmoid
    from burnish.nn.activations.smooth import Mish as Mish
    from burnish.nn.activations.smooth import Sigmoid as Sigmoid
    from burnish.nn.activations.smooth import SiLU as SiLU
    from burnish.nn.activations.smooth import Softplus as Softplus
    from burnish.nn.activations.smooth import Softsign as Softsign
    from burnish.nn.activations.smooth import Tanh as Tanh
    from burnish.nn.activations.smooth import Tanhshrink as Tanhshrink
    from burnish.nn.adapters.lora import Lora as Lora
    from burnish.nn.adapters.lora import QLora as QLora
    from burnish.nn.adapters.reparameterize import Reparameterized as Reparameterized
    from burnish.nn.adapters.reparameterize import Reparameterizer as Reparameterizer
    from burnish.nn.attention.cache import DecoderCache as DecoderCache
    from burnish.nn.attention.cache import MhaCache as MhaCache
    from burnish.nn.attention.cache import TensorCache as TensorCache
    from burnish.nn.attention.cross import CrossAttention as CrossAttention
    from burnish.nn.attention.masks import (
        generate_autoregressive_mask as generate_autoregressive_mask,
    )
    from burnish.nn.attention.masks import (
        generate_padding_mask as generate_padding_mask,
    )
    from burnish.nn.attention.multihead import MultiheadAttention as MultiheadAttention
    from burnish.nn.attention.position import PositionalEncoding as PositionalEncoding
    from burnish.nn.attention.position import RotaryEncoding as RotaryEncoding
    from burnish.nn.attention.transformer import Transformer as Transformer
    from burnish.nn.attention.transformer import (
        TransformerDecoder as TransformerDecoder,
    )
    from burnish.nn.attention.transformer import (
        TransformerEncoder as TransformerEncoder,
    )
    from burnish.nn.attention.transformer_layers import (
        TransformerDecoderLayer as TransformerDecoderLayer,
    )
    from burnish.nn.attention.transformer_layers import (
        TransformerEncoderLayer as TransformerEncoderLayer,
    )
    from burnish.nn.basic import Flatten as Flatten
    from burnish.nn.basic import Identity as Identity
    from burnish.nn.basic import Permute as Permute
    from burnish.nn.basic import Unflatten as Unflatten
    from burnish.nn.choose import activation as activation
    from burnish.nn.choose import normalization as normalization
    from burnish.nn.core.containers import ModuleDict as ModuleDict
    from burnish.nn.core.containers import Sequential as Sequential
    from burnish.nn.core.display import DisplaySettings as DisplaySettings
    from burnish.nn.core.display import pretty as pretty
    from burnish.nn.core.groups import ParamGroup as ParamGroup
    from burnish.nn.core.layer import Layer as Layer
    from burnish.nn.core.module import Module as Module
    from burnish.nn.core.param import Buffer as Buffer
    from burnish.nn.core.param import Param as Param
    from burnish.nn.core.unwritten import Unwritten as Unwritten
    from burnish.nn.core.visit import ModuleMapper as ModuleMapper
    from burnish.nn.core.visit import ModuleVisitor as ModuleVisitor
    from burnish.nn.dropout import AlphaDropout as AlphaDropout
    from burnish.nn.dropout import Dropout as Dropout
    from burnish.nn.dropout import Dropout1d as Dropout1d
    from burnish.nn.dropout import Dropout2d as Dropout2d
    from burnish.nn.dropout import Dropout3d as Dropout3d
    from burnish.nn.dropout import FeatureAlphaDropout as FeatureAlphaDropout
    from burnish.nn.dropout import GaussianNoise as GaussianNoise
    from burnish.nn.embedding import Embedding as Embedding
    from burnish.nn.embedding import EmbeddingBag as EmbeddingBag
    from burnish.nn.linear import Bilinear as Bilinear
    from burnish.nn.linear import Linear as Linear
    from burnish.nn.linear import PositionWiseFeedForward as PositionWiseFeedForward
    from burnish.nn.linear import SwiGLU as SwiGLU
    from burnish.nn.losses.alignment import ctc_loss as ctc_loss
    from burnish.nn.losses.alignment import rnnt_loss as rnnt_loss
    from burnish.nn.losses.classification import (
        binary_cross_entropy as binary_cross_entropy,
    )
    from burnish.nn.losses.classification import (
        binary_cross_entropy_with_logits as binary_cross_entropy_with_logits,
    )
    from burnish.nn.losses.classification import cross_entropy as cross_entropy
    from burnish.nn.losses.classification import multi_margin_loss as multi_margin_loss
    from burnish.nn.losses.classification import (
        multilabel_margin_loss as multilabel_margin_loss,
    )
    from burnish.nn.losses.classification import (
        multilabel_soft_margin_loss as multilabel_soft_margin_loss,
    )
    from burnish.nn.losses.classification import nll_loss as nll_loss
    from burnish.nn.losses.classification import soft_margin_loss as soft_margin_loss
    from burnish.nn.losses.criterion import BCELoss as BCELoss
    from burnish.nn.losses.criterion import BCEWithLogitsLoss as BCEWithLogitsLoss
    from burnish.nn.losses.criterion import CosineEmbeddingLoss as CosineEmbeddingLoss
    from burnish.nn.losses.criterion import CrossEntropyLoss as CrossEntropyLoss
    from burnish.nn.losses.criterion import CTCLoss as CTCLoss
    from burnish.nn.losses.criterion import GaussianNLLLoss as GaussianNLLLoss
    from burnish.nn.losses.criterion import HingeEmbeddingLoss as HingeEmbeddingLoss
    from burnish.nn.losses.criterion import HuberLoss as HuberLoss
    from burnish.nn.losses.criterion import KLDivLoss as KLDivLoss
    from burnish.nn.losses.criterion import L1Loss as L1Loss
    from burnish.nn.losses.criterion import MarginRankingLoss as MarginRankingLoss
    from burnish.nn.losses.criterion import MSELoss as MSELoss
    from burnish.nn.losses.criterion import MultiLabelMarginLoss as MultiLabelMarginLoss
    from burnish.nn.losses.criterion import (
        MultiLabelSoftMarginLoss as MultiLabelSoftMarginLoss,
    )
    from burnish.nn.losses.criterion import MultiMarginLoss as MultiMarginLoss
    from burnish.nn.losses.criterion import NLLLoss as NLLLoss
    from burnish.nn.losses.criterion import PoissonNLLLoss as PoissonNLLLoss
    from burnish.nn.losses.criterion import RNNTLoss as RNNTLoss
    from burnish.nn.losses.criterion import SmoothL1Loss as SmoothL1Loss
    from burnish.nn.losses.criterion import SoftMarginLoss as SoftMarginLoss
    from burnish.nn.losses.criterion import TripletMarginLoss as TripletMarginLoss
    from burnish.nn.losses.criterion import (
        TripletMarginWithDistanceLoss as TripletMarginWithDistanceLoss,
    )
    from burnish.nn.losses.distance import CosineSimilarity as CosineSimilarity
    from burnish.nn.losses.distance import PairwiseDistance as PairwiseDistance
    from burnish.nn.losses.distance import cosine_similarity as cosine_similarity
    from burnish.nn.losses.distance import pairwise_distance as pairwise_distance
    from burnish.nn.losses.ranking import cosine_embedding_loss as cosine_embedding_loss
    from burnish.nn.losses.ranking import hinge_embedding_loss as hinge_embedding_loss
    from burnish.nn.losses.ranking import margin_ranking_loss as margin_ranking_loss
    from burnish.nn.losses.ranking import triplet_margin_loss as triplet_margin_loss
    from burnish.nn.losses.ranking import (
        triplet_margin_with_distance_loss as triplet_margin_with_distance_loss,
    )
    from burnish.nn.losses.regression import gaussian_nll_loss as gaussian_nll_loss
    from burnish.nn.losses.regression import huber_loss as huber_loss
    from burnish.nn.losses.regression import kl_div as kl_div
    from burnish.nn.losses.regression import l1_loss as l1_loss
    from burnish.nn.losses.regression import mse_loss as mse_loss
    from burnish.nn.losses.regression import poisson_nll_loss as poisson_nll_loss
    from burnish.nn.losses.regression import smooth_l1_loss as smooth_l1_loss
    from burnish.nn.losses.style import GramMatrixLoss as GramMatrixLoss
    from burnish.nn.losses.style import gram_matrix as gram_matrix
    from burnish.nn.lowbit.fake_quantize import FakeQuantize as FakeQuantize
    from burnish.nn.norms.batch_norm import BatchNorm1d as BatchNorm1d
    from burnish.nn.norms.batch_norm import BatchNorm2d as BatchNorm2d
    from burnish.nn.norms.batch_norm import BatchNorm3d as BatchNorm3d
    from burnish.nn.norms.batch_norm import InstanceNorm1d as InstanceNorm1d
    from burnish.nn.norms.batch_norm import InstanceNorm2d as InstanceNorm2d
    from burnish.nn.norms.batch_norm import InstanceNorm3d as InstanceNorm3d
    from burnish.nn.norms.layer_norm import GroupNorm as GroupNorm
    from burnish.nn.norms.layer_norm import LayerNorm as LayerNorm
    from burnish.nn.norms.layer_norm import LocalResponseNorm as LocalResponseNorm
    from burnish.nn.norms.layer_norm import RMSNorm as RMSNorm
    from burnish.nn.recurrent.cells import GRUCell as GRUCell
    from burnish.nn.recurrent.cells import LSTMCell as LSTMCell
    from burnish.nn.recurrent.cells import RNNCell as RNNCell
    from burnish.nn.recurrent.layers import GRU as GRU
    from burnish.nn.recurrent.layers import LSTM as LSTM
    from burnish.nn.recurrent.layers import RNN as RNN
    from burnish.nn.spatial.conv import Conv1d as Conv1d
    from burnish.nn.spatial.conv import Conv2d as Conv2d
    from burnish.nn.spatial.conv import Conv3d as Conv3d
    from burnish.nn.spatial.conv import ConvTranspose1d as ConvTranspose1d
    from burnish.nn.spatial.conv import ConvTranspose2d as ConvTranspose2d
    from burnish.nn.spatial.conv import ConvTranspose3d as ConvTranspose3d
    from burnish.nn.spatial.deform_conv import DeformConv2d as DeformConv2d
    from burnish.nn.spatial.image import ChannelShuffle as ChannelShuffle
    from burnish.nn.spatial.image import Fold as Fold
    from burnish.nn.spatial.image import PixelShuffle as PixelShuffle
    from burnish.nn.spatial.image import PixelUnshuffle as PixelUnshuffle
    from burnish.nn.spatial.image import Unfold as Unfold
    from burnish.nn.spatial.image import Upsample as Upsample
    from burnish.nn.spatial.image import UpsamplingBilinear2d as UpsamplingBilinear2d
    from burnish.nn.spatial.image import UpsamplingNearest2d as UpsamplingNearest2d
    from burnish.nn.spatial.padding import CircularPad1d as CircularPad1d
    from burnish.nn.spatial.padding import CircularPad2d as CircularPad2d
    from burnish.nn.spatial.padding import CircularPad3d as CircularPad3d
    from burnish.nn.spatial.padding import ConstantPad1d as ConstantPad1d
    from burnish.nn.spatial.padding import ConstantPad2d as ConstantPad2d
    from burnish.nn.spatial.padding import ConstantPad3d as ConstantPad3d
    from burnish.nn.spatial.padding import ReflectionPad1d as ReflectionPad1d
    from burnish.nn.spatial.padding import ReflectionPad2d as ReflectionPad2d
    from burnish.nn.spatial.padding import ReflectionPad3d as ReflectionPad3d
    from burnish.nn.spatial.padding import ReplicationPad1d as ReplicationPad1d
    from burnish.nn.spatial.padding import ReplicationPad2d as ReplicationPad2d
    from burnish.nn.spatial.padding import ReplicationPad3d as ReplicationPad3d
    from burnish.nn.spatial.padding import ZeroPad1d as ZeroPad1d
    from burnish.nn.spatial.padding import ZeroPad2d as ZeroPad2d
    from burnish.nn.spatial.padding import ZeroPad3d as ZeroPad3d
    from burnish.nn.spatial.pool import AdaptiveAvgPool1d as AdaptiveAvgPool1d
    from burnish.nn.spatial.pool import AdaptiveAvgPool2d as AdaptiveAvgPool2d
    from burnish.nn.spatial.pool import AdaptiveAvgPool3d as AdaptiveAvgPool3d
    from burnish.nn.spatial.pool import AdaptiveMaxPool1d as AdaptiveMaxPool1d
    from burnish.nn.spatial.pool import AdaptiveMaxPool2d as AdaptiveMaxPool2d
    from burnish.nn.spatial.pool import AdaptiveMaxPool3d as AdaptiveMaxPool3d
    from burnish.nn.spatial.pool import AvgPool1d as AvgPool1d
    from burnish.nn.spatial.pool import AvgPool2d as AvgPool2d
    from burnish.nn.spatial.pool import AvgPool3d as AvgPool3d
    from burnish.nn.spatial.pool import MaxPool1d as MaxPool1d
    from burnish.nn.spatial.pool import MaxPool2d as MaxPool2d
    from burnish.nn.spatial.pool import MaxPool3d as MaxPool3d
    from burnish.nn.spatial.unpool import LPPool1d as LPPool1d
    from burnish.nn.spatial.unpool import LPPool2d as LPPool2d
    from burnish.nn.spatial.unpool import LPPool3d as LPPool3d
    from burnish.nn.spatial.unpool import MaxUnpool1d as MaxUnpool1d
    from burnish.nn.spatial.unpool import MaxUnpool2d as MaxUnpool2d
    from burnish.nn.spatial.unpool import MaxUnpool3d as MaxUnpool3d
    from burnish.nn.tree import TreeEnsemble as TreeEnsemble
