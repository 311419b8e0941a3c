"""What plans remember of parameters that are made of others."""

import numpy as np
import pytest

import burnish
from burnish import Tensor, nn, optim
from burnish.capture import written
from burnish.capture.tape import Tape
from burnish.capture.watch import Watch
from burnish.errors import CaptureError
from burnish.nn.core.param import version
from burnish.plan.cuda.plan import _sources
from burnish.plan.cuda.stepping.following import Following


def adapted():
    net = nn.Sequential(nn.Linear(4, 4)).apply_lora(2)
    return net, Tensor(np.ones((2, 4), np.float32))


def test_a_program_of_adapters_has_versions():
    net, x = adapted()
    sources = _sources(written(Tape(), lambda x: net(x), (x,), {}))
    assert {id(item) for _, item in net.named_tensors()} <= {*map(id, sources)}

    def seen():
        return [version(source) for source in sources]

    def same(before):
        return all(a is b for a, b in zip(before, seen(), strict=True))

    before = seen()
    assert same(before)
    made = net[0].weight
    made.merge()
    assert not same(before), "merged values are another version"
    merged, _ = seen(), made.unmerge()
    assert not same(merged)
    assert same(before)
    base = dict(made.parts())[""]
    base.assign(base.data * 2)
    assert not same(before)


@pytest.mark.parametrize("frozen", [True, False])
def test_a_step_reads_the_parts(frozen):
    net, x = adapted()
    net = net.fork("cpu:autodiff")
    made = net[0].weight
    base = dict(made.parts())[""]
    base.freeze(frozen)
    following = Following(for_graph=False)
    with following.running():
        loss = net(x.to("cpu:autodiff")).sum()
        loss.backward()
    assert not following.why
    assert {id(item) for _, item in net.named_tensors()} <= {*following.stored}
    assert following.formulas[id(made)] == (made, False)
    assert [version(each) for each in following.stored.values()]
    watch = Watch(following, {"": net})
    watch.check()
    made.merge()
    with pytest.raises(CaptureError, match="merged"):
        watch.check()


def test_a_planned_step_follows_a_merge():
    """The parts of a merged parameter do not train any more."""
    net = nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 2)).apply_lora(2)
    net = net.to("cpu:autodiff")
    rule, x = optim.SGD(), Tensor(np.ones((5, 4), np.float32))
    first, second = (dict(layer.weight.parts())["lora_B"] for layer in net)

    def step(x):
        loss = (net(x) ** 2).sum()
        rule.step(0.1, net, loss.backward())
        return loss

    fast = burnish.compile(step)
    changes = []
    for is_merged in (False, False, True, True):
        if is_merged:
            net[0].weight.merge()
        before = first.data.copy(), second.data.copy()
        fast(x)
        now = first.data, second.data
        changes.append([(a != b).any() for a, b in zip(before, now, strict=True)])
    assert changes == [[True, True]] * 2 + [[False, True]] * 2
