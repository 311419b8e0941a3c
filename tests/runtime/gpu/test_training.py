"""Optimizers, losses and whole steps on a GPU: as on the CPU, and without waiting."""

import numpy as np
import pytest

from burnish import Tensor, nn, optim
from tests.harness.waiting import waits

RULES = [
    optim.SGD(),
    optim.SGD(momentum=0.9, nesterov=True, weight_decay=0.1),
    optim.SGD(momentum=0.9, dampening=0.5, maximize=True),
    optim.Adam(),
    optim.Adam(amsgrad=True, weight_decay=0.1),
    optim.AdamW(),
    optim.AdamW(cautious_weight_decay=True),
    optim.Adamax(),
    optim.NAdam(),
    optim.RAdam(),
    optim.RMSprop(centered=True, momentum=0.1),
    optim.Adagrad(lr_decay=0.1),
    optim.Adadelta(),
    optim.Rprop(),
    optim.Adan(weight_decay=0.1),
    optim.Adan(weight_decay=0.1, no_prox=True),
    optim.Adam(clip=optim.ClipGlobalNorm(0.1)),
]


def model(dtype="float32"):
    layers = [nn.Linear(17, 33, dtype=dtype)]
    layers += [nn.Linear(33, 33, dtype=dtype) for _ in range(50)]
    return nn.Sequential(*layers, nn.Linear(33, 5, dtype=dtype))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("rule", RULES, ids=str)
def test_optimizers(rule, dtype):
    import copy

    rng = np.random.default_rng(0)
    here = model(dtype)
    paths = dict(here.named_parameters())
    found = {}
    for place in ("cpu", "cuda"):
        mine, own = copy.deepcopy(rule), here.fork(f"{place}:autodiff")
        rng = np.random.default_rng(0)
        for _ in range(6):
            grads = {
                path: own.device.put(rng.normal(size=p.shape).astype(dtype))
                for path, p in paths.items()
            }
            mine.step(1e-2, own, optim.GradientsParams(grads))
        found[place] = [p.numpy().astype("f8") for p in own.parameters()]
    bound = {"float16": 2e-3, "float32": 2e-6, "float64": 1e-12}[dtype]
    for one, other in zip(found["cpu"], found["cuda"], strict=True):
        np.testing.assert_allclose(one, other, bound, bound)


def test_an_optimizer_takes_one_kernel():
    from burnish.backend.cuda import kernels

    rule, own = optim.Adam(), nn.Linear(3, 4).fork("cuda:autodiff")
    x = Tensor(np.ones((2, 3), np.float32)).to("cuda")
    grads = own(x).sum().backward()
    rule.step(1e-3, own, grads)
    before = kernels.kernel.cache_info()
    rule.step(1e-3, own, grads)
    after = kernels.kernel.cache_info()
    assert after.hits + after.misses == before.hits + before.misses + 1


LOSSES = [
    ("CrossEntropyLoss", {}, (20, 7), "classes"),
    ("CrossEntropyLoss", {"ignore_index": 2}, (20, 7), "classes"),
    ("CrossEntropyLoss", {"reduction": "sum"}, (20, 7), "classes"),
    ("CrossEntropyLoss", {"reduction": "none"}, (20, 7, 5), "classes"),
    ("CrossEntropyLoss", {"label_smoothing": 0.1}, (20, 7), "classes"),
    ("CrossEntropyLoss", {"weight": np.arange(1.0, 8)}, (20, 7), "classes"),
    ("NLLLoss", {}, (20, 7), "classes"),
    ("MSELoss", {}, (20, 7), "same"),
    ("L1Loss", {}, (20, 7), "same"),
    ("HuberLoss", {}, (20, 7), "same"),
    ("SmoothL1Loss", {}, (20, 7), "same"),
    ("BCEWithLogitsLoss", {}, (20, 7), "same"),
    ("KLDivLoss", {"reduction": "batchmean"}, (20, 7), "same"),
    ("MultiMarginLoss", {}, (20, 7), "classes"),
    ("GaussianNLLLoss", {}, (20, 7), "var"),
]


@pytest.mark.parametrize(("name", "options", "shape", "kind"), LOSSES)
def test_losses_do_not_wait(name, options, shape, kind):
    rng = np.random.default_rng(0)
    scores = rng.normal(size=shape).astype(np.float32)
    labels = rng.integers(0, shape[1], (shape[0], *shape[2:]))
    targets = labels if kind == "classes" else np.abs(np.cos(scores))
    more = [Tensor(np.ones(shape, np.float32))] if kind == "var" else []
    values = []
    for place in ("cpu", "cuda"):
        loss = getattr(nn, name)(**options).fork(place)
        x = Tensor(scores).to(f"{place}:autodiff").require_grad()
        t, rest = Tensor(targets).to(place), [m.to(place) for m in more]

        def call(loss=loss, x=x, t=t, rest=rest):
            total = loss(x, t, *rest)
            total = total.sum() if total.size > 1 else total
            return total, x.grad(total.backward())

        values.append([v.numpy() for v in call()])
        if place == "cuda":
            assert not waits(call)
    for one, other in zip(*values, strict=True):
        np.testing.assert_allclose(one, other, 1e-5, 1e-6)


def test_a_target_that_is_no_class_makes_the_loss_nan():
    x = Tensor(np.zeros((3, 4), np.float32)).to("cuda:autodiff").require_grad()
    for wrong in (4, -1):
        loss = nn.cross_entropy(x, Tensor([0, wrong, 2]).to("cuda"))
        assert np.isnan(loss.item())
    fine = nn.cross_entropy(x, Tensor([0, -100, 2]).to("cuda"))
    np.testing.assert_allclose(fine.item(), np.log(4), 1e-6)
    none = nn.cross_entropy(x, Tensor([-100, -100, -100]).to("cuda"))
    assert np.isnan(none.item())


LABELS = np.array([[1, 2], [3, 1], [1, 9]])


@pytest.mark.parametrize(
    ("targets", "frames", "lengths", "wrong"),
    [
        (LABELS, [5, 5, 5], [2, 2, 2], [2]),
        (LABELS, [5, 6, 5], [2, 3, 1], [1]),
        (LABELS[:2].reshape(-1), [5, 5], [3, 1], []),
        (LABELS[:2].reshape(-1), [5, 5], [3, 2], [0, 1]),
        (LABELS[:2].reshape(-1), [5, 5], [2, 1], [0, 1]),
    ],
)
def test_targets_and_lengths_that_do_not_fit_make_the_loss_nan(
    targets, frames, lengths, wrong
):
    x = Tensor(np.zeros((5, len(frames), 4), np.float32)).to("cuda:autodiff")
    x = x.require_grad()
    given = [Tensor(np.asarray(a)).to("cuda") for a in (targets, frames, lengths)]
    losses = nn.ctc_loss(x, *given, reduction="none")
    slopes = x.grad(losses.backward(Tensor(np.ones(len(frames), "f4")).to("cuda")))
    assert [*np.flatnonzero(np.isnan(losses.numpy()))] == wrong
    found = np.isnan(slopes.numpy()).any(axis=(0, 2))
    assert [*np.flatnonzero(found)] == wrong


class Digits(nn.Module):
    def __init__(self):
        self.conv1 = nn.Conv2d(1, 8, 3)
        self.norm = nn.BatchNorm2d(8)
        self.conv2 = nn.Conv2d(8, 16, 3)
        self.pool = nn.AdaptiveAvgPool2d(8)
        self.dropout = nn.Dropout(0.5)
        self.linear = nn.Linear(16 * 8 * 8, 10)

    def forward(self, x):
        x = self.dropout(self.norm(self.conv1(x)).relu())
        x = self.pool(self.conv2(x).relu())
        return self.linear(x.reshape(x.shape[0], -1))


def test_a_training_step_does_not_wait():
    net, rule = Digits().fork("cuda:autodiff"), optim.AdamW()
    rng = np.random.default_rng(0)
    x = Tensor(rng.normal(size=(8, 1, 28, 28)).astype(np.float32)).to("cuda")
    labels = Tensor(rng.integers(0, 10, 8)).to("cuda")
    losses = []

    def step():
        loss = nn.cross_entropy(net(x), labels)
        rule.step(1e-3, net, loss.backward())
        losses.append(loss)

    assert not waits(step)
    for _ in range(30):
        step()
    assert losses[-1].item() < losses[0].item()


def test_attention_with_a_mask_does_not_wait():
    layer = nn.MultiheadAttention(64, 4, batch_first=True).fork("cuda")
    x = Tensor(np.random.default_rng(0).normal(size=(2, 10, 64)).astype("f4")).to(
        "cuda"
    )
    mask = Tensor(np.zeros((2, 10), bool)).to("cuda")
    assert not waits(lambda: layer(x, x, x, key_padding_mask=mask))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("kind", ["none", "allowed", "added", "keys"])
def test_attention(kind, causal):
    from burnish import ops

    rng = np.random.default_rng(0)
    q, k, v = (rng.normal(size=(2, 3, n, 8)) for n in (5, 7, 7))
    mask = {
        "none": None,
        "allowed": rng.random((5, 7)) < 0.5,
        "added": rng.normal(size=(2, 3, 5, 7)),
        "keys": np.where(rng.random((2, 1, 1, 7)) < 0.7, 0, -np.inf),
    }[kind]
    if kind == "allowed":
        mask[2] = False
    given = [a for a in (q, k, v, mask) if a is not None]
    near = ops.scaled_dot_product_attention(*given, is_causal=causal)
    far = [Tensor(a).to("cuda") for a in given]
    got = ops.scaled_dot_product_attention(*far, is_causal=causal)
    np.testing.assert_allclose(got.numpy(), near, 1e-12, 1e-12)
    half = [a.astype(a.dtype if a.dtype == bool else "float32") for a in far]
    assert not waits(lambda: ops.scaled_dot_product_attention(*half))
