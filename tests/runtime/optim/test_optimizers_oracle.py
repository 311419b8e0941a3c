"""Optimizers beside PyTorch's, step by step, and beside formulas in plain PyTorch."""

import numpy as np
import pytest

from burnish.optim import GradientsParams

from .bag import CASES, MATRICES, MUON, OTHERS, Bag, gradients, made

pytestmark = pytest.mark.oracle
STEPS = 50
precisions = pytest.mark.parametrize(
    ("dtype", "close"), [("float64", 1e-11), ("float32", 5e-5)]
)


def together(case, dtype, theirs, bag, shapes=None):
    """Both sides walk; what each step makes of the parameters, pair by pair.

    theirs: takes a dict of gradients (torch) and changes the parameters it knows.
    """
    ours = made(case)
    for step in range(STEPS):
        found = gradients(step, dtype, shapes)
        ours.step(0.01, bag, GradientsParams(found))
        params = theirs(found)
        for path, param in params.items():
            assert getattr(bag, path).dtype == dtype
            yield getattr(bag, path).numpy(), param.detach().numpy()


@precisions
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_pytorch_takes_the_same_steps(case, dtype, close, torch):
    bag = Bag(dtype)
    params = {
        name: torch.nn.Parameter(torch.from_numpy(array.copy()))
        for name, array in bag.state_dict().items()
    }
    name, options = case
    optimizer = getattr(torch.optim, name)(params.values(), lr=0.01, **options)

    def theirs(found):
        for path, param in params.items():
            param.grad = torch.from_numpy(found[path]) if path in found else None
        optimizer.step()
        return params

    if name == "NAdam":  # PyTorch multiplies its momenta in float32
        close = max(close, 1e-7)
    for ours, other in together(case, dtype, theirs, bag):
        np.testing.assert_allclose(ours, other, close, close)


def cautious(torch, options):
    """https://arxiv.org/abs/2510.12402, algorithm 1, on top of Adam."""
    decay, betas, eps = options["weight_decay"], (0.9, 0.999), 1e-8

    def rule(x, g, state, rate):
        state["n"] = n = state.get("n", 0) + 1
        state["m"] = betas[0] * state.get("m", 0) + (1 - betas[0]) * g
        state["v"] = betas[1] * state.get("v", 0) + (1 - betas[1]) * g * g
        root = (state["v"] / (1 - betas[1] ** n)).sqrt() + eps
        u = state["m"] / (1 - betas[0] ** n) / root
        return x - rate * (u + decay * (u * x >= 0).to(x.dtype) * x)

    return rule


def adan(torch, options):
    """https://arxiv.org/abs/2208.06677, algorithm 1, with unbiased averages."""
    b1, b2, b3 = options.get("betas", (0.98, 0.92, 0.99))
    eps, decay = options.get("eps", 1e-8), options.get("weight_decay", 0.0)

    def rule(x, g, state, rate):
        state["n"] = n = state.get("n", 0) + 1
        d = g - state.get("before", g)
        state["before"] = g
        state["m"] = b1 * state.get("m", 0) + (1 - b1) * g
        state["v"] = b2 * state.get("v", 0) + (1 - b2) * d
        state["s"] = b3 * state.get("s", 0) + (1 - b3) * (g + b2 * d) ** 2
        root = (state["s"] / (1 - b3**n)).sqrt() + eps
        ahead = state["m"] / (1 - b1**n) + b2 * state["v"] / (1 - b2**n)
        step = rate * ahead / root
        if options.get("no_prox"):
            return x * (1 - rate * decay) - step
        return (x - step) / (1 + rate * decay)

    return rule


def muon(torch, options):
    """PyTorch's Muon, but in the parameters' own precision instead of bfloat16."""
    momentum, steps = options.get("momentum", 0.95), options.get("ns_steps", 5)
    a, b, c = options.get("ns_coefficients", (3.4445, -4.775, 2.0315))

    def rule(x, g, state, rate):
        state["m"] = torch.lerp(state.get("m", torch.zeros_like(g)), g, 1 - momentum)
        ahead = torch.lerp(g, state["m"], momentum)
        u = ahead if options.get("nesterov", True) else state["m"]
        tall = u.shape[0] > u.shape[1]
        u = u.T if tall else u
        u = u / u.norm().clamp(min=1e-7)
        for _ in range(steps):
            gram = u @ u.T
            u = a * u + (b * gram + c * gram @ gram) @ u
        u = u.T if tall else u
        rows, columns = x.shape
        adjusted = rate * max(1, rows / columns) ** 0.5
        if options.get("adjust_lr_fn") == "match_rms_adamw":
            adjusted = rate * 0.2 * max(rows, columns) ** 0.5
        return x * (1 - rate * options.get("weight_decay", 0.1)) - adjusted * u

    return rule


RULES = {"AdamW": cautious, "Adan": adan, "Muon": muon}
ROWS = {name: (case, None) for name, case in OTHERS.items()}
ROWS |= {name: (case, MATRICES) for name, case in MUON.items()}


@precisions
@pytest.mark.parametrize(("case", "shapes"), ROWS.values(), ids=ROWS)
def test_formulas_take_the_same_steps(case, shapes, dtype, close, torch):
    bag = Bag(dtype, shapes)
    params = {n: torch.from_numpy(a.copy()) for n, a in bag.state_dict().items()}
    rule, states = RULES[case[0]](torch, case[1]), {name: {} for name in params}

    def theirs(found):
        for path, g in found.items():
            g = torch.from_numpy(g)
            params[path] = rule(params[path], g, states[path], 0.01)
        return params

    for ours, other in together(case, dtype, theirs, bag, shapes):
        np.testing.assert_allclose(ours, other, 10 * close, 10 * close)


@pytest.mark.parametrize("case", MUON.values(), ids=MUON)
def test_pytorch_s_muon_is_near(case, torch):
    """It orthogonalizes in bfloat16, which has three digits."""
    bag = Bag("float32", MATRICES)
    params = {
        name: torch.nn.Parameter(torch.from_numpy(array.copy()))
        for name, array in bag.state_dict().items()
    }
    optimizer = torch.optim.Muon(params.values(), lr=0.01, **case[1])

    def theirs(found):
        for path, param in params.items():
            param.grad = torch.from_numpy(found[path])
        optimizer.step()
        return params

    for ours, other in together(case, "float32", theirs, bag, MATRICES):
        np.testing.assert_allclose(ours, other, atol=0.03)
