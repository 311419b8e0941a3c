"""Constructors that are given what they cannot take say so before anything is built."""

import numpy as np
import pytest

from burnish import Tensor, nn, ops, optim
from burnish.errors import InputError

REFUSED = [
    (lambda: nn.Linear(-1, 3), "Linear in_features: expected an integer of 0 or more"),
    (lambda: nn.Linear(4, 3.0), "Linear out_features: .* got 3.0"),
    (lambda: nn.Linear(4, True), "Linear out_features: .* got True"),
    (lambda: nn.Linear(Tensor([4]), 3), "in_features: .* got a Tensor"),
    (
        lambda: nn.Conv2d(0, 8, 3),
        "Conv2d in_channels: expected an integer of 1 or more",
    ),
    (
        lambda: nn.Conv2d(3, 8, (3, 0)),
        r"kernel_size: .* one for each axis, got \(3, 0\)",
    ),
    (lambda: nn.Conv2d(3, 8, 3, stride="2"), "Conv2d stride: .* got '2'"),
    (lambda: nn.Conv2d(3, 8, 3, padding=1.5), "Conv2d padding: .* got 1.5"),
    (lambda: nn.MaxPool2d(2, dilation=-1), "MaxPool2d dilation: .* got -1"),
    (lambda: nn.AdaptiveAvgPool2d((2, -2)), "AdaptiveAvgPool2d output_size"),
    (lambda: nn.Upsample(scale_factor="x"), "scale_factor: expected a number above 0"),
    (lambda: nn.Embedding(-1, 3), "Embedding num_embeddings: .* got -1"),
    (lambda: nn.Embedding(5, 3, padding_idx=5), "padding_idx from -5 to 4, got 5"),
    (
        lambda: nn.LSTM(3, 0),
        "LSTM hidden_size: expected an integer of 1 or more, got 0",
    ),
    (lambda: nn.LSTM(3, 4, num_layers=0), "LSTM: expected layers, got num_layers=0"),
    (lambda: nn.GRU(3, 4, dropout=1.5), "GRU dropout: expected a number from 0 to 1"),
    (lambda: nn.Dropout("x"), "Dropout p: expected a number, got 'x'"),
    (lambda: nn.LayerNorm(4, eps="x"), "LayerNorm eps: expected a number, got 'x'"),
    (lambda: nn.LayerNorm("x"), "LayerNorm normalized_shape"),
    (lambda: nn.GELU(1), "GELU approximate: expected a text, got 1"),
    (lambda: nn.CELU(0), "CELU: expected alpha other than 0"),
    (lambda: nn.Softplus(0), "Softplus: expected beta other than 0"),
    (lambda: nn.RReLU(0.1, float("nan")), "RReLU: expected lower <= upper"),
    (lambda: nn.Unflatten(1, 4), "Unflatten unflattened_size: .* sequence of integers"),
    (lambda: nn.CrossEntropyLoss(label_smoothing=2), "a number from 0 to 1, got 2"),
    (lambda: nn.CTCLoss(blank=1.0), "CTCLoss blank: expected an integer, got 1.0"),
    (
        lambda: nn.TripletMarginWithDistanceLoss(distance_function=2),
        "distance_function: expected a function or an object to call, got 2",
    ),
    (
        lambda: nn.TransformerEncoder(nn.Linear, 2),
        "TransformerEncoder encoder_layer: expected a module, got the class Linear",
    ),
    (
        lambda: nn.TransformerEncoderLayer(8, 2, activation=1),
        "activation: expected a name or something to call, got a int",
    ),
    (
        lambda: optim.Adam(clip=1.0),
        "Adam clip: expected a function or an object to call",
    ),
    (lambda: optim.SGD(clip=optim.ClipNorm), "SGD clip: .* got the class ClipNorm"),
    (lambda: optim.ModuleOptimizer(optim.Adam(), clip=3), "ModuleOptimizer clip"),
    (lambda: optim.ModuleOptimizer(optim.Adam), "default: expected an optimizer"),
    (lambda: optim.Adam(betas=(0.9,)), r"Adam betas: expected 2 numbers, got \(0.9,\)"),
    (lambda: optim.Adam(betas=0.9), "Adam betas: expected 2 numbers, got 0.9"),
    (lambda: optim.ClipNorm("x"), "ClipNorm limit: expected a number above 0, got 'x'"),
    (lambda: optim.Constant("x"), "Constant rate: expected a number, got 'x'"),
    (lambda: optim.Steps(1.0, 2.5), "Steps every: expected an integer, got 2.5"),
    (lambda: optim.MultiStep(1.0, 3), "milestones: expected a sequence of integers"),
    (lambda: optim.Warmup(0.1, 5), "Warmup schedule: expected a schedule, got 0.1"),
    (
        lambda: optim.Sequential([optim.Constant(1.0), 0.1], [3]),
        "Sequential schedules: expected a sequence of schedules",
    ),
    (lambda: Tensor([1.0], dtype="f3"), "Tensor: expected a dtype .* got 'f3'"),
    (lambda: Tensor.rand(2, dtype="f3"), "random: expected a dtype .* got 'f3'"),
    (lambda: nn.Linear(2, 2, dtype="f3"), "Param: expected a dtype .* got 'f3'"),
    (lambda: optim.LBFGS(max_iter=2.5), "LBFGS max_iter: expected an integer, got 2.5"),
]


@pytest.mark.parametrize(("build", "message"), REFUSED, ids=[m for _, m in REFUSED])
def test_what_does_not_fit_is_refused(build, message):
    with pytest.raises(InputError, match=message):
        build()


X = Tensor(np.ones((2, 3), np.float32))
IMAGE = Tensor(np.ones((1, 2, 4, 4), np.float32))
RANKS = [
    (lambda: ops.istft(X, frame_step=1), "istft: spectra: expected 4 axes, got .*2, 3"),
    (lambda: ops.stft(X[0], frame_step=1), "stft: signal: expected 2 or 3 axes"),
    (lambda: ops.lstm(X, X, X), "recurrent: x: expected 3 axes"),
    (
        lambda: ops.gather_nd(X, Tensor(0)),
        "gather_nd: indices: expected 1 or more axes",
    ),
    (lambda: ops.gather_nd(X, Tensor([0, 0, 0])), "positions in at most 2 axes of x"),
    (
        lambda: ops.scatter_nd(X, Tensor(0), X),
        "scatter_nd: indices: expected 1 or more",
    ),
    (lambda: ops.grid_sample(IMAGE, X), "grid_sample: grid: expected 4 axes"),
    (lambda: ops.depth_to_space(X, blocksize=1), "depth_to_space: x: expected 4 axes"),
    (lambda: ops.attention_weights(X[0], X), "attention: q: expected 2 or more axes"),
    (lambda: ops.rotary_embedding(X, X, Tensor(1.0)), "rotary_embedding: sin"),
    (lambda: ops.deform_conv(X, IMAGE, X), "deform_conv: x: expected 4 axes"),
    (lambda: ops.roi_align(IMAGE, X[0], X[0]), "roi_align: rois: expected 2 axes"),
    (lambda: ops.bit_shift(X, X, direction="UP"), "'LEFT' or 'RIGHT', got 'UP'"),
    (lambda: ops.avg_pool(IMAGE, kernel_size=-1), "stride and dilation of 1 or more"),
    (lambda: ops.max_pool(IMAGE, kernel_size=2, stride=0), "of 1 or more, got"),
]


@pytest.mark.parametrize(("call", "message"), RANKS, ids=[m for _, m in RANKS])
def test_what_has_other_axes_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()


TAKEN = [
    lambda: nn.Linear(np.int64(3), np.int32(2)),
    lambda: nn.Linear(0, 0),
    lambda: nn.Conv2d(3, 4, [3, 1], padding=((1, 1), (0, 2))),
    lambda: nn.Conv2d(3, 4, 3, padding="same"),
    lambda: nn.MaxPool2d(2, stride=None),
    lambda: nn.AdaptiveAvgPool2d((None, 2)),
    lambda: nn.BatchNorm2d(3, momentum=None),
    lambda: nn.Embedding(5, 3, padding_idx=-5, norm_type=float("inf"), max_norm=1),
    lambda: nn.Dropout(np.float32(0.5)),
    lambda: nn.Transformer(8, 2, 0, 1, 16),
    lambda: optim.Adam(betas=[0.5, 0.9], eps=0, clip=lambda gradients: gradients),
    lambda: optim.MultiStep(1, range(3)),
    lambda: optim.MultiStep(1, np.arange(3)),
]


@pytest.mark.parametrize("build", TAKEN)
def test_what_fits_is_taken(build):
    build()


def test_a_layer_of_ones_own_is_held_to_its_annotations():
    class Scaled(nn.Conv2d):
        def __init__(self, channels, stride: str = "even"):
            super().__init__(channels, channels, 3, 2 if stride == "even" else 1)

    assert Scaled(3).stride == 2
    with pytest.raises(InputError, match=r"Scaled in_channels: .* got -3"):
        Scaled(-3)
