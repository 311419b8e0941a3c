"""Several GPUs: each has plans of its own; a step of all is that of the whole batch."""

import copy
from pathlib import Path

import numpy as np
import pytest

import burnish
from burnish import Device, Tensor, nn, optim
from burnish.distributed import Group
from tests.harness.processes import needs_gpus, on_gpus

from .program import RATE, batches, network, step_of, trained

PROGRAM = Path(__file__).with_name("program.py")


def exact():
    """The weights that float64 gives with the whole batches."""
    burnish.seed(0)
    model = network().to("cuda:autodiff")
    model.map(lambda path, tensor: tensor.double())
    step = step_of(model, Group("cuda"))
    for x, t in batches():
        step(Tensor(x.astype(np.float64)).to("cuda"), Tensor(t).to("cuda"), RATE)
    return {name: array.get() for name, array in model.state_dict().items()}


def apart(weights, wanted):
    gaps = {name: np.linalg.norm(weights[name] - wanted[name]) for name in wanted}
    return max(gap / np.linalg.norm(wanted[name]) for name, gap in gaps.items())


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
def test_a_step_of_two_processes_is_that_of_the_whole_batch(tmp_path, precision):
    needs_gpus(2)
    wanted = exact()
    alone = {k: v.get() for k, v in trained(Group("cuda"), precision).items()}
    on_gpus([PROGRAM, tmp_path / "weights.npz", precision], 2)
    both = np.load(tmp_path / "weights.npz")
    assert apart(wanted, alone) > 0
    assert apart(both, wanted) <= 2 * apart(alone, wanted)


def layers():
    return nn.Sequential(
        nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.AdaptiveAvgPool2d(2),
        nn.Flatten(), nn.Linear(64, 10), nn.LayerNorm(10),
    )  # fmt: skip


@pytest.mark.parametrize(("precision", "near"), [("fp32", 1e-5), ("bf16", 2e-2)])
def test_plans_of_two_devices_interleave(precision, near):
    needs_gpus(2)
    rng = np.random.default_rng(0)
    model = layers()
    fast = [
        burnish.compile(model.fork(f"cuda:{i}").valid(), precision=precision)
        for i in range(2)
    ]
    plain = model.fork("cpu").valid()
    for _ in range(4):
        x = Tensor(rng.normal(size=(4, 3, 12, 12)).astype(np.float32))
        made = [each(x.to(f"cuda:{i}")) for i, each in enumerate(fast)]
        assert [each.device for each in made] == [Device("cuda:0"), Device("cuda:1")]
        for each in made:
            np.testing.assert_allclose(each.numpy(), plain(x).numpy(), near, near)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_steps_of_two_devices_interleave(precision):
    needs_gpus(2)
    rng = np.random.default_rng(0)
    model, rule = layers(), optim.AdamW()
    steps, nets = [], []
    for device in ("cuda:0", "cuda:0", "cuda:1"):
        net, own = model.fork(f"{device}:autodiff"), copy.deepcopy(rule)

        def step(x, t, net=net, own=own):
            loss = nn.cross_entropy(net(x), t)
            own.step(1e-2, net, loss.backward())
            return loss

        steps.append(burnish.compile(step, precision=precision))
        nets.append(net)
    for _ in range(5):
        x = Tensor(rng.normal(size=(8, 3, 12, 12)).astype(np.float32))
        t = Tensor(rng.integers(0, 10, 8))
        for step, net in zip(steps, nets, strict=True):
            step(x.to(net.device.inner()), t.to(net.device.inner()))
    first, same, other = (
        {k: v.get() for k, v in net.state_dict().items()} for net in nets
    )
    for name, array in first.items():
        np.testing.assert_allclose(array, same[name], 1e-5, 1e-6, err_msg=name)
        np.testing.assert_allclose(array, other[name], 1e-5, 1e-6, err_msg=name)


def test_the_second_device_computes_eagerly():
    needs_gpus(2)
    rng = np.random.default_rng(0)
    model, rule = layers(), optim.AdamW(clip=optim.ClipGlobalNorm(0.1))
    nets = [model.fork(f"{device}:autodiff") for device in ("cpu", "cuda:1")]
    rules = [copy.deepcopy(rule) for _ in nets]
    for _ in range(3):
        x = Tensor(rng.normal(size=(8, 3, 12, 12)).astype(np.float32))
        t = Tensor(rng.integers(0, 10, 8))
        losses = []
        for net, own in zip(nets, rules, strict=True):
            place = net.device.inner()
            loss = nn.cross_entropy(net(x.to(place)), t.to(place))
            own.step(1e-3, net, loss.backward())
            losses.append(loss.item())
        assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    for name, array in nets[1].state_dict().items():
        assert Device.of(array) == Device("cuda:1"), name


def test_lbfgs_computes_on_the_second_device():
    needs_gpus(2)
    rng = np.random.default_rng(0)
    model = nn.Linear(6, 2)
    x, t = (Tensor(rng.normal(size=(8, n)).astype(np.float32)) for n in (6, 2))
    found = []
    for device in ("cpu", "cuda:1"):
        net, rule = model.fork(f"{device}:autodiff"), optim.LBFGS(max_iter=5)
        near, far = x.to(device), t.to(device)
        for _ in range(3):
            rule.step(0.1, net, lambda n=net, x=near, t=far: ((n(x) - t) ** 2).mean())
        assert Device.of(net.weight.data) == Device(device)
        found.append(net.weight.numpy())
    np.testing.assert_allclose(*found, 1e-4, 1e-5)


def test_tensors_are_made_on_the_device_they_name():
    needs_gpus(2)
    made = [
        Tensor.zeros(2, 3, device="cuda:1"),
        Tensor.arange(4, device="cuda:1"),
        nn.Linear(3, 4).to("cuda:1").weight,
        nn.LSTM(3, 4).to("cuda:1")(Tensor.zeros(2, 1, 3, device="cuda:1"))[0],
    ]
    assert [Device.of(each.data) for each in made] == [Device("cuda:1")] * 4
