"""Adapters: LoRA beside PyTorch, what trains, records, merging, QLoRA, users' own."""

import copy
import pickle

import numpy as np
import pytest

from burnish import Tensor, nn, ops, optim, seed
from burnish.autodiff import no_grad
from burnish.errors import InputError, RecordError
from burnish.models.mnist.mnist import Model as Mnist
from burnish.nn import Param, ParamGroup

ADAPTERS = ParamGroup.adapters()


class Net(nn.Module):
    """Every kind of weight: a table, a bare matrix, a convolution, one in a list."""

    def __init__(self, dtype="float64"):
        rng = np.random.default_rng(0)
        self.embed = nn.Embedding(7, 4, dtype=dtype)
        self.mix = Param(rng.normal(size=(4, 6)).astype(dtype))
        self.conv = nn.Conv1d(6, 5, 3, padding=1, dtype=dtype)
        self.rows = [Param(rng.normal(size=(5, 5)).astype(dtype))]
        self.head = nn.Linear(5, 3, dtype=dtype)
        for param in self.parameters():
            param.assign(rng.normal(size=param.shape), param.dtype)

    def forward(self, ids):
        x = self.conv((self.embed(ids) @ self.mix).mT).mT
        return self.head(ops.tanh(x @ self.rows[0]).mean(axis=1))


IDS = np.random.default_rng(1).integers(0, 7, (8, 5))
LABELS = np.random.default_rng(2).integers(0, 3, 8)
MATRICES = ["mix", "rows.0", "embed.weight", "conv.weight", "head.weight"]


def adapted(**options):
    return Net().apply_lora(2, alpha=6.0, **options).to("cpu:autodiff")


def stirred(net, seed=5):
    """Adapters that are no longer zero."""
    rng = np.random.default_rng(seed)
    for path, param in ADAPTERS.params(net).items():
        param.assign(0.1 * rng.normal(size=param.shape), param.dtype)
        assert path.rpartition(".")[2] in ("lora_A", "lora_B")
    return net


def trained(net, steps=20):
    optimizer, losses = optim.AdamW(), []
    for _ in range(steps):
        loss = nn.cross_entropy(net(IDS), LABELS)
        optimizer.step(0.05, net, loss.backward())
        losses.append(loss.item())
    return losses


@pytest.mark.oracle
def test_twenty_steps_beside_pytorch(torch):
    seed(0)  # Adam divides by first gradients: some draws have one that is almost 0
    net = adapted()
    start = {path: torch.from_numpy(a.copy()) for path, a in net.state_dict().items()}
    thin = {path: torch.nn.Parameter(start[path]) for path in ADAPTERS.paths(net)}

    def value(path):
        change = thin[f"{path}.lora_B"] @ thin[f"{path}.lora_A"]
        return start[path] + 6.0 / 2 * change.reshape(start[path].shape)

    optimizer, ids = torch.optim.AdamW(thin.values(), 0.05), torch.from_numpy(IDS)
    for loss in trained(net):
        x = torch.nn.functional.embedding(ids, value("embed.weight")) @ value("mix")
        x = torch.nn.functional.conv1d(
            x.mT, value("conv.weight"), start["conv.bias"], padding=1
        )
        x = torch.tanh(x.mT @ value("rows.0")).mean(1)
        y = torch.nn.functional.linear(x, value("head.weight"), start["head.bias"])
        theirs = torch.nn.functional.cross_entropy(y, torch.from_numpy(LABELS))
        assert loss == pytest.approx(theirs.item(), rel=1e-9)
        optimizer.zero_grad()
        theirs.backward()
        optimizer.step()
    for path, param in ADAPTERS.params(net).items():
        np.testing.assert_allclose(param.numpy(), thin[path].detach(), 1e-7, 1e-9)


def test_nothing_changes_at_first_and_only_adapters_train():
    plain, net = Net(), adapted()
    np.testing.assert_allclose(net(IDS).numpy(), plain(IDS).numpy(), 1e-12)
    losses = trained(net)
    assert losses[-1] < 0.5 * losses[0]
    after = net.state_dict()
    for path, array in plain.state_dict().items():
        assert (after[path] == array).all()
    assert [p for p in after if "lora" in p] == [
        f"{path}.{name}" for path in MATRICES for name in ("lora_A", "lora_B")
    ]
    assert net.mix.trainable
    assert (net.mix.base.numpy() == plain.mix.numpy()).all()
    assert (net.mix.numpy() != plain.mix.numpy()).any()


def test_a_group_gets_adapters_and_others_may_train_too():
    net = Net().to("cpu:autodiff")
    net.apply_lora(1, group=ParamGroup.from_paths("head", "mix"))
    assert ADAPTERS.paths(net) == [
        "mix.lora_A", "mix.lora_B", "head.weight.lora_A", "head.weight.lora_B",
    ]  # fmt: skip
    net.unfreeze(ParamGroup.from_paths("head.bias"))
    gradients = nn.cross_entropy(net(IDS), LABELS).backward()
    found = optim.GradientsParams.from_grads(gradients, net)
    assert set(found) == {*ADAPTERS.paths(net), "head.bias"}
    net.apply_lora(2, group=ParamGroup.from_paths("conv"))
    assert net.head.weight.trainable
    assert net.conv.weight.trainable


def test_a_shared_weight_has_one_adapter():
    class Tied(nn.Module):
        def __init__(self):
            self.embed = nn.Embedding(7, 4)
            self.head = nn.Linear(4, 7, bias=False)
            self.head.weight = self.embed.weight

        def forward(self, ids):
            return self.head(self.embed(ids))

    net = Tied().apply_lora(2).train()
    assert net.head.weight is net.embed.weight
    assert len(ADAPTERS.paths(net)) == 2
    gradients = net(IDS).sum().backward()
    assert len(gradients) == 2
    assert net.remove_adapters().head.weight is net.embed.weight


def test_adapters_are_saved_and_loaded_alone(tmp_path):
    one, file = stirred(adapted()), tmp_path / "adapters.safetensors"
    one.save_file(file, group=ADAPTERS)
    two = Net().apply_lora(2, alpha=6.0).load_file(file, group=ADAPTERS)
    assert two(IDS).numpy().tobytes() == one.valid()(IDS).numpy().tobytes()
    base = ParamGroup.all() - ADAPTERS
    Net().load_state_dict(one.state_dict(base))
    two.load_state_dict(Net().state_dict(), group=base)
    with pytest.raises(RecordError, match=r"missing \['mix.lora_A'"):
        two.load_state_dict(Net().state_dict())
    again = Net().apply_lora(2, alpha=6.0).load_state_dict(one.state_dict())
    assert again(IDS).numpy().tobytes() == two(IDS).numpy().tobytes()


@pytest.mark.parametrize("shape", [(), (6,), (3, 4), (2, 3, 6)])
def test_inputs_that_do_not_fit_are_named_as_without_adapters(shape):
    said = []
    for layer in (nn.Linear(5, 7), nn.Linear(5, 7).apply_lora(2)):
        with pytest.raises(InputError) as raised:
            layer.to("cpu:autodiff")(Tensor(np.ones(shape, np.float32)))
        said.append(str(raised.value))
    assert said[0] == said[1]


def test_merging_is_undone_exactly():
    """Without gradients, that is: with them a product goes through the adapters."""

    def made(net):
        with no_grad():
            return net(IDS).numpy()

    net = stirred(adapted())
    before = made(net)
    np.testing.assert_allclose(net(IDS).numpy(), before, rtol=1e-4, atol=1e-5)
    net.merge_adapters()
    assert net(IDS).numpy().tobytes() == before.tobytes()
    assert not net(IDS).requires_grad
    stirred(net, seed=6)
    assert net(IDS).numpy().tobytes() == before.tobytes()
    assert (made(net.unmerge_adapters()) != before).any()
    assert made(stirred(net)).tobytes() == before.tobytes()
    assert net(IDS).requires_grad


@pytest.mark.parametrize("merge", [True, False])
def test_taking_them_away_leaves_plain_parameters(merge):
    net, plain = stirred(adapted()), Net()
    expected = (net.valid() if merge else plain)(IDS).numpy()
    net.remove_adapters(merge)
    assert list(net.state_dict()) == list(plain.state_dict())
    assert type(net.rows[0]) is Param
    assert net.rows[0].trainable
    assert net(IDS).numpy().tobytes() == expected.tobytes()


@pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
def test_copies_have_adapters_of_their_own(copied):
    net = stirred(adapted())
    before = net(IDS).numpy()
    for other in (net.fork("cpu:autodiff"), copied(net), net.valid().train()):
        assert other(IDS).numpy().tobytes() == before.tobytes()
        trained(other, 2)
        assert (other(IDS).numpy() != before).any()
    assert net(IDS).numpy().tobytes() == before.tobytes()


def test_a_recurrent_layer_computes_its_weight_once_a_pass():
    net = nn.Sequential(nn.LSTM(3, 4)).apply_lora(2).train()
    y, _ = net[0](np.ones((6, 2, 3), np.float32))
    assert len(y.sum().backward()) == 4


def test_generated_source_is_adapted_as_it_is():
    model = Mnist.from_file()
    x = np.random.default_rng(0).random((4, 28, 28), np.float32)
    before, kind = dict(model.named_parameters()), type(model)
    tuned = model.apply_lora(4, alpha=8).train()
    assert type(tuned) is kind
    losses, optimizer = [], optim.Adam()
    for _ in range(5):
        loss = nn.cross_entropy(tuned(x), [1, 2, 3, 4])
        optimizer.step(1e-2, tuned, loss.backward())
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    for path, param in tuned.remove_adapters(merge=False).named_parameters():
        assert param.numpy().tobytes() == before[path].numpy().tobytes()


def test_halves_have_adapters_of_full_precision():
    net = nn.Linear(4, 3, dtype="float16").apply_lora(2)
    assert net.weight.dtype == np.float16
    assert {p.dtype for p in ADAPTERS.params(net).values()} == {np.dtype("float32")}
    assert net(np.ones((2, 4), np.float16)).dtype == np.float16
    own = nn.Linear(4, 3).apply_lora(2, dtype="float64")
    assert own(np.ones((2, 4), np.float32)).dtype == np.float32


@pytest.mark.parametrize(("bits", "error"), [(8, 0.01), (4, 0.15)])
def test_qlora_holds_small_integers_and_trains(bits, error, tmp_path):
    plain, net = Net("float32"), Net("float32")
    net.apply_qlora(2, alpha=4.0, bits=bits, block_size=16).to("cpu:autodiff")
    weight, codes = plain.head.weight.numpy(), net.state_dict()["head.weight.codes"]
    assert codes.dtype == (np.int8 if bits == 8 else np.uint8)
    assert codes.size <= bits / 8 * (weight.size + 16)
    np.testing.assert_allclose(
        net.head.weight.base.numpy(), weight, atol=error * abs(weight).max()
    )
    assert "head.weight" not in net.state_dict()
    losses = trained(net)
    assert losses[-1] < 0.5 * losses[0]
    net.save_file(tmp_path / "all.safetensors")
    again = Net("float32").apply_qlora(2, alpha=4.0, bits=bits, block_size=16)
    again.load_file(tmp_path / "all.safetensors")
    assert again(IDS).numpy().tobytes() == net.valid()(IDS).numpy().tobytes()
    assert type(net.remove_adapters().conv.weight) is Param


class WeightNorm(nn.Reparameterizer):
    def fits(self, path, param):
        return path.endswith("weight")

    def split(self, param):
        size = np.sqrt((param.data**2).sum(axis=1, keepdims=True))
        return {"g": Param(size), "v": Param(param.data)}

    def value(self, g, v):
        return g * v / (v * v).sum(axis=1, keepdims=True).sqrt()


@pytest.mark.oracle
def test_users_write_a_reparameterization(torch):
    ours = nn.Linear(4, 3, dtype="float64").to("cpu:autodiff")
    theirs = torch.nn.Linear(4, 3, dtype=torch.float64)
    theirs.load_state_dict({k: torch.tensor(v) for k, v in ours.state_dict().items()})
    torch.nn.utils.parametrizations.weight_norm(theirs)
    ours.apply_reparameterization(WeightNorm())
    assert [p for p, _ in ours.named_parameters()] == ["weight.g", "weight.v", "bias"]
    x, optimizer = np.random.default_rng(0).normal(size=(6, 4)), optim.SGD()
    other = torch.optim.SGD(theirs.parameters(), 0.1)
    for _ in range(10):
        loss = (ours(x) ** 2).sum()
        optimizer.step(0.1, ours, loss.backward())
        other.zero_grad()
        (theirs(torch.from_numpy(x)) ** 2).sum().backward()
        other.step()
    np.testing.assert_allclose(ours.weight.numpy(), theirs.weight.detach().numpy())


def test_second_derivatives_go_through():
    net = stirred(adapted())
    loss = (net(IDS) ** 2).sum()
    gradients = loss.backward(create_graph=True)
    a = dict(net.named_parameters())["head.weight.lora_A"]
    second = (a.grad(gradients) ** 2).sum().backward()
    assert a.grad(second).shape == a.shape


class Wrong(nn.Reparameterizer):
    def split(self, param):
        return {"base": param}

    def value(self, base):
        return Tensor.ones(2)


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: Net().apply_lora(0), "rank: expected 1 or more, got 0"),
        (
            lambda: adapted().apply_lora(2),
            "'mix' is part of another reparameterization",
        ),
        (
            lambda: Net().apply_lora(2, group=ParamGroup.from_regex("bias$")),
            "found none among 2 of Net",
        ),
        (lambda: Net().apply_qlora(2, bits=3), "bits: expected 8, 4 or 2, got 3"),
        (lambda: Net().apply_qlora(2, block_size=0), "sizes of 1 or more, got"),
        (lambda: adapted().mix.assign(np.ones((4, 6))), "computed by Lora"),
        (
            lambda: nn.Linear(3, 2).apply_reparameterization(Wrong())(np.ones((1, 3))),
            r"Wrong: expected a value of shape \(2, 3\), got \(2,\)",
        ),
    ],
)
def test_what_cannot_be_is_refused(act, message):
    with pytest.raises(InputError, match=message):
        act()
