"""Shared by tests of optimizers: parameters of several shapes, their gradients."""

from __future__ import annotations

from typing import Any

import numpy as np

from burnish import nn, optim

SHAPES = {
    "a": (4, 3),
    "b": (5,),
    "c": (),
    "d": (0, 2),
    "e": (3, 2, 2),
    "large": (70_000,),
}
MATRICES = {"tall": (6, 3), "wide": (2, 5), "row": (1, 4)}


class Bag(nn.Module):
    """Parameters of several shapes and nothing else."""

    def __init__(self, dtype: Any = "float64", shapes: Any = None):
        rng = np.random.default_rng(0)
        for name, shape in (shapes or SHAPES).items():
            setattr(self, name, nn.Param(np.array(rng.normal(size=shape), dtype)))


def gradients(step: int, dtype: Any = "float64", shapes: Any = None) -> dict[str, Any]:
    """Gradients of every parameter, but of `b` in every third step."""
    rng = np.random.default_rng(step + 1)
    found = {
        name: np.array(rng.normal(size=shape), dtype)
        for name, shape in (shapes or SHAPES).items()
    }
    if step % 3 == 2:
        found.pop("b", None)
    return found


#: Every optimizer with its defaults, and with everything that can be set.
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "sgd": ("SGD", {}),
    "momentum": ("SGD", {"momentum": 0.9}),
    "all of sgd": (
        "SGD",
        {"momentum": 0.8, "dampening": 0.1, "weight_decay": 0.2, "maximize": True},
    ),
    "nesterov": ("SGD", {"momentum": 0.8, "nesterov": True, "weight_decay": 0.1}),
    "adam": ("Adam", {}),
    "all of adam": (
        "Adam",
        {"betas": (0.8, 0.95), "eps": 1e-5, "weight_decay": 0.1, "amsgrad": True},
    ),
    "adam up": ("Adam", {"maximize": True, "weight_decay": 0.1}),
    "adamw": ("AdamW", {}),
    "all of adamw": (
        "AdamW",
        {"weight_decay": 0.3, "amsgrad": True, "maximize": True, "betas": (0.8, 0.9)},
    ),
    "adamax": ("Adamax", {}),
    "all of adamax": (
        "Adamax",
        {"betas": (0.8, 0.95), "eps": 1e-5, "weight_decay": 0.1, "maximize": True},
    ),
    "nadam": ("NAdam", {}),
    "all of nadam": (
        "NAdam",
        {"betas": (0.8, 0.95), "weight_decay": 0.1, "momentum_decay": 0.01}
        | {"maximize": True},
    ),
    "nadamw": ("NAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True}),
    "radam": ("RAdam", {}),
    "all of radam": (
        "RAdam",
        {"betas": (0.8, 0.95), "eps": 1e-5, "weight_decay": 0.1, "maximize": True},
    ),
    "radamw": ("RAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True}),
    "rmsprop": ("RMSprop", {}),
    "all of rmsprop": (
        "RMSprop",
        {"alpha": 0.9, "eps": 1e-5, "weight_decay": 0.1, "momentum": 0.7}
        | {"centered": True, "maximize": True},
    ),
    "adagrad": ("Adagrad", {}),
    "all of adagrad": (
        "Adagrad",
        {"lr_decay": 0.1, "weight_decay": 0.2, "eps": 1e-6, "maximize": True}
        | {"initial_accumulator_value": 0.3},
    ),
    "adadelta": ("Adadelta", {}),
    "all of adadelta": (
        "Adadelta",
        {"rho": 0.8, "eps": 1e-5, "weight_decay": 0.1, "maximize": True},
    ),
    "rprop": ("Rprop", {}),
    "all of rprop": (
        "Rprop",
        {"etas": (0.4, 1.3), "step_sizes": (1e-4, 0.1), "maximize": True},
    ),
}

#: Those that PyTorch does not have, or not with these options.
OTHERS: dict[str, tuple[str, dict[str, Any]]] = {
    "cautious": ("AdamW", {"weight_decay": 0.3, "cautious_weight_decay": True}),
    "adan": ("Adan", {}),
    "all of adan": (
        "Adan",
        {"betas": (0.9, 0.8, 0.95), "eps": 1e-6, "weight_decay": 0.1, "no_prox": True},
    ),
    "prox": ("Adan", {"weight_decay": 0.1}),
}

#: Those for matrices alone.
MUON: dict[str, tuple[str, dict[str, Any]]] = {
    "muon": ("Muon", {}),
    "all of muon": (
        "Muon",
        {"weight_decay": 0.2, "momentum": 0.8, "nesterov": False, "ns_steps": 3}
        | {"ns_coefficients": (3.0, -3.2, 1.2), "adjust_lr_fn": "match_rms_adamw"},
    ),
}


def made(case: tuple[str, dict[str, Any]]) -> optim.Optimizer:
    """The optimizer of a case."""
    optimizer: optim.Optimizer = getattr(optim, case[0])(**case[1])
    return optimizer
