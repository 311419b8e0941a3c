"""What CUDA graphs remember of parameters that are made of others."""

import numpy as np
import pytest

from burnish import Tensor, nn
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
