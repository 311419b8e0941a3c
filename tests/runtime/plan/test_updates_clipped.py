"""Steps that clip gradients with records: their numbers, and those of PyTorch."""

import numpy as np
import pytest

import burnish
from burnish import nn, optim
from burnish.kernels import library
from tests.runtime.ops.kernels import same_for_any_threads

from .test_updates import Trained, batch, same

pytestmark = [
    pytest.mark.usefixtures("canaries"),
    pytest.mark.skipif(library() is None, reason="there is no compiler"),
]

CLIPS = {
    "value": optim.ClipValue(2e-3),
    "norm": optim.ClipNorm(1e-2),
    "global norm": optim.ClipGlobalNorm(1e-2),
    "a large limit": optim.ClipGlobalNorm(1e3),
    "sum": optim.ClipGlobalNorm(0.1, norm=1),
    "largest": optim.ClipNorm(1e-3, norm=float("inf")),
    "cubes": optim.ClipGlobalNorm(1e-2, norm=3),
}
RULES = {
    "sgd": lambda clip: optim.SGD(momentum=0.9, weight_decay=0.1, clip=clip),
    "adamw": lambda clip: optim.AdamW(clip=clip, maximize=True),
}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("clip", CLIPS)
def test_the_weights_are_those_of_plain_steps(clip, rule):
    def make():
        return RULES[rule](CLIPS[clip])

    fast, plain = Trained(make), Trained(make, planned=False)
    fast.run(4), plain.run(4)
    same(plain, fast)
    free = Trained(lambda: RULES[rule](None), planned=False)
    free.run(4)
    is_clipped = any(
        (free.weights[path] != array).any() for path, array in plain.weights.items()
    )
    assert is_clipped is (clip != "a large limit")


@pytest.mark.oracle
@pytest.mark.parametrize("clip", CLIPS)
def test_the_weights_are_pytorchs(clip):
    torch = pytest.importorskip("torch")
    by = CLIPS[clip]
    made = Trained(lambda: optim.SGD(momentum=0.9, clip=by))
    layers = torch.nn.Linear(20, 33), torch.nn.ReLU(), torch.nn.Linear(33, 5)
    peer = torch.nn.Sequential(*layers)
    names = dict(peer.named_parameters())
    with torch.no_grad():
        for path, array in made.weights.items():
            names[path].copy_(torch.tensor(array))
    rule = torch.optim.SGD(peer.parameters(), 0.05, momentum=0.9)
    for i in range(4):
        x, labels = batch(i)
        made.step(x, labels, 0.05)
        rule.zero_grad()
        found = peer(torch.tensor(x.numpy()))
        torch.nn.functional.cross_entropy(
            found, torch.tensor(labels.numpy())
        ).backward()
        groups = [[p] for p in peer.parameters()]
        if isinstance(by, optim.ClipValue):
            torch.nn.utils.clip_grad_value_(peer.parameters(), by.limit)
        else:
            if isinstance(by, optim.ClipGlobalNorm):
                groups = [list(peer.parameters())]
            for group in groups:
                torch.nn.utils.clip_grad_norm_(group, by.limit, by.norm)
        rule.step()
    assert "stepped" not in made.step.explain()
    for path, array in made.weights.items():
        wanted = names[path].detach().numpy()
        np.testing.assert_allclose(array, wanted, rtol=1e-5, atol=1e-6, err_msg=path)


@pytest.mark.parametrize(
    "rule",
    [
        lambda: optim.Adam(clip=optim.ClipGlobalNorm(1e-2)),
        lambda: optim.Adan(clip=optim.ClipNorm(1e-2)),
    ],
    ids=["a kernel of its own", "a formula"],
)
def test_the_bits_are_those_of_any_number_of_threads(rule):
    def trained():
        burnish.seed(3)
        model, chosen = nn.Linear(300, 257).to("cpu:autodiff"), rule()

        @burnish.compile
        def step(x):
            loss = (model(x) ** 2).mean()
            chosen.step(0.01, model, loss.backward())

        for i in range(3):
            rng = np.random.default_rng(i)
            step(burnish.Tensor(rng.normal(size=(8, 300)).astype(np.float32)))
        assert "nothing eagerly" in step.explain()
        return [np.array(p.data) for p in model.parameters()]

    same_for_any_threads(trained)


@pytest.mark.parametrize("fault", [np.nan, np.inf])
def test_a_gradient_that_is_no_number(fault):
    def weights(planned):
        made = Trained(lambda: optim.SGD(clip=optim.ClipGlobalNorm(1.0)), planned)
        x, labels = batch(0)
        x = np.array(x.numpy())
        x[3, 4] = fault
        with np.errstate(all="ignore"):
            made.step(burnish.Tensor(x), labels, 0.05)
        return made.weights

    found, wanted = weights(True), weights(False)
    for path, array in wanted.items():
        np.testing.assert_array_equal(np.isnan(found[path]), np.isnan(array), path)
        assert np.isnan(array).any()
