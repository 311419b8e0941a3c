"""Layers against torch's of the same name: outputs, gradients, parameter names."""

import numpy as np
import pytest

from burnish import Device, Tensor, nn

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle
F64 = {"dtype": "float64"}


def layer(name, shape, *args, **options):
    label = ", ".join([*map(str, args), *(f"{k}={v}" for k, v in options.items())])
    return pytest.param(name, shape, args, options, id=f"{name}({label})")


LAYERS = [
    layer("Linear", (2, 3, 5), 5, 4),
    layer("Linear", (2, 5), 5, 4, bias=False),
    layer("Conv1d", (2, 3, 9), 3, 4, 3, stride=2, padding=1),
    layer("Conv2d", (2, 4, 8, 7), 4, 6, (3, 2), padding=(1, 0), groups=2),
    layer("Conv2d", (2, 4, 8, 7), 4, 8, 3, padding=1, groups=4, bias=False),
    layer("Conv2d", (2, 4, 8, 7), 4, 2, 4, padding="same"),
    layer("Conv2d", (2, 4, 8, 7), 4, 2, 3, padding="valid", dilation=2),
    layer("Conv3d", (1, 2, 4, 5, 6), 2, 3, 2, stride=(1, 2, 2)),
    layer("ConvTranspose1d", (2, 3, 5), 3, 4, 3, stride=2),
    layer("ConvTranspose2d", (2, 4, 5, 4), 4, 6, 3, 2, 1, 1, 2),
    layer("ConvTranspose3d", (1, 2, 2, 3, 2), 2, 3, 2, dilation=2),
    layer("BatchNorm1d", (6, 3), 3),
    layer("BatchNorm1d", (4, 3, 5), 3, affine=False),
    layer("BatchNorm2d", (4, 3, 5, 2), 3, momentum=None, eps=1e-3),
    layer("BatchNorm2d", (4, 3, 5, 2), 3, track_running_stats=False),
    layer("BatchNorm3d", (2, 3, 2, 2, 3), 3, momentum=0.3),
    layer("InstanceNorm1d", (2, 3, 5), 3),
    layer("InstanceNorm2d", (2, 3, 5, 4), 3, affine=True),
    layer("InstanceNorm3d", (2, 3, 2, 2, 3), 3, track_running_stats=True),
    layer("LayerNorm", (2, 3, 4), 4),
    layer("LayerNorm", (2, 3, 4), (3, 4), bias=False),
    layer("LayerNorm", (2, 3, 4), (3, 4), elementwise_affine=False),
    layer("RMSNorm", (2, 3, 4), 4),
    layer("RMSNorm", (2, 3, 4), (3, 4), eps=1e-3),
    layer("GroupNorm", (2, 6, 3, 2), 3, 6),
    layer("GroupNorm", (2, 6, 5), 2, 6, affine=False),
    layer("MaxPool1d", (2, 3, 9), 2),
    layer("MaxPool2d", (2, 3, 9, 8), 3, 2, 1),
    layer("MaxPool2d", (2, 3, 9, 8), (2, 3), ceil_mode=True),
    layer("MaxPool2d", (2, 3, 9, 8), 2, dilation=2, stride=1),
    layer("MaxPool3d", (1, 2, 4, 5, 4), 2),
    layer("AvgPool1d", (2, 3, 9), 3, 2, 1),
    layer("AvgPool2d", (2, 3, 9, 8), 3, 2, 1, ceil_mode=True),
    layer("AvgPool2d", (2, 3, 9, 8), 3, 2, 1, True, False),
    layer("AvgPool2d", (2, 3, 9, 8), 2, divisor_override=3),
    layer("AvgPool3d", (1, 2, 4, 5, 4), 2),
    layer("AdaptiveAvgPool1d", (2, 3, 9), 4),
    layer("AdaptiveAvgPool2d", (2, 3, 9, 8), (4, None)),
    layer("AdaptiveAvgPool2d", (2, 3, 8, 8), 1),
    layer("AdaptiveAvgPool3d", (1, 2, 4, 5, 4), 3),
    layer("AdaptiveMaxPool1d", (2, 3, 9), 4),
    layer("AdaptiveMaxPool2d", (2, 3, 9, 8), (4, None)),
    layer("AdaptiveMaxPool3d", (1, 2, 4, 5, 4), 3),
    layer("ReLU", (3, 4)),
    layer("ReLU6", (3, 4)),
    layer("LeakyReLU", (3, 4), 0.2),
    layer("PReLU", (3, 4)),
    layer("PReLU", (2, 3, 4, 2), 3),
    layer("ELU", (3, 4), 0.7),
    layer("CELU", (3, 4), 0.7),
    layer("SELU", (3, 4)),
    layer("GELU", (3, 4)),
    layer("GELU", (3, 4), "tanh"),
    layer("SiLU", (3, 4)),
    layer("Mish", (3, 4)),
    layer("Sigmoid", (3, 4)),
    layer("LogSigmoid", (3, 4)),
    layer("Tanh", (3, 4)),
    layer("Softsign", (3, 4)),
    layer("Softplus", (3, 4)),
    layer("Softplus", (3, 4), 2.0, 0.5),
    layer("Hardswish", (3, 4)),
    layer("Hardsigmoid", (3, 4)),
    layer("Hardtanh", (3, 4), -0.5, 0.5),
    layer("GLU", (3, 4)),
    layer("GLU", (4, 3), 0),
    layer("Softmax", (3, 4), 1),
    layer("LogSoftmax", (3, 4), 0),
    layer("Flatten", (2, 3, 4)),
    layer("Flatten", (2, 3, 4), 0, 1),
    layer("Identity", (2, 3)),
    layer("Dropout", (2, 3), 0.0),
    layer("LSTM", (5, 2, 3), 3, 4),
    layer("LSTM", (2, 5, 3), 3, 4, 2, batch_first=True, bidirectional=True),
    layer("LSTM", (5, 3), 3, 4, bias=False),
    layer("LSTM", (5, 2, 3), 3, 4, 2, proj_size=2, bidirectional=True),
    layer("GRU", (5, 2, 3), 3, 4, 2, bidirectional=True),
    layer("GRU", (2, 5, 3), 3, 4, batch_first=True, bias=False),
    layer("RNN", (5, 2, 3), 3, 4, 2),
    layer("RNN", (5, 2, 3), 3, 4, nonlinearity="relu", bidirectional=True),
]


def pair(name, args, options):
    """Our layer and torch's, with torch's values."""
    torch.manual_seed(0)
    theirs = getattr(torch.nn, name)(*args, **options).double()
    kind = getattr(nn, name)
    has_weights = bool(theirs.state_dict())
    ours = kind(*args, **options, **(F64 if has_weights else {}))
    for value in theirs.state_dict().values():
        if value.dtype.is_floating_point and value.ndim:
            value += 0.1 * torch.rand_like(value)
    state = {k: v.numpy().copy() for k, v in theirs.state_dict().items()}
    assert list(ours.state_dict()) == list(state)
    ours.load_state_dict(state)
    return ours, theirs


def flat(results):
    if isinstance(results, tuple):
        return [part for item in results for part in flat(item)]
    return [results]


def compare(ours, theirs, what):
    theirs = theirs.detach().numpy()
    assert ours.shape == theirs.shape
    assert ours.dtype == theirs.dtype
    np.testing.assert_allclose(
        ours.numpy(), theirs, rtol=1e-7, atol=1e-10, err_msg=what
    )


@pytest.mark.filterwarnings("ignore:Using padding=.same.")
@pytest.mark.parametrize(("name", "shape", "args", "options"), LAYERS)
def test_layer(name, shape, args, options):
    ours, theirs = pair(name, args, options)
    x = np.random.default_rng(1).normal(size=shape) * 2
    theirs.eval()
    for one, other in zip(
        flat(ours(Tensor(x))), flat(theirs(torch.tensor(x))), strict=True
    ):
        compare(one, other, "eval")
    check_gradients(ours.to("cpu:autodiff"), theirs.train(), x)


def check_gradients(ours, theirs, x):
    """In training: outputs, gradients of input and parameters, buffers."""
    leaf, given = Tensor(x).require_grad(), torch.tensor(x, requires_grad=True)
    got, want = flat(ours(leaf)), flat(theirs(given))
    rng = np.random.default_rng(2)
    weights = [rng.normal(size=w.shape) for w in want]
    for one, other in zip(got, want, strict=True):
        compare(one, other, "training")
    loss = sum((g * w).sum() for g, w in zip(got, weights, strict=True))
    sum(
        (g * torch.tensor(w)).sum() for g, w in zip(want, weights, strict=True)
    ).backward()
    gradients = loss.backward()
    compare(leaf.grad(gradients), given.grad, "gradient of the input")
    for name, param in theirs.named_parameters():
        own = dict(ours.named_parameters())[name]
        compare(own.grad(gradients), param.grad, f"gradient of {name}")
    for name, buffer in theirs.named_buffers():
        compare(dict(ours.named_buffers())[name], buffer, name)


@pytest.mark.parametrize("momentum", [0.1, None])
def test_running_statistics_after_several_steps(momentum):
    ours, theirs = pair("BatchNorm2d", (3,), {"momentum": momentum})
    ours = ours.to("cpu:autodiff")
    rng = np.random.default_rng(0)
    for _ in range(5):
        x = rng.normal(2, 3, (4, 3, 2, 5))
        compare(ours(Tensor(x)), theirs(torch.tensor(x)), "output")
    for name, buffer in theirs.named_buffers():
        compare(dict(ours.named_buffers())[name], buffer, name)
    x = rng.normal(size=(1, 3, 2, 2))
    compare(ours.valid()(Tensor(x)), theirs.eval()(torch.tensor(x)), "inference")


@pytest.mark.parametrize("padding_idx", [None, 2, -1])
def test_embedding(padding_idx):
    ids = np.array([[0, 2, 2], [4, 0, 1]])
    ours, theirs = pair("Embedding", (5, 3), {"padding_idx": padding_idx})
    compare(ours(Tensor(ids)), theirs(torch.tensor(ids)), "rows")
    weights = np.random.default_rng(0).normal(size=(2, 3, 3))
    (theirs(torch.tensor(ids)) * torch.tensor(weights)).sum().backward()
    ours = ours.to("cpu:autodiff")
    gradients = (ours(Tensor(ids)) * weights).sum().backward()
    compare(ours.weight.grad(gradients), theirs.weight.grad, "gradient")


@pytest.mark.parametrize("name", ["MaxPool2d", "AdaptiveMaxPool2d"])
def test_indices(name):
    x = np.random.default_rng(0).normal(size=(2, 3, 6, 7))
    ours = getattr(nn, name)(2, return_indices=True)(Tensor(x))
    theirs = getattr(torch.nn, name)(2, return_indices=True)(torch.tensor(x))
    for one, other in zip(ours, theirs, strict=True):
        compare(one, other, name)


@pytest.mark.parametrize(("kind", "count"), [("LSTM", 2), ("GRU", 1), ("RNN", 1)])
@pytest.mark.parametrize("shape", [(4, 2, 3), (4, 3)])
def test_initial_states(kind, count, shape):
    ours, theirs = pair(kind, (3, 5, 2), {"bidirectional": True})
    rng = np.random.default_rng(0)
    size = (4, 2, 5) if len(shape) == 3 else (4, 5)
    states = [rng.normal(size=size) for _ in range(count)]
    x = rng.normal(size=shape)
    mine, its = [Tensor(s) for s in states], [torch.tensor(s) for s in states]
    got = ours(Tensor(x), tuple(mine) if count > 1 else mine[0])
    want = theirs(torch.tensor(x), tuple(its) if count > 1 else its[0])
    for one, other in zip(flat(got), flat(want), strict=True):
        compare(one, other, kind)


@pytest.mark.parametrize(
    ("name", "args", "param"),
    [
        ("Linear", (64, 256), "weight"),
        ("Linear", (64, 256), "bias"),
        ("Conv2d", (16, 64, 3), "weight"),
        ("Conv2d", (16, 64, 3), "bias"),
        ("ConvTranspose2d", (16, 64, 3), "weight"),
        ("ConvTranspose2d", (16, 64, 3), "bias"),
        ("Embedding", (100, 64), "weight"),
        ("LSTM", (16, 32), "weight_hh_l0"),
    ],
)
def test_initial_values_are_drawn_as_torch_draws_them(name, args, param):
    mine = getattr(getattr(nn, name)(*args), param).numpy()
    its = getattr(getattr(torch.nn, name)(*args), param).detach().numpy()
    assert mine.shape == its.shape
    assert mine.dtype == its.dtype
    np.testing.assert_allclose(mine.std(), its.std(), rtol=0.25)
    if name != "Embedding":
        np.testing.assert_allclose(abs(mine).max(), abs(its).max(), rtol=0.1)


def test_autodiff_is_what_makes_a_module_train():
    assert not nn.Dropout().training
    assert nn.Dropout().to(Device("cpu").autodiff()).training


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize(
    "options", [{}, {"bias": False}, {"kdim": 3, "vdim": 5}], ids=str
)
def test_multihead_attention(options, batch_first):
    options = {"batch_first": batch_first} | options
    ours, theirs = pair("MultiheadAttention", (8, 2), options)
    ours = ours.to("cpu:autodiff")
    rng = np.random.default_rng(0)
    widths = (8, options.get("kdim", 8), options.get("vdim", 8))
    shapes = [(2, 4, 8), *((2, 5, width) for width in widths[1:])]
    parts = [rng.normal(size=shape) for shape in shapes]
    if not batch_first:
        parts = [part.swapaxes(0, 1) for part in parts]
    masks = {
        "key_padding_mask": rng.random((2, 5)) < 0.3,
        "attn_mask": rng.random((4, 5)) < 0.3,
    }
    masks["key_padding_mask"][:, 0] = masks["attn_mask"][:, 0] = False
    for chosen in ({}, masks, {"attn_mask": rng.normal(size=(4, 4, 5))}):
        leaves = [Tensor(part).require_grad() for part in parts]
        given = [torch.tensor(part, requires_grad=True) for part in parts]
        got, shares = ours(*leaves, **chosen)
        tensors = {k: torch.tensor(v) for k, v in chosen.items()}
        want, theirs_shares = theirs(*given, **tensors)
        compare(got, want, "output")
        compare(shares, theirs_shares, "weights")
        weights = rng.normal(size=want.shape)
        gradients = (got * weights).sum().backward()
        theirs.zero_grad()
        (want * torch.tensor(weights)).sum().backward()
        for leaf, other in zip(leaves, given, strict=True):
            compare(leaf.grad(gradients), other.grad, "gradient of an input")
        for name, param in theirs.named_parameters():
            own = dict(ours.named_parameters())[name]
            compare(own.grad(gradients), param.grad, f"gradient of {name}")


def test_multihead_attention_of_one_example():
    ours, theirs = pair("MultiheadAttention", (8, 2), {})
    x = np.random.default_rng(0).normal(size=(4, 8))
    given = torch.tensor(x)
    got, shares = ours(*[Tensor(x)] * 3, average_attn_weights=False)
    want, theirs_shares = theirs(given, given, given, average_attn_weights=False)
    compare(got, want, "output")
    compare(shares, theirs_shares, "weights")
    assert ours(*[Tensor(x)] * 3, need_weights=False)[1] is None
