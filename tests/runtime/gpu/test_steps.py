"""Steps of training as CUDA graphs: the plain step's numbers, effects and draws."""

import copy
import itertools

import numpy as np
import pytest

import burnish
from burnish import Tensor, nn, ops, optim
from burnish.plan import compiled
from tests.harness.waiting import waits

SIZES = {"rtol": 2e-5, "atol": 2e-6}


class Digits(nn.Module):
    """A convolution's bias before a batch norm has no gradient but rounding: none."""

    def __init__(self, rate=0.25):
        self.conv1 = nn.Conv2d(1, 8, 3, bias=False)
        self.norm = nn.BatchNorm2d(8)
        self.conv2 = nn.Conv2d(8, 16, 3, stride=2)
        self.pool = nn.AdaptiveAvgPool2d(4)
        self.dropout = nn.Dropout(rate)
        self.linear = nn.Linear(16 * 4 * 4, 10)

    def forward(self, x):
        x = self.dropout(self.norm(self.conv1(x)).relu())
        x = self.pool(self.conv2(x).relu())
        return self.linear(x.reshape(x.shape[0], -1))


def encoder():
    layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, dropout=0.1)
    return nn.Sequential(nn.Embedding(50, 32), nn.TransformerEncoder(layer, 2))


def digits(count=8, seed=0):
    rng = np.random.default_rng(seed)
    x = Tensor(rng.normal(size=(count, 1, 20, 20)).astype(np.float32)).to("cuda")
    return x, Tensor(rng.integers(0, 10, count)).to("cuda")


def words(count=3, seed=0):
    rng = np.random.default_rng(seed)
    x = Tensor(rng.integers(0, 50, (count, 7))).to("cuda")
    return x, Tensor(rng.normal(size=(count, 7, 32)).astype(np.float32)).to("cuda")


def trained(net, rule, loss):
    def step(x, t, rate):
        made = net(x)
        value = loss(made, t)
        rule.step(rate, net, value.backward())
        return value, made

    return step


def kept(net, rule):
    state = {**net.state_dict(), **rule.state_dict()}
    return {k: array(v) for k, v in state.items()}


def array(held):
    if isinstance(held, Tensor):
        return held.numpy()
    return np.array(held.get() if hasattr(held, "get") else held)


def alike(one, other):
    assert one.keys() == other.keys()
    for name, value in one.items():
        made = other[name]
        if name.endswith("in_proj_bias"):  # a key's has no gradient, only rounding
            value, made = (np.delete(a.reshape(3, -1), 1, 0) for a in (value, made))
        most = float(np.max(np.abs(made), initial=0))
        near = max(SIZES["atol"], 4e-6 * most)  # sums of unlike signs
        sizes = SIZES | {"atol": min(near, 1e-4 * most)}  # squares are below SIZES
        np.testing.assert_allclose(value, made, **sizes, err_msg=name)


def both(make, rule, loss, data, steps=9):
    """The plain and the compiled step, from the same start, with the same draws."""
    plain = make().fork("cuda:autodiff")
    found = []
    for is_compiled in (False, True):
        net, own = plain.fork("cuda:autodiff"), copy.deepcopy(rule)
        step = trained(net, own, loss)
        fast = burnish.compile(step) if is_compiled else step
        burnish.seed(1)
        pairs = []
        for i in range(steps):
            value, made = fast(*data(seed=i), 1e-2 / (i + 1))
            pairs.append((value.item(), made.numpy()))
        found.append((pairs, kept(net, own), fast))
    (one, state, _), (other, fast_state, fast) = found
    for (a, x), (b, y) in zip(one, other, strict=True):
        np.testing.assert_allclose(a, b, **SIZES)
        np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-4)
    alike(state, fast_state)
    return fast


def is_graph(fast):
    text = fast.explain()
    assert "one CUDA graph" in text, text
    assert "runs eagerly" not in text, text


RULES = [
    optim.SGD(momentum=0.9, nesterov=True, weight_decay=0.1),
    optim.AdamW(),
    optim.Adam(clip=optim.ClipGlobalNorm(0.1)),
    optim.Adam(amsgrad=True, clip=optim.ClipNorm(0.1)),
    optim.NAdam(clip=optim.ClipValue(0.01)),
    optim.RAdam(),
    # of gradients near 0 a smaller eps leaves the sign alone, which is rounding's
    optim.RMSprop(centered=True, momentum=0.1, eps=1e-4),
    optim.Adadelta(),
]


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_rules(rule):
    is_graph(both(Digits, rule, nn.cross_entropy, digits))


LOSSES = [nn.MSELoss(), nn.L1Loss(), nn.HuberLoss(), nn.SmoothL1Loss()]


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_an_encoder(loss):
    is_graph(both(encoder, optim.AdamW(), loss, words))


def test_frozen_parts_and_adapters():
    def make():
        net = Digits()
        net.conv1.freeze()
        return net

    is_graph(both(make, optim.AdamW(), nn.cross_entropy, digits))

    def adapted():
        return encoder().apply_lora(4)

    both(adapted, optim.AdamW(), nn.MSELoss(), words)


def test_a_rule_in_python_runs_as_it_is():
    def make():
        return nn.Sequential(nn.Embedding(50, 32), nn.Linear(32, 32, bias=False))

    fast = both(make, optim.Muon(), nn.MSELoss(), words)
    assert "Muon steps in Python" in fast.explain()


def test_what_a_graph_cannot_have_runs_as_it_is():
    class Recurrent(nn.Module):
        def __init__(self):
            self.lstm = nn.LSTM(32, 32, batch_first=True)
            self.embedding = nn.Embedding(50, 32)

        def forward(self, x):
            return self.lstm(self.embedding(x))[0]

    fast = both(Recurrent, optim.Adam(), nn.MSELoss(), words)
    assert "runs eagerly" in fast.explain() or "one CUDA graph" in fast.explain()


def test_a_schedule_is_asked_in_each_step():
    rates = {}
    for is_compiled in (False, True):
        net = Digits(0.0).fork("cuda:autodiff")
        burnish.seed(0)
        for p in net.parameters():
            p.assign(np.full(p.shape, 0.01, np.float32))
        rule, schedule = optim.SGD(), optim.Cosine(0.1, steps=5)

        def step(x, t, net=net, rule=rule, schedule=schedule):
            loss = nn.cross_entropy(net(x), t)
            rule.step(schedule.step(), net, loss.backward())
            return loss

        fast = burnish.compile(step) if is_compiled else step
        for i in range(6):
            fast(*digits(seed=i))
        rates[is_compiled] = kept(net, rule)
        assert schedule.count == 6
    is_graph(fast)
    alike(rates[False], rates[True])


def test_parameters_are_read_assigned_and_saved_between_steps():
    net, rule = Digits().fork("cuda:autodiff"), optim.AdamW()
    fast = burnish.compile(trained(net, rule, nn.cross_entropy))
    snapshots = []
    for i in range(5):
        fast(*digits(seed=i), 1e-2)
        snapshots.append(net.linear.weight.data)
    held = [s.get() for s in snapshots]
    for one, other in itertools.pairwise(held):
        assert abs(one - other).max() > 0
    fast(*digits(seed=9), 1e-2)
    for snapshot, before in zip(snapshots, held, strict=True):
        np.testing.assert_array_equal(snapshot.get(), before)
    copied = net.valid()
    before = copied(digits()[0]).numpy()
    fast(*digits(seed=10), 1e-2)
    np.testing.assert_array_equal(copied(digits()[0]).numpy(), before)
    is_graph(fast)


def test_assigned_values_and_loaded_states_are_taken_up():
    net, rule = Digits(0.0).fork("cuda:autodiff"), optim.AdamW()
    step = trained(net, rule, nn.cross_entropy)
    fast = burnish.compile(step)
    for i in range(3):
        fast(*digits(seed=i), 1e-2)
    weights, state = net.state_dict(), rule.state_dict()
    weights = {k: array(v) for k, v in weights.items()}
    state = {k: array(v) for k, v in state.items()}
    later = [fast(*digits(seed=i), 1e-2)[0].item() for i in range(3, 6)]
    net.load_state_dict(weights)
    rule.load_state_dict(state)
    again = [fast(*digits(seed=i), 1e-2)[0].item() for i in range(3, 6)]
    np.testing.assert_allclose(later, again, rtol=1e-5)
    net.load_state_dict(weights)
    rule.load_state_dict(state)
    plainly = [step(*digits(seed=i), 1e-2)[0].item() for i in range(3, 6)]
    np.testing.assert_allclose(later, plainly, rtol=1e-5)
    is_graph(fast)


def test_batches_of_two_sizes_in_turn():
    net, rule = Digits(0.0).fork("cuda:autodiff"), optim.AdamW()
    twin, other = net.fork("cuda:autodiff"), optim.AdamW()
    fast = burnish.compile(trained(net, rule, nn.cross_entropy))
    step = trained(twin, other, nn.cross_entropy)
    for i in range(9):
        given = digits(8 if i % 3 else 5, seed=i)
        np.testing.assert_allclose(
            fast(*given, 1e-2)[0].item(), step(*given, 1e-2)[0].item(), rtol=1e-4
        )
    is_graph(fast)
    alike(kept(net, rule), kept(twin, other))


def test_a_number_that_is_computed_with_is_part_of_the_plan():
    net, rule = Digits(0.0).fork("cuda:autodiff"), optim.SGD()

    def step(x, t, share):
        loss = nn.cross_entropy(net(x), t) * share
        rule.step(1e-3, net, loss.backward())
        return loss

    fast, x = burnish.compile(step), digits()
    ones = [fast(*x, 1.0).item() for _ in range(3)]
    halves = [fast(*x, 0.5).item() for _ in range(3)]
    np.testing.assert_allclose(halves[0] * 2, ones[2], rtol=0.1)
    is_graph(fast)


def test_what_is_kept_outside_is_refused():
    net, rule, losses, count = Digits().fork("cuda:autodiff"), optim.SGD(), [], 0

    def step(x, t):
        loss = nn.cross_entropy(net(x), t)
        rule.step(1e-3, net, loss.backward())
        losses.append(loss)

    fast, given = burnish.compile(step), digits()
    for _ in range(4):
        fast(*given)
    assert "no result" in fast.explain()
    values = [loss.item() for loss in losses]
    assert len(set(values)) == 4

    def counted(x, t):
        nonlocal count
        count += 1
        loss = nn.cross_entropy(net(x), t)
        rule.step(1e-3 / count, net, loss.backward())
        return loss

    fast = burnish.compile(counted)
    for _ in range(4):
        fast(*given)
    assert "counts in a variable" in fast.explain()
    assert count == 4

    sums = optim.GradientsAccumulator()

    def summed(x, t):
        loss = nn.cross_entropy(net(x), t)
        sums.accumulate(optim.GradientsParams.from_grads(loss.backward(), net))
        return loss

    fast = burnish.compile(summed)
    for _ in range(3):
        fast(*given)
    assert "added up" in fast.explain()


@pytest.mark.parametrize("is_late", [False, True])
def test_lists_and_dicts_change_in_each_call(is_late):
    """is_late: from the second call on, which is the one that is captured."""
    net, rule, log = Digits().fork("cuda:autodiff"), optim.SGD(), []
    counts, started = {"steps": 0}, np.zeros(1, bool)  # no list: plans follow these

    def step(x, t, counts):
        loss = nn.cross_entropy(net(x), t)
        rule.step(1e-3, net, loss.backward())
        if started[0] or not is_late:
            log.append("step")
            counts["steps"] += 1
        return loss

    fast, given = burnish.compile(step), digits()
    for i in range(4):
        fast(*given, counts)
        assert len(log) == i + (not is_late)
        assert counts == {"steps": len(log)}
        started[0] = True
    assert "changes the items of" in fast.explain()


def test_a_read_of_values_runs_as_it_is():
    net, rule = Digits().fork("cuda:autodiff"), optim.SGD(momentum=0.9)
    twin, other = net.fork("cuda:autodiff"), optim.SGD(momentum=0.9)

    def made(net, rule):
        def step(x, t):
            loss = nn.cross_entropy(net(x), t)
            if loss.item() > 0:
                rule.step(1e-2, net, loss.backward())
            return loss

        return step

    fast, step = burnish.compile(made(net, rule)), made(twin, other)
    burnish.seed(3)
    ours = [fast(*digits(seed=i)).item() for i in range(5)]
    burnish.seed(3)
    theirs = [step(*digits(seed=i)).item() for i in range(5)]
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)
    assert "runs eagerly" in fast.explain()
    alike(kept(net, rule), kept(twin, other))


def test_gradients_for_outside_run_as_they_are():
    net, rule = Digits(0.0).fork("cuda:autodiff"), optim.SGD()
    fast, (x, t) = burnish.compile(lambda x: net(x)), digits()
    before = kept(net, rule)
    for _ in range(3):
        rule.step(1e-2, net, nn.cross_entropy(fast(x), t).backward())
    assert "call backward() in it" in fast.explain()
    after = kept(net, rule)
    assert any(abs(before[k] - after[k]).max() > 0 for k in before)


def test_a_step_does_not_wait_and_memory_does_not_grow():
    import cupy

    net, rule = Digits().fork("cuda:autodiff"), optim.AdamW()
    fast, given = burnish.compile(trained(net, rule, nn.cross_entropy)), digits()
    for _ in range(3):
        fast(*given, 1e-3)
    assert not waits(lambda: fast(*given, 1e-3))
    used = cupy.get_default_memory_pool().used_bytes()
    for _ in range(2000):
        fast(*given, 1e-3)
    assert cupy.get_default_memory_pool().used_bytes() <= used
    is_graph(fast)


def test_plain_steps_and_other_work_between():
    net, rule = Digits(0.0).fork("cuda:autodiff"), optim.AdamW()
    twin, other = net.fork("cuda:autodiff"), optim.AdamW()
    step, plain = (
        trained(*own, nn.cross_entropy) for own in ((net, rule), (twin, other))
    )
    fast = burnish.compile(step)
    for i in range(12):
        given = digits(seed=i)
        one = (step if i % 4 == 3 else fast)(*given, 1e-2)[0]
        np.testing.assert_allclose(one.item(), plain(*given, 1e-2)[0].item(), rtol=1e-4)
    alike(kept(net, rule), kept(twin, other))
    is_graph(fast)


def test_a_step_within_a_learner():
    from burnish.learner import Learner, Supervised

    batches = [digits(seed=i) for i in range(6)] + [digits(3, seed=9)]
    found, calls = [], {False: itertools.count(), True: itertools.count()}
    supervised = Supervised(nn.CrossEntropyLoss())

    def step(model, batch):
        if model.training:
            next(calls[is_compiled])  # no list or dict changes: that would be seen
        return supervised(model, batch)

    for is_compiled in (False, True):
        net = Digits(0.0).to("cuda")
        for p in net.parameters():
            p.assign(np.linspace(-0.1, 0.1, p.size, dtype="f4").reshape(p.shape))
        learner = Learner(
            net,
            optim.AdamW(),
            optim.Cosine(1e-2, steps=14),
            epochs=2,
            step=step,
            compile=is_compiled,
            renderer=None,
        )
        done = learner.fit(batches, batches[:2])
        found.append({k: array(v) for k, v in done.state_dict().items()})
    alike(*found)
    assert next(calls[False]) == 14
    assert next(calls[True]) == 4, "two shapes, each called and captured once"


def test_ops_without_a_module_need_no_kernels_of_a_cpu(monkeypatch):
    monkeypatch.setattr(compiled, "library", lambda: pytest.fail("it is built"))
    fast = burnish.compile(lambda x: ops.relu(x) * 2)
    x = Tensor(np.ones(3, np.float32)).to("cuda")
    assert fast(x).numpy().tolist() == [2, 2, 2]
    assert not isinstance(fast.planned(x), compiled.Unplanned)
