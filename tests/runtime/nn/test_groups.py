"""ParamGroup: what each kind holds, sets of them, freezing, records by group."""

import numpy as np
import pytest

from burnish import nn
from burnish.errors import InputError, RecordError
from burnish.nn import ParamGroup


class Net(nn.Module):
    """A head that shares its weight with the embedding."""

    def __init__(self):
        self.embed = nn.Embedding(5, 4)
        self.blocks = [nn.Linear(4, 4) for _ in range(2)]
        self.norm = nn.BatchNorm1d(4)
        self.head = nn.Linear(4, 5)
        self.head.weight = self.embed.weight

    def forward(self, ids):
        x = self.embed(ids)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


EVERY = [
    "embed.weight",
    "blocks.0.weight",
    "blocks.0.bias",
    "blocks.1.weight",
    "blocks.1.bias",
    "norm.weight",
    "norm.bias",
    "head.bias",
]
NET = Net()
all_, paths, regex = ParamGroup.all(), ParamGroup.from_paths, ParamGroup.from_regex
biases = regex(r"bias$")


@pytest.mark.parametrize(
    ("group", "expected"),
    [
        (all_, EVERY),
        (paths("norm.bias", "blocks.1"), [*EVERY[3:5], "norm.bias"]),
        (paths("blocks"), EVERY[1:5]),
        (paths("head"), ["embed.weight", "head.bias"]),
        (all_ - paths("head.weight"), EVERY[1:]),
        (regex(r"blocks\.\d\.w", "^norm"), [*EVERY[1:4:2], *EVERY[5:7]]),
        (
            ParamGroup.from_predicate(lambda _, p: p.ndim == 1),
            EVERY[2::2][:2] + EVERY[5:],
        ),
        (
            ParamGroup.from_predicate(
                lambda path, _: path == "head.bias", lambda _, p: p.shape == (5, 4)
            ),
            ["embed.weight", "head.bias"],
        ),
        (ParamGroup.from_params(NET, NET.norm.bias, NET.head.weight), EVERY[:7:6]),
        (paths("norm").fuse(paths("blocks.0")), [*EVERY[1:3], *EVERY[5:7]]),
        (biases | paths("norm"), [*EVERY[2:5:2], *EVERY[5:]]),
        (biases.exclude(paths("norm", "head")), EVERY[2:5:2]),
        (biases - biases, []),
        (ParamGroup.adapters(), []),
    ],
    ids=repr,
)
def test_what_a_group_holds(group, expected):
    assert group.paths(NET) == expected
    assert group.paths(NET.train()) == expected


def test_freezing_a_group_leaves_the_rest():
    net = Net().to("cpu:autodiff")
    net.freeze().unfreeze(biases)
    gradients = net(np.array([1, 2, 3])).sum().backward()
    assert len(gradients) == 4
    assert net.head.bias.grad(gradients) is not None
    assert net.head.weight.grad(gradients) is None
    assert net.unfreeze().freeze(paths("blocks")).norm.weight.trainable
    assert not net.blocks[1].weight.trainable


def test_a_group_is_saved_and_loaded_alone(tmp_path):
    one, two = Net(), Net()
    group, before = paths("blocks"), two.head.bias.numpy()
    one.save_file(tmp_path / "blocks.safetensors", group=group)
    two.load_file(tmp_path / "blocks.safetensors", group=group)
    assert list(one.state_dict(group)) == EVERY[1:5]
    assert (two.blocks[1].weight.numpy() == one.blocks[1].weight.numpy()).all()
    assert (two.head.bias.numpy() == before).all()
    with pytest.raises(RecordError, match=r"missing \['norm.weight', 'norm.bias'\]"):
        two.load_file(tmp_path / "blocks.safetensors", group=group | paths("norm"))
    with pytest.raises(RecordError, match=r"unexpected \['blocks.1.bias'"):
        two.load_file(tmp_path / "blocks.safetensors", group=paths("blocks.0"))
    two.load_state_dict(one.state_dict(paths("head")), group=paths("head"))
    assert (two.embed.weight.numpy() == one.embed.weight.numpy()).all()


def test_what_is_not_there_is_named():
    with pytest.raises(InputError, match=r"at or in 'block.0'; is 'blocks.\d' meant"):
        NET.freeze(paths("block.0"))
    with pytest.raises(InputError, match="expected parameters of Net"):
        ParamGroup.from_params(NET, Net().head.bias)


@pytest.mark.parametrize("given", [True, False, "blocks.0"])
def test_freezing_takes_a_group_and_nothing_else(given):
    """`freeze(False)` in other libraries means the opposite of `freeze()`."""
    with pytest.raises(InputError, match=r"^freeze: expected a ParamGroup or nothing"):
        NET.freeze(given)
    with pytest.raises(InputError, match=r"^unfreeze: expected a ParamGroup"):
        NET.unfreeze(given)
