"""Losses against torch's: values and gradients, functions and layers."""

import inspect

import numpy as np
import pytest

from burnish import Tensor, nn
from tests.runtime.nn.oracle import DTYPES, compare

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle
REDUCTIONS = ["mean", "sum", "none"]
RNG = np.random.default_rng(0)
LOGITS = RNG.normal(size=(4, 3, 5))
CLASSES = RNG.integers(0, 3, (4, 5))
IGNORED = np.where(RNG.random((4, 5)) < 0.3, -100, CLASSES)
SHARES = RNG.dirichlet(np.ones(3), (4, 5)).transpose(0, 2, 1)
WEIGHT = np.array([0.5, 2.0, 1.0])
X, Y, Z = (RNG.normal(size=(4, 3)) for _ in range(3))
P, T = RNG.random((4, 3)), RNG.random((4, 3))
POS = np.array([1.0, 2.0, 3.0])
SIGNS = np.where(RNG.random((4, 3)) < 0.5, -1, 1)
ROW = CLASSES[:, 0]
LISTED = np.array([[1, -1, 2], [0, 2, -1], [-1, 0, 1], [2, 1, 0]])
COUNTS = RNG.integers(0, 5, (4, 3)).astype(float)
VAR = RNG.random((4, 3)) + 0.1

ROWS = [
    ("CrossEntropyLoss", (LOGITS, CLASSES), {}),
    ("CrossEntropyLoss", (LOGITS, IGNORED), {"weight": WEIGHT}),
    (
        "CrossEntropyLoss",
        (LOGITS, IGNORED),
        {"weight": WEIGHT, "label_smoothing": 0.1},
    ),
    (
        "CrossEntropyLoss",
        (LOGITS, CLASSES),
        {"ignore_index": 1, "label_smoothing": 0.2},
    ),
    ("CrossEntropyLoss", (LOGITS, SHARES), {}),
    ("CrossEntropyLoss", (LOGITS, SHARES), {"weight": WEIGHT, "label_smoothing": 0.1}),
    ("CrossEntropyLoss", (LOGITS[0, :, 0], CLASSES[0, 0]), {}),
    (
        "CrossEntropyLoss",
        (LOGITS.reshape(2, 2, 3, 5).swapaxes(1, 2), CLASSES.reshape(2, 2, 5)),
        {},
    ),
    ("NLLLoss", (LOGITS, IGNORED), {"weight": WEIGHT}),
    ("NLLLoss", (X, ROW), {"ignore_index": 2}),
    ("MSELoss", (X, Y), {}),
    ("L1Loss", (X, Y), {}),
    ("SmoothL1Loss", (X, Y), {"beta": 0.7}),
    ("SmoothL1Loss", (X, Y), {"beta": 0.0}),
    ("HuberLoss", (X, Y), {"delta": 0.7}),
    ("BCELoss", (P, T), {"weight": POS}),
    ("BCELoss", (np.array([0.0, 1, 0, 1]), np.array([0.0, 1, 1, 0])), {}),
    ("BCEWithLogitsLoss", (9 * X, T), {}),
    ("BCEWithLogitsLoss", (X, T), {"pos_weight": POS, "weight": WEIGHT}),
    ("KLDivLoss", (X, T), {}),
    ("KLDivLoss", (X, Y), {"log_target": True}),
    ("KLDivLoss", (X, np.array([[0.0, 1, 0]] * 4)), {"reduction": "batchmean"}),
    ("PoissonNLLLoss", (X, COUNTS), {}),
    ("PoissonNLLLoss", (P, COUNTS), {"log_input": False, "full": True, "eps": 1e-3}),
    ("GaussianNLLLoss", (X, Y, VAR), {}),
    ("GaussianNLLLoss", (X, Y, VAR[:, :1]), {"full": True}),
    ("GaussianNLLLoss", (X, Y, VAR[:, 0]), {"eps": 0.5}),
    ("SoftMarginLoss", (X, SIGNS.astype(float)), {}),
    ("MultiMarginLoss", (X, ROW), {}),
    ("MultiMarginLoss", (X, ROW), {"p": 2, "margin": 0.5, "weight": WEIGHT}),
    ("MultiMarginLoss", (X[0], ROW[0]), {}),
    ("MultiLabelMarginLoss", (X, LISTED), {}),
    ("MultiLabelMarginLoss", (X[1], LISTED[1]), {}),
    ("MultiLabelSoftMarginLoss", (X, T), {}),
    ("MultiLabelSoftMarginLoss", (X, T), {"weight": WEIGHT}),
    ("HingeEmbeddingLoss", (X, SIGNS), {}),
    ("HingeEmbeddingLoss", (X, SIGNS), {"margin": 0.3}),
    ("MarginRankingLoss", (X, Y, SIGNS), {}),
    ("MarginRankingLoss", (X, Y, SIGNS), {"margin": 0.4}),
    ("CosineEmbeddingLoss", (X, Y, SIGNS[:, 0]), {}),
    ("CosineEmbeddingLoss", (X, Y, SIGNS[:, 0]), {"margin": 0.2}),
    ("CosineEmbeddingLoss", (X[0], Y[0], SIGNS[0, 0]), {}),
    ("TripletMarginLoss", (X, Y, Z), {}),
    ("TripletMarginLoss", (X, Y, Z), {"p": 1.0, "swap": True, "margin": 0.5}),
    ("TripletMarginLoss", (X[0], Y[0], Z[0]), {"p": 3.0, "eps": 1e-3}),
    ("TripletMarginWithDistanceLoss", (X, Y, Z), {"margin": 2.0}),
    ("TripletMarginWithDistanceLoss", (X, Y, Z), {"swap": True}),
    (
        "TripletMarginWithDistanceLoss",
        (X, Y, Z),
        {"distance_function": lambda a, b: (a * b).sum(-1)},
    ),
]
SEVERAL = {
    "CosineEmbeddingLoss",
    "GaussianNLLLoss",
    "MSELoss",
    "MarginRankingLoss",
    "TripletMarginLoss",
    "TripletMarginWithDistanceLoss",
}
FUNCTIONS = {
    name: layer.function.__name__
    for name in nn.__all__
    if inspect.isclass(layer := getattr(nn, name)) and hasattr(layer, "function")
}


def cast(value, dtype):
    is_float = isinstance(value, np.ndarray) and value.dtype.kind == "f"
    return value.astype(dtype) if is_float else value


@pytest.mark.filterwarnings("ignore:reduction. .mean.")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize(("name", "inputs", "options"), ROWS)
def test_loss(name, inputs, options, reduction, dtype):
    options = {"reduction": reduction} | options
    options = {k: cast(v, dtype) for k, v in options.items()}
    inputs = [cast(np.asarray(item), dtype) for item in inputs]
    tensors = {
        k: torch.tensor(v) if isinstance(v, np.ndarray) else v
        for k, v in options.items()
    }
    given = [torch.tensor(x) for x in inputs]
    leaves = [Tensor(x) for x in inputs]
    learned = [i for i, x in enumerate(inputs) if x.dtype.kind == "f"]
    learned = learned if name in SEVERAL else [0]
    for i in learned:
        given[i].requires_grad_()
        leaves[i] = leaves[i].require_grad()
    want = getattr(torch.nn, name)(**tensors)(*given)
    got = getattr(nn, FUNCTIONS[name])(*leaves, **options)
    compare(got, want, "value", dtype)
    layer = getattr(nn, name)(**options)
    assert [*layer.state_dict()] == [*getattr(torch.nn, name)(**tensors).state_dict()]
    compare(layer(*leaves), want, "layer", dtype)
    g = np.random.default_rng(0).normal(size=want.shape).astype(dtype)
    want.backward(torch.tensor(g))
    gradients = got.backward(g)
    for i in learned:
        compare(leaves[i].grad(gradients), given[i].grad, f"gradient {i}", dtype)


FRAMES, LABELS = np.array([7, 5, 6, 3]), np.array([3, 2, 0, 3])
TOLD = np.array([[1, 1, 2], [3, 2, 9], [9, 9, 9], [1, 2, 1]])
TABLE = np.where(np.arange(3) < LABELS[:, None], TOLD, 1)
CTC = [
    (TABLE, LABELS, {}),
    (
        np.concatenate([row[:n] for row, n in zip(TOLD, LABELS, strict=True)]),
        LABELS,
        {},
    ),
    (TABLE, np.array([2, 3, 1, 2]), {"blank": 4}),
    (np.ones((4, 3), int), np.array([3, 3, 3, 3]), {"zero_infinity": True}),
]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize(("targets", "labels", "options"), CTC)
def test_ctc(targets, labels, options, reduction, dtype):
    x = RNG.normal(size=(7, 4, 5)).astype(dtype)
    options = options | {"reduction": reduction}
    leaf, given = Tensor(x).require_grad(), torch.tensor(x, requires_grad=True)
    got = nn.CTCLoss(**options)(leaf.log_softmax(-1), targets, FRAMES, labels)
    lengths = [torch.tensor(n) for n in (targets, FRAMES, labels)]
    want = torch.nn.CTCLoss(**options)(given.log_softmax(-1), *lengths)
    compare(got, want, "value", dtype)
    g = np.random.default_rng(0).normal(size=want.shape).astype(dtype)
    want.backward(torch.tensor(g))
    compare(leaf.grad(got.backward(g)), given.grad, "gradient", dtype)


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_ctc_of_one_example(reduction):
    x = torch.tensor(RNG.normal(size=(6, 5))).log_softmax(-1)
    args = np.array([1, 3, 3]), 6, 3
    got = nn.ctc_loss(Tensor(x.numpy()), *args, reduction=reduction)
    its = [torch.tensor(arg) for arg in args]
    want = torch.nn.functional.ctc_loss(x, *its, reduction=reduction)
    compare(got, want, "value")


def test_no_frames_have_the_path_of_no_label_alone():
    x = torch.tensor(RNG.normal(size=(3, 3, 4)), requires_grad=True)
    leaf = Tensor(x.detach().numpy()).require_grad()
    args, options = ([[1], [1], [1]], [0, 0, 2], [0, 1, 1]), {"zero_infinity": True}
    want = torch.nn.functional.ctc_loss(
        x.log_softmax(-1), *map(torch.tensor, args), reduction="none", **options
    )
    got = nn.ctc_loss(leaf.log_softmax(-1), *args, reduction="none", **options)
    compare(got, want, "value")
    want.sum().backward()
    compare(leaf.grad(got.sum().backward()), x.grad, "gradient")
    empty = Tensor(np.zeros((0, 1, 4)))
    assert nn.ctc_loss(empty, np.zeros((1, 0), int), [0], [0]).item() == 0


def test_a_target_without_a_path_is_infinitely_unlikely():
    x = torch.tensor(RNG.normal(size=(3, 1, 4))).log_softmax(-1)
    args = np.array([[1, 1]]), [2], [2]
    assert nn.ctc_loss(Tensor(x.numpy()), *args).item() == float("inf")
