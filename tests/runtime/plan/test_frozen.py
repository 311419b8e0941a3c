"""Frozen parameters cost no gradient work in a planned step; adapters are planned."""

import numpy as np
import pytest

import burnish
from burnish import Tensor, nn, optim
from burnish.kernels import library
from tests.runtime.plan.gradients import exact, normal

pytestmark = pytest.mark.skipif(library() is None, reason="there is no compiler")

ROWS, WIDE = 16, 96


def planned(model, x):
    """The records of a step, and what explain() says."""
    model, optimizer = model.to("cpu:autodiff"), optim.SGD()

    @burnish.compile
    def step(x):
        loss = (model(x) ** 2).mean()
        optimizer.step(1e-3, model, loss.backward())
        return loss

    first = step(Tensor(x)).item()
    assert step(Tensor(x)).item() < first
    return step._steps.known[0]._plan.steps, step.explain()


def of_gradients(records):
    """How many operations products for gradients are."""
    return sum(each.flops for each in records if "gradient" in each.label)


def convolutions():
    return nn.Sequential(
        nn.Conv2d(3, 16, 3),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(32, 8),
    )


def test_a_frozen_backbone_has_no_gradients():
    x = np.random.default_rng(0).normal(size=(2, 3, 12, 12)).astype(np.float32)
    whole, _ = planned(convolutions(), x)
    assert {"conv_weight", "channel_norm_gradient"} <= {each.kind for each in whole}
    model = convolutions()
    for layer in model[:4]:
        layer.freeze()
    records, told = planned(model, x)
    assert "nothing eagerly" in told
    assert of_gradients(records) == 2 * 2 * 32 * 8  # the last layer's weight
    updates = [each for each in records if each.label == "stepped"]
    assert len(updates) == 2
    at = records.index(
        next(each for each in records if "linear gradient" in each.label)
    )
    kinds = {each.kind for each in records[at:]}
    assert kinds <= {"conv_weight", "reduce", "copy", "pack", updates[0].kind}


@pytest.mark.parametrize("frozen", [(), (0,), (1,), (0, 1), (2,), (1, 2)])
def test_only_what_is_trained_or_lies_before_it_takes_products(frozen):
    layers = [nn.Linear(WIDE, WIDE, bias=False) for _ in range(3)]
    for i in frozen:
        layers[i].freeze()
    x = np.ones((ROWS, WIDE), np.float32)
    records, told = planned(nn.Sequential(*layers), x)
    assert "nothing eagerly" in told
    trained = [i for i in range(3) if i not in frozen]
    passed = 2 - trained[0]  # layers that pass a gradient on to the one before
    one = 2 * ROWS * WIDE * WIDE
    assert of_gradients(records) == one * (len(trained) + passed)


def test_low_rank_adapters_are_in_the_plan():
    model = nn.Sequential(nn.Linear(WIDE, 64), nn.GELU(), nn.Linear(64, 32))
    model.apply_lora(4)
    random = np.random.default_rng(1)
    records, told = planned(model, random.normal(size=(ROWS, WIDE)).astype(np.float32))
    assert "nothing eagerly" in told
    trained = sum(param.trainable for _, param in model.named_parameters())
    assert sum(each.kind == "sgd" for each in records) == trained


def test_low_rank_adapters_take_no_gradient_of_the_whole_weight():
    """The last layer passes g on, the first one nothing; the rest is of the rank."""
    rank = 2
    model = nn.Sequential(nn.Linear(WIDE, WIDE), nn.Linear(WIDE, WIDE))
    records, told = planned(model.apply_lora(rank), np.ones((ROWS, WIDE), np.float32))
    assert "nothing eagerly" in told
    one = 2 * ROWS * WIDE * WIDE
    forward = 2 * one
    thin = 2 * ROWS * WIDE * rank
    assert sum(each.flops for each in records) <= forward + one + 12 * thin


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("shape", [(5,), (4, 5), (2, 3, 5), (0, 5)])
@pytest.mark.parametrize("device", ["cpu", "cpu:autodiff"])
def test_adapted_products_are_those_of_the_value(shape, transposed, device):
    random = np.random.default_rng(3)
    layer = nn.Linear(5, 7, dtype="float64", transposed=transposed)
    layer.apply_lora(3, alpha=6.0)
    for part in dict(layer.weight.parts()).values():
        part.assign(random.normal(size=part.shape))
    layer = layer.to(device)
    weight = layer.weight.numpy()
    x = random.normal(size=shape)
    made = layer(Tensor(x))
    wanted = x @ (weight if transposed else weight.T) + layer.bias.numpy()
    np.testing.assert_allclose(made.numpy(), wanted, rtol=1e-12, atol=1e-12)
    if not made.node or not made.size:
        return
    factor = random.normal(size=made.shape)
    found = (made * Tensor(factor)).sum().backward()
    rows, back = x.reshape(-1, 5), factor.reshape(-1, 7)
    whole = 2 * (rows.T @ back if transposed else back.T @ rows)  # alpha / rank is 2
    parts = dict(layer.weight.parts())
    a, b = parts["lora_A"], parts["lora_B"]
    np.testing.assert_allclose(a.grad(found).numpy(), b.numpy().T @ whole, rtol=1e-10)
    np.testing.assert_allclose(b.grad(found).numpy(), whole @ a.numpy().T, rtol=1e-10)


@pytest.mark.parametrize("shape", [(24, 40), (24, 5, 3, 3)])
def test_gradients_of_low_rank_sums(shape):
    random = np.random.default_rng(2)
    columns = int(np.prod(shape[1:]))
    report = exact(
        lambda x, b, a: burnish.ops.low_rank_add(x, b, a, scale=0.5),
        normal(random, *shape), normal(random, 24, 4), normal(random, 4, columns),
    )  # fmt: skip
    assert "nothing eagerly" in report


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_adapted_attention_of_x_to_itself_is_that_of_the_value(bias, kind):
    random = np.random.default_rng(4)
    layer = nn.MultiheadAttention(8, 2, bias=bias, batch_first=True, dtype=kind)
    layer.apply_lora(3, alpha=6.0).to("cpu:autodiff")
    for weight in (layer.in_proj_weight, layer.out_proj.weight):
        for part in dict(weight.parts()).values():
            part.assign(random.normal(size=part.shape).astype(kind))
    x, factor = (Tensor(random.normal(size=(2, 5, 8)).astype(kind)) for _ in range(2))

    def results(*given):
        y = layer(*given)[0]
        found = (y * factor).sum().backward()
        trained = [p for p in layer.parameters() if found.get(p) is not None]
        return [y.numpy(), *(p.grad(found).numpy() for p in trained)]

    made, wanted = results(x, x, x), results(x, x + 0, x + 0)
    assert len(made) == len(wanted) > 4
    for one, other in zip(made, wanted, strict=True):
        size = abs(other).max() * (1e-5 if kind == "float32" else 1e-12)
        np.testing.assert_allclose(one, other, rtol=0, atol=size)


@pytest.mark.oracle
@pytest.mark.parametrize("dynamo", [False, True])
def test_adapters_of_an_imported_transformer_cost_no_gradient_of_its_weights(
    dynamo, tmp_path
):
    import torch

    from tests.harness.gradients import exported
    from tests.harness.imported import imported

    width, rank, rows = 32, 2, 2 * 16

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            setting = {"dropout": 0.0, "batch_first": True, "activation": "gelu"}
            kind = torch.nn.TransformerEncoderLayer
            self.one, self.two = (kind(width, 4, 64, **setting) for _ in range(2))
            self.head = torch.nn.Linear(width, width)

        def forward(self, x):
            return self.head(self.two(self.one(x)))

    torch.manual_seed(0)
    given = {"x": torch.randn(2, rows // 2, width)}
    file = exported(Model(), given, dynamo=dynamo)
    model = imported(file, tmp_path).apply_lora(rank)
    records, told = planned(model, given["x"].numpy())
    assert "nothing eagerly" in told
    assert "conv_weight" not in {each.kind for each in records}
    trained = sum(param.trainable for _, param in model.named_parameters())
    assert sum(each.kind == "sgd" for each in records) == trained == 18
    frozen = (2 * (3 + 1 + 2 + 2) + 1) * 2 * rows * width * width  # forward
    assert of_gradients(records) < frozen
