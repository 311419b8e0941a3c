"""L-BFGS: PyTorch's steps on functions with curved valleys, records, refusals."""

import numpy as np
import pytest

from burnish import Tensor, nn, optim
from burnish.errors import InputError, RecordError

START = np.array([-1.2, 1.0, 0.7, -0.4])
ROWS = np.random.default_rng(0).normal(size=(6, 4))


class Place(nn.Module):
    def __init__(self):
        self.x = nn.Param(START.copy())
        self.shift = nn.Param(np.array(0.5))
        self.unused = nn.Param(np.ones(2))
        self.to("cpu:autodiff")


def rosenbrock(x, shift, rows=ROWS):
    return ((1 - x[:-1]) ** 2 + 100 * (x[1:] - x[:-1] ** 2) ** 2).sum() + shift**2


def bowl(x, shift, rows=ROWS):
    return ((x - shift) ** 2 * abs(rows[0])).sum() + ((x * rows[1]).sum() - 1) ** 2


def wavy(x, shift, rows=ROWS):
    return (x.sin() + 0.1 * x**2).sum() + (shift - x[0]) ** 4


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore:Converting a tensor")  # PyTorch's own float(loss)
@pytest.mark.parametrize("search", [None, "strong_wolfe"])
@pytest.mark.parametrize(
    ("options", "steps"),
    [({}, 8), ({"max_iter": 4, "history_size": 3}, 12), ({"max_iter": 1}, 50)],
)
@pytest.mark.parametrize("function", [rosenbrock, bowl, wavy])
def test_pytorch_takes_the_same_steps(function, search, options, steps, torch):
    rate = 1.0 if search else 0.01
    ours, place = optim.LBFGS(line_search_fn=search, **options), Place()
    x = torch.nn.Parameter(torch.from_numpy(START.copy()))
    shift = torch.nn.Parameter(torch.tensor(0.5, dtype=torch.float64))
    theirs = torch.optim.LBFGS([x, shift], rate, line_search_fn=search, **options)

    def closure():
        theirs.zero_grad()
        loss = function(x, shift, torch.from_numpy(ROWS))
        loss.backward()
        return loss

    for _ in range(steps):
        mine = ours.step(rate, place, lambda: function(place.x, place.shift))
        assert mine == pytest.approx(theirs.step(closure).item(), rel=1e-6, abs=1e-12)
        np.testing.assert_allclose(place.x.numpy(), x.detach().numpy(), 1e-5, 1e-8)


def test_it_finds_the_minimum_of_a_curved_valley():
    place, optimizer = Place(), optim.LBFGS(line_search_fn="strong_wolfe")
    for _ in range(6):
        optimizer.step(1.0, place, lambda: rosenbrock(place.x[:2], place.shift))
    np.testing.assert_allclose(place.x.numpy(), [1, 1, *START[2:]], atol=1e-4)
    np.testing.assert_allclose(place.unused.numpy(), 1)


@pytest.mark.parametrize("search", [None, "strong_wolfe"])
def test_a_record_continues_exactly(search, tmp_path):
    whole, halves = Place(), Place()
    one, two = (optim.LBFGS(max_iter=3, line_search_fn=search) for _ in range(2))
    for step in range(6):
        if step == 3:
            two.save_file(tmp_path / "lbfgs.safetensors")
            two = optim.LBFGS(max_iter=3, line_search_fn=search)
            two.load_file(tmp_path / "lbfgs.safetensors")
        for optimizer, place in ((one, whole), (two, halves)):
            optimizer.step(0.1, place, lambda p=place: bowl(p.x, p.shift))
    assert whole.x.numpy().tobytes() == halves.x.numpy().tobytes()


def test_a_float32_network_with_clipped_gradients_learns():
    x = Tensor(np.linspace(-1, 1, 20, dtype=np.float32)[:, None])
    model = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1))
    model.to("cpu:autodiff")
    optimizer = optim.LBFGS(
        line_search_fn="strong_wolfe", clip=optim.ClipGlobalNorm(100.0)
    )
    losses = [
        optimizer.step(1.0, model, lambda: nn.mse_loss(model(x), x * x))
        for _ in range(4)
    ]
    assert losses[-1] < 0.1 * losses[0]
    assert model[0].weight.dtype == np.float32


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: optim.LBFGS(line_search_fn="armijo"), "expected 'strong_wolfe'"),
        (lambda: optim.LBFGS(max_iter=0), "max_iter"),
        (lambda: optim.LBFGS().step(1.0, [], lambda: 3.0), "a module .* got a list"),
        (lambda: optim.LBFGS().step(1.0, Place(), 3.0), "a function .* got a float"),
        (
            lambda: optim.LBFGS().step(1.0, Place(), lambda: 3.0),
            "the loss as a tensor, got float",
        ),
        (
            lambda: optim.LBFGS().step(1.0, Place().freeze(), lambda: 3.0),
            "Place has no trainable parameter",
        ),
    ],
)
def test_what_cannot_be_is_refused(act, message):
    with pytest.raises(InputError, match=message):
        act()


def test_a_damaged_record_is_refused():
    with pytest.raises(RecordError, match="something is missing"):
        optim.LBFGS().load_state_dict({"length": np.ones(())})
    names = ("iterations", "length", "direction", "gradient", "momentum")
    with pytest.raises(RecordError, match="expected no 'momentum'"):
        optim.LBFGS().load_state_dict({name: np.ones(()) for name in names})


def test_another_module_is_refused():
    optimizer, place = optim.LBFGS(max_iter=2), Place()
    optimizer.step(0.1, place, lambda: bowl(place.x, place.shift))
    place.shift.freeze()
    with pytest.raises(InputError, match=r"module of the last step, with 7 .* got 6"):
        optimizer.step(0.1, place, lambda: bowl(place.x, place.shift))
