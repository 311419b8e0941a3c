"""Quantization-aware training: gradients, what it gains, the model that it becomes."""

import numpy as np
import pytest

from burnish import nn, optim, seed
from burnish.errors import InputError
from burnish.nn import ParamGroup
from burnish.quantization import (
    Level,
    Quantizer,
    QuantScheme,
    convert_qat,
    prepare_qat,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(256, 8)).astype(np.float32)
Y = np.tanh(X @ RNG.normal(size=(8, 3))).astype(np.float32)
FEW = Quantizer(scheme=QuantScheme("q2f", level=Level.channel(0)))
INPUTS = Quantizer(scheme=QuantScheme("q8f", "affine"))


def network():
    seed(0)
    return nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 3))


def trained(net, steps=150):
    optimizer = optim.Adam()
    for _ in range(steps):
        loss = nn.MSELoss()(net(X), Y)
        optimizer.step(1e-2, net, loss.backward())
    return net


def loss_of(net):
    return float(((net(X).numpy() - Y) ** 2).mean())


@pytest.mark.parametrize("learned", [False, True])
@pytest.mark.parametrize("inputs", [None, INPUTS])
@pytest.mark.parametrize("mode", ["symmetric", "affine"])
def test_the_converted_model_has_the_numbers_that_were_trained(mode, inputs, learned):
    weights = Quantizer(scheme=QuantScheme("q4f", mode, Level.channel(0)))
    net = network().to("cpu:autodiff")
    prepare_qat(net, weights, inputs, learned=learned)
    before = loss_of(net.valid())
    trained(net, 40)
    assert loss_of(net.valid()) < before
    expected = net.valid()(X).numpy()
    small = convert_qat(net.valid())
    assert small(X).numpy().tobytes() == expected.tobytes()
    assert small[0].weight.scheme == weights.scheme
    names = list(small.state_dict())
    assert ("0.on_input.scales" in names) is (inputs is not None)
    again = network().load_state_dict(small.state_dict())
    assert again(X).numpy().tobytes() == expected.tobytes()


@pytest.mark.parametrize("learned", [False, True])
def test_training_with_the_rounding_beats_rounding_afterwards(learned):
    net = trained(network().to("cpu:autodiff"))
    afterwards = loss_of(net.valid().quantize_weights(FEW))
    prepare_qat(net, FEW, learned=learned)
    aware = loss_of(convert_qat(trained(net)).valid())
    assert aware < 0.7 * afterwards


def test_learned_scales_move():
    net = prepare_qat(network().to("cpu:autodiff"), FEW, learned=True)
    before = {name: array.copy() for name, array in net.state_dict().items()}
    after = trained(net, 5).state_dict()
    assert {"0.weight", "0.weight.scales", "0.bias"} <= set(after)
    assert all((after[name] != before[name]).any() for name in before)


def test_inputs_follow_while_it_trains_and_stand_still_elsewhere():
    net = prepare_qat(network().to("cpu:autodiff"), inputs=INPUTS)
    net(X)
    low = net[0].on_input.low.numpy()
    assert low == X.min()
    net(2 * X)
    np.testing.assert_allclose(net[0].on_input.low.numpy(), 1.01 * low, 1e-6)
    still = net.valid()
    still(9 * X)
    assert still[0].on_input.low.numpy() == net[0].on_input.low.numpy()
    again = prepare_qat(network(), inputs=INPUTS).load_state_dict(net.state_dict())
    assert again(X).numpy().tobytes() == still(X).numpy().tobytes()


def test_a_group_alone():
    net = prepare_qat(network(), FEW, INPUTS, ParamGroup.from_paths("2.weight"))
    assert net[0].on_input is None
    assert type(net[0].weight) is nn.Param
    assert type(net[2].weight) is not nn.Param


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: convert_qat(network()), "that prepare_qat has prepared"),
        (
            lambda: convert_qat(prepare_qat(network(), inputs=INPUTS)),
            "0: expected inputs seen in training",
        ),
        (
            lambda: prepare_qat(
                network(), inputs=Quantizer(scheme=QuantScheme(level=Level.row()))
            ),
            "one scale per tensor, got per row",
        ),
        (lambda: prepare_qat(nn.LayerNorm(3)), "found none among 0 of LayerNorm"),
        (lambda: prepare_qat(prepare_qat(network())), "part of another"),
    ],
)
def test_what_cannot_be_is_refused(act, message):
    with pytest.raises(InputError, match=message):
        act()
