"""An optimizer for each group of parameters: who steps what, and the record of it."""

import numpy as np
import pytest

from burnish import nn, optim
from burnish.errors import InputError, RecordError
from burnish.nn import ParamGroup
from burnish.optim import GradientsParams, ModuleOptimizer


class Net(nn.Module):
    def __init__(self):
        self.embed = nn.Embedding(5, 4)
        self.body = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
        self.head = nn.Linear(4, 2)


def ones(net):
    return GradientsParams({p: np.ones_like(a) for p, a in net.state_dict().items()})


def test_the_last_group_counts():
    net = Net()
    optimizer = (
        ModuleOptimizer(optim.SGD())
        .with_group(ParamGroup.from_paths("body"), optim.SGD(weight_decay=1.0))
        .with_group(ParamGroup.from_regex("bias$"), optim.SGD(maximize=True))
    )
    before = net.state_dict()
    optimizer.step(0.5, net, ones(net))
    for path, new in net.state_dict().items():
        if path.endswith("bias"):
            expected = before[path] + 0.5
        elif path.startswith("body"):
            expected = before[path] - 0.5 * (1 + before[path])
        else:
            expected = before[path] - 0.5
        np.testing.assert_allclose(new, expected, 1e-5, 1e-6)


def matrices_and_rest():
    matrices = ParamGroup.from_predicate(lambda _, param: param.ndim == 2)
    tables = ParamGroup.from_paths("embed")
    return ModuleOptimizer(optim.AdamW()).with_group(
        matrices - tables, optim.Muon(weight_decay=0.0)
    )


def test_a_record_continues_exactly(tmp_path):
    whole, halves = Net(), Net()
    halves.load_state_dict(whole.state_dict())
    one, two = matrices_and_rest(), matrices_and_rest()
    for step in range(6):
        if step == 3:
            two.save_file(tmp_path / "optimizer.safetensors")
            two = matrices_and_rest().load_file(tmp_path / "optimizer.safetensors")
        rng = np.random.default_rng(step)
        found = {p: rng.normal(size=a.shape) for p, a in whole.state_dict().items()}
        one.step(0.1, whole, GradientsParams(found))
        two.step(0.1, halves, GradientsParams(found))
    assert set(one.state_dict()) >= {"0.embed.weight.mean", "1.head.weight.velocity"}
    for name, array in whole.state_dict().items():
        assert array.tobytes() == halves.state_dict()[name].tobytes()


def test_it_trains_from_backward_with_rates_by_group():
    net = Net().to("cpu:autodiff")
    ids, target = np.arange(5), np.array([0, 1, 0, 1, 1])
    optimizer = matrices_and_rest()
    optimizer.clip = optim.ClipGlobalNorm(1.0)
    schedule = optim.ModuleSchedule(optim.Constant(0.05)).with_group(
        ParamGroup.from_paths("head"), optim.Constant(0.2)
    )
    losses = []
    for _ in range(30):
        loss = nn.cross_entropy(net.head(net.body(net.embed(ids))), target)
        optimizer.step(schedule.step(), net, loss.backward())
        losses.append(loss.item())
    assert losses[-1] < 0.2 * losses[0]


def test_what_cannot_be_is_refused():
    net = Net()
    with pytest.raises(InputError, match=r"Muon: expected matrices, .* shape \(4,\)"):
        optim.Muon().step(0.1, net, ones(net))
    with pytest.raises(InputError, match="no parameter at or in 'haed'; is 'head'"):
        ModuleOptimizer(optim.SGD()).with_group(
            ParamGroup.from_paths("haed"), optim.Adam()
        ).step(0.1, net, ones(net))
    with pytest.raises(InputError, match="got one for 'tail'"):
        ModuleOptimizer(optim.SGD()).step(
            0.1, net, GradientsParams({"tail": np.ones(1)})
        )
    with pytest.raises(RecordError, match=r"number of one of 1 optimizers, got '1\.a'"):
        ModuleOptimizer(optim.SGD()).load_state_dict({"1.a": np.ones(1)})


def test_a_state_of_another_optimizer_is_named():
    state = optim.SGD(momentum=0.9)
    net = Net()
    state.step(0.1, net, ones(net))
    with pytest.raises(RecordError, match=r"Adam needs 'mean' of '.*', got"):
        optim.Adam().load_state_dict(state.state_dict())


def test_it_prints_what_it_does():
    text = repr(matrices_and_rest())
    assert text.startswith("ModuleOptimizer(AdamW(")
    assert "<ParamGroup from_predicate(...) - (from_paths('embed'))>: Muon(" in text
