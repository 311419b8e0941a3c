"""Optimizers: records, closed forms, what is refused."""

import numpy as np
import pytest

from burnish import nn, optim
from burnish.errors import InputError, RecordError
from burnish.optim import GradientsAccumulator, GradientsParams

from .bag import CASES, OTHERS, Bag, gradients, made

EVERY = CASES | OTHERS
every = pytest.mark.parametrize("case", EVERY.values(), ids=EVERY)


@every
def test_state_goes_through_a_file_and_back(case, tmp_path):
    whole, halves = Bag(), Bag()
    one, two = made(case), made(case)
    for step in range(10):
        if step == 5:
            two.save_file(tmp_path / "optimizer.safetensors")
            two = made(case).load_file(tmp_path / "optimizer.safetensors")
        one.step(0.1, whole, GradientsParams(gradients(step)))
        two.step(0.1, halves, GradientsParams(gradients(step)))
    for name, array in whole.state_dict().items():
        assert array.tobytes() == halves.state_dict()[name].tobytes()


@every
def test_copies_and_saved_states_do_not_change_with_later_steps(case):
    optimizer, bag = made(case), Bag()
    optimizer.step(0.1, bag, GradientsParams(gradients(0)))
    valid, before = bag.valid(), bag.a.numpy().copy()
    state = optimizer.state_dict()
    kept = {name: array.copy() for name, array in state.items()}
    found = gradients(1)
    optimizer.step(0.1, bag, GradientsParams(found))
    assert (valid.a.numpy() == before).all()
    assert (bag.a.numpy() != before).any()
    assert all((state[name] == kept[name]).all() for name in kept)
    assert all((found[name] == g).all() for name, g in gradients(1).items())


@every
def test_half_precision_stays_half(case):
    optimizer, bag = made(case), Bag("float16")
    for step in range(3):
        optimizer.step(0.01, bag, GradientsParams(gradients(step, "float32")))
    assert all(param.dtype == np.float16 for param in bag.parameters())
    assert all(np.isfinite(array).all() for array in bag.state_dict().values())


def steps(optimizer, n, rate=0.1, start=1.0, gradient=2.0):
    """One number's way under the same gradient again and again."""
    bag = nn.Module()
    bag.x = nn.Param(np.array([start]))
    way = []
    for _ in range(n):
        optimizer.step(rate, bag, GradientsParams({"x": np.array([gradient])}))
        way.append(bag.x.item())
    return way


def test_sgd_walks_straight():
    np.testing.assert_allclose(steps(optim.SGD(), 3), [0.8, 0.6, 0.4])


def test_momentum_adds_up_a_geometric_series():
    velocity = [2, 2 * 1.5, 2 * 1.75]
    expected = 1 - 0.1 * np.cumsum(velocity)
    np.testing.assert_allclose(steps(optim.SGD(momentum=0.5), 3), expected)


def test_adam_under_a_constant_gradient_moves_by_the_rate():
    np.testing.assert_allclose(steps(optim.Adam(eps=0), 4), [0.9, 0.8, 0.7, 0.6])
    np.testing.assert_allclose(steps(optim.AdamW(weight_decay=0), 2), [0.9, 0.8], 1e-7)


def test_adamw_decays_geometrically_without_a_gradient():
    way = steps(optim.AdamW(weight_decay=0.5), 3, gradient=0.0)
    np.testing.assert_allclose(way, 0.95 ** np.arange(1, 4))


def test_rmsprop_starts_at_ten_times_the_rate():
    np.testing.assert_allclose(steps(optim.RMSprop(eps=0), 1, rate=0.05), [0.5])


def test_adagrad_slows_down_with_the_square_root():
    expected = 1 - 0.1 * np.cumsum(1 / np.sqrt([1, 2, 3]))
    np.testing.assert_allclose(steps(optim.Adagrad(eps=0), 3), expected)


def test_a_loss_goes_down_with_gradients_from_backward():
    model = nn.Linear(3, 2).to("cpu:autodiff")
    x, optimizer, losses = np.eye(3, dtype=np.float32), optim.Adam(), []
    for _ in range(200):
        y = model(x)
        optimizer.step(0.05, model, y.backward(2 * y.detach()))
        losses.append(float((y.numpy() ** 2).sum()))
    assert losses[-1] < 1e-4 * losses[0]


def test_parameters_without_a_gradient_stay():
    model = nn.Module()
    model.used, model.other = nn.Linear(2, 2), nn.Linear(2, 2)
    model.to("cpu:autodiff").used.bias.freeze()
    before = model.other.weight.numpy(), model.used.bias.numpy()
    y = model.used(np.ones((1, 2), np.float32))
    found = GradientsParams.from_grads(y.backward(np.ones((1, 2))), model)
    assert list(found) == ["used.weight"]
    optimizer = optim.SGD(momentum=0.9, weight_decay=0.1)
    optimizer.step(0.1, model, found)
    assert (model.other.weight.numpy() == before[0]).all()
    assert (model.used.bias.numpy() == before[1]).all()
    assert set(optimizer.state_dict()) == {"used.weight.velocity", "used.weight.step"}


def test_several_optimizers_share_a_model():
    model = nn.Module()
    model.body, model.head = nn.Linear(2, 2), nn.Linear(2, 2, bias=False)
    model.to("cpu:autodiff")
    gradients = model.head(model.body(np.ones(2, np.float32))).backward(np.ones(2))
    body, head = optim.Adam(), optim.SGD()
    body.step(1e-3, model.body, gradients)
    head.step(1e-1, model.head, gradients)
    assert set(body.state_dict()) == {
        f"{name}.{key}"
        for name in ("weight", "bias")
        for key in ("mean", "square", "step")
    }


def test_gradients_of_another_module_are_refused():
    with pytest.raises(InputError, match=r"of parameters of Bag, got one for 'head'"):
        optim.SGD().step(0.1, Bag(), GradientsParams({"head": np.ones(3)}))


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (
            lambda m, g: optim.Adam().step(m, 0.1, g),
            "a module after the learning rate, got a float",
        ),
        (
            lambda m, g: optim.SGD().step(0.1, nn.Linear(2, 1), g),
            "SGD.step: expected a module on an autodiff .* Linear on 'cpu'; copies",
        ),
        (
            lambda m, g: optim.SGD().step(optim.Constant(0.1), m, g),
            r"learning rate, got Constant\(.*; a schedule gives one with step\(\)",
        ),
        (lambda m, g: optim.SGD().step(float("nan"), m, g), "learning rate, got nan"),
        (lambda m, g: optim.SGD().step(-0.1, m, g), "learning rate, got -0.1"),
    ],
)
def test_a_mistaken_step_changes_nothing(step, message):
    model = nn.Linear(2, 1).to("cpu:autodiff")
    before = model.weight.numpy().copy()
    with pytest.raises(InputError, match=message):
        step(model, model(np.ones(2, np.float32)).backward())
    assert (model.weight.numpy() == before).all()


def test_a_state_of_another_shape_is_refused():
    optimizer = optim.Adam()
    for size, report in (
        (2, None),
        (3, r"of shape \(1, 3\) for 'weight', got \(1, 2\)"),
    ):
        model = nn.Linear(size, 1).to("cpu:autodiff")
        gradients = model(np.ones(size, np.float32)).backward()
        if report is None:
            optimizer.step(0.1, model, gradients)
        else:
            with pytest.raises(InputError, match=report):
                optimizer.step(0.1, model, gradients)


def test_the_accumulator_adds_up_and_starts_again():
    accumulator = GradientsAccumulator()
    for step in range(3):
        accumulator.accumulate(GradientsParams(gradients(step)))
    accumulator.accumulate(GradientsParams({"a": np.ones((4, 3))}))
    found = accumulator.grads()
    np.testing.assert_allclose(found["b"], sum(gradients(i)["b"] for i in range(2)))
    np.testing.assert_allclose(found["a"], sum(gradients(i)["a"] for i in range(3)) + 1)
    assert len(accumulator.grads()) == 0


def test_a_damaged_state_is_named():
    with pytest.raises(RecordError, match=r"expected 'parameter.key', got 'weight'"):
        optim.SGD().load_state_dict({"weight": np.ones(1)})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: optim.SGD(momentum=-1), r"SGD momentum: expected .* got -1"),
        (
            lambda: optim.SGD(momentum=[1, 2]),
            r"SGD momentum: expected a number, got \[1, 2\]",
        ),
        (
            lambda: optim.SGD(nesterov=True),
            r"nesterov: expected a momentum .* momentum=0",
        ),
        (
            lambda: optim.Adam(betas=(0.9, 1)),
            r"Adam betas: expected a value in \[0, 1\), got 1",
        ),
        (lambda: optim.AdamW(eps=-1), r"AdamW eps"),
        (lambda: optim.RMSprop(alpha=2), r"RMSprop alpha"),
        (lambda: optim.Adagrad(lr_decay=-1), r"Adagrad lr_decay"),
    ],
)
def test_impossible_options_are_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_an_optimizer_prints_its_options():
    assert repr(optim.SGD(momentum=0.9)) == (
        "SGD(clip=None, maximize=False, momentum=0.9, dampening=0.0, "
        "weight_decay=0.0, nesterov=False)"
    )


def test_users_write_a_rule_in_one_method():
    class Sign(optim.Optimizer):
        def update(self, weight, grad, state, rate):
            return weight - rate * np.sign(grad)

    np.testing.assert_allclose(steps(Sign(), 2), [0.9, 0.8])
    with pytest.raises(TypeError, match="Optimizer has no update rule"):
        steps(optim.Optimizer(), 1)
