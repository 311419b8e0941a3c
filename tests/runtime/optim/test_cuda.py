"""Training on a GPU goes as it does on the CPU, where there is one."""

import numpy as np
import pytest

from burnish import Device, Tensor, nn, optim
from burnish.checkpointing import checkpoint
from burnish.errors import DeviceError
from burnish.nn import ParamGroup
from burnish.optim import GradientsParams

from .bag import CASES, MATRICES, MUON, OTHERS, Bag, gradients, made

ROWS = {name: (case, None) for name, case in (CASES | OTHERS).items()}
ROWS |= {name: (case, MATRICES) for name, case in MUON.items()}


@pytest.fixture(scope="module")
def cuda():
    """The first GPU, or a skipped test."""
    try:
        Device("cuda").put(np.zeros(1))
    except DeviceError as error:
        pytest.skip(str(error))
    return "cuda"


@pytest.mark.parametrize(("case", "shapes"), ROWS.values(), ids=ROWS)
def test_an_optimizer_steps_alike_and_its_state_moves(case, shapes, cuda, tmp_path):
    near, far = Bag(shapes=shapes), Bag(shapes=shapes).to(cuda)
    one, two = made(case), made(case)
    for step in range(6):
        if step == 3:
            two.save_file(tmp_path / "state.safetensors")
            state = two.state_dict()
            two = made(case).load_state_dict(state)
        found = GradientsParams(gradients(step, shapes=shapes))
        one.step(0.01, near, found)
        two.step(0.01, far, found.to(cuda))
    for path, array in near.state_dict().items():
        got = getattr(far, path).numpy()
        np.testing.assert_allclose(got, array, 1e-9, 1e-11)


@pytest.mark.parametrize(
    "how", ["plain", "lora", "qlora", "balanced", "again", "lbfgs"]
)
def test_a_network_trains_alike(how, cuda):
    start = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 3)).state_dict()
    x = np.random.default_rng(0).normal(size=(6, 4)).astype(np.float32)
    labels = np.array([0, 1, 2, 0, 1, 2])
    ends = []
    for place in ("cpu", cuda):
        net = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 3))
        net.load_state_dict(start)
        if how in ("lora", "qlora"):
            getattr(net, f"apply_{how}")(2)
            rng = np.random.default_rng(1)
            for param in ParamGroup.adapters().params(net).values():
                param.assign(rng.normal(size=param.shape), param.dtype)
        tail = ":balanced" if how == "balanced" else ""
        net.to(f"{place}:autodiff{tail}")
        inputs = Tensor(x, device=net.device)
        targets = Tensor(labels, device=net.device)

        def loss(net=net, inputs=inputs, targets=targets):
            y = checkpoint(net, inputs) if how == "again" else net(inputs)
            return nn.cross_entropy(y, targets)

        if how == "lbfgs":
            optimizer = optim.LBFGS(max_iter=3, line_search_fn="strong_wolfe")
            for _ in range(2):
                optimizer.step(0.1, net, loss)
        else:
            optimizer = optim.AdamW(clip=optim.ClipGlobalNorm(1.0))
            for _ in range(5):
                optimizer.step(0.01, net, loss().backward())
        ends.append(net.valid().to("cpu")(x).numpy())
    # a line search magnifies how float32 rounds
    rtol, atol = (2e-2, 2e-2) if how == "lbfgs" else (1e-3, 1e-4)
    np.testing.assert_allclose(ends[0], ends[1], rtol, atol)
