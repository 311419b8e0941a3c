"""Gradients of whole steps against float64, beside those of PyTorch in float32.

    python benchmarks/training.py --errors [--only TEXT,TEXT] [--draws 3] [--json FILE]

An error is the norm of the difference of all gradients of a step, as a share of the
norm of the float64 gradients; a ratio is the planned step's error divided by
PyTorch's. Rounding may carry an element over the kink of a ReLU, or choose another of
two nearly equal numbers of a window's maximum: such a flip changes gradients by far
more than rounding does. So float64 gradients are computed twice for each side, with
their own choices and with those that the float32 step made. The second ones judge the
arithmetic; how many choices differ, and in which layer, is printed beside them.
Dropout is off.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from training_rows import ROWS, Row, given, is_trained, weights

import burnish
from burnish import Tensor, nn, ops, optim

CHOOSING = ("ReLU", "ReLU6", "LeakyReLU", "MaxPool2d")

Arrays = dict[str, np.ndarray]


class Found(NamedTuple):
    """gradients: by names of parameters; choices: of each choosing layer, in the order
    of calls, its result, of a pool its argument."""

    gradients: Arrays
    choices: list[np.ndarray]


class Namespace:
    """A module of layers, some of them replaced."""

    def __init__(self, layers: Any, replaced: dict[str, Any]):
        self._layers, self._replaced = layers, replaced

    def __getattr__(self, name: str) -> Any:
        return self._replaced.get(name) or getattr(self._layers, name)


def seeing(library: Any, seen: list[Any]) -> Namespace:
    """A library's layers, where those that choose keep what shows their choices."""

    def replaced(name: str) -> Any:
        made = getattr(library, name)

        class Seen(library.Module):  # type: ignore[misc]
            def __init__(self, *args: Any) -> None:
                super().__init__()
                self.inner = made(*args)

            def forward(self, x: Any) -> Any:
                y = self.inner(x)
                seen.append(x if name == "MaxPool2d" else y)
                return y

        return Seen

    changed = {name: replaced(name) for name in CHOOSING}
    return Namespace(library, changed | _without_dropout(library))


def _without_dropout(library: Any) -> dict[str, Any]:
    """The library's layers that drop values, as layers that drop none."""

    def encoder(width: int, heads: int, hidden: int, _: float, **setting: Any) -> Any:
        return library.TransformerEncoderLayer(width, heads, hidden, 0.0, **setting)

    return {
        "Dropout": lambda _: library.Identity(),
        "TransformerEncoderLayer": encoder,
    }


class Chosen(torch.nn.Module):
    """A layer of torch whose choices are those of another run, or its own."""

    def __init__(self, name: str, args: tuple[Any, ...], run: Following):
        super().__init__()
        self.inner, self.name, self.run = getattr(torch.nn, name)(*args), name, run

    def forward(self, x: Any) -> Any:
        own = self.inner(x)
        if self.run.choices is None:
            return own
        other = torch.from_numpy(self.run.choices[self.run.place])
        pick = self._pooled if self.name == "MaxPool2d" else self._kinked
        made, flips = pick(x, own, other)
        self.run.count(self.name, flips)
        return made

    def _kinked(self, x: Any, own: Any, other: Any) -> tuple[Any, int]:
        bound = 6.0 if self.name == "ReLU6" else math.inf
        low = getattr(self.inner, "negative_slope", 0.0)
        is_low, is_high = other <= 0, other >= bound
        flips = ((own <= 0) != is_low) | ((own >= bound) != is_high)
        made = torch.where(is_low, low * x, x)
        if self.name == "ReLU6":
            made = torch.where(is_high, torch.full_like(x, bound), made)
        return made, int(flips.sum())

    def _pooled(self, x: Any, own: Any, other: Any) -> tuple[Any, int]:
        pool = self.inner
        _, where = torch.nn.functional.max_pool2d(
            other, pool.kernel_size, pool.stride, pool.padding, return_indices=True
        )
        made = x.flatten(2).gather(2, where.flatten(2)).reshape(own.shape)
        return made, int((made != own).sum())


class Following:
    """The choices that a run in float64 makes, and where they are not its own."""

    def __init__(self, choices: list[np.ndarray] | None):
        self.choices, self.place = choices, 0
        self.flips: dict[str, int] = {}

    def count(self, layer: str, flips: int) -> None:
        if flips:
            self.flips[f"{layer} {self.place}"] = flips
        self.place += 1

    def layers(self) -> Namespace:
        def replaced(name: str) -> Any:
            return lambda *args: Chosen(name, args, self)

        changed = {name: replaced(name) for name in CHOOSING}
        return Namespace(torch.nn, changed | _without_dropout(torch.nn))


def theirs(
    row: Row, seed: int, layers: Namespace, seen: list[Any], dtype: Any
) -> Found:
    """PyTorch's gradients of one step."""

    class Functions:
        gelu, cat = torch.nn.functional.gelu, torch.cat
        relu = layers.ReLU()
        scaled_dot_product_attention = torch.nn.functional.scaled_dot_product_attention

    models = _models(row.make(layers, Functions))
    inputs, labels = given(row, seed)
    for model in models:
        state = {k: torch.from_numpy(v) for k, v in weights(model, seed).items()}
        model.load_state_dict(state, strict=False)
        for name, param in model.named_parameters():
            param.requires_grad_(is_trained(row, name))
        model.to(dtype)
    tensors, wanted = [torch.from_numpy(each) for each in inputs], torch.tensor(labels)
    tensors = [t.to(dtype) if t.is_floating_point() else t for t in tensors]
    wanted = wanted.to(dtype) if wanted.is_floating_point() else wanted
    found: Arrays = {}
    for i, (loss, model) in enumerate(
        _losses(row, models, tensors, wanted, torch.nn.functional.cross_entropy)
    ):
        model.zero_grad()
        loss.backward(retain_graph=True)
        for name, param in model.named_parameters():
            if param.requires_grad and param.grad is not None:
                found[f"{i}.{name}"] = param.grad.numpy().copy()
    return Found(found, [each.detach().numpy() for each in seen])


def ours(row: Row, seed: int, sees_choices: bool) -> Found:
    """The gradients of one planned step."""
    seen: list[Any] = []
    layers = seeing(nn, seen)

    class Functions:
        gelu, cat = staticmethod(ops.gelu), staticmethod(ops.concat)
        relu = layers.ReLU()
        scaled_dot_product_attention = staticmethod(ops.scaled_dot_product_attention)

    models = _models(row.make(layers, Functions))
    for model in models:
        model.load_state_dict({**model.state_dict(), **weights(model, seed)})
        for name, param in model.named_parameters():
            param.trainable = is_trained(row, name)
        model.to("cpu:autodiff")
    inputs, labels = given(row, seed)

    def step(wanted: Any, *tensors: Any) -> Any:
        seen.clear()
        found, known = {}, []
        losses = _losses(row, models, list(tensors), wanted, nn.cross_entropy)
        for i, (loss, model) in enumerate(losses):
            slopes = loss.backward()
            for name, param in model.named_parameters():
                if param.trainable:
                    found[f"{i}.{name}"] = param.grad(slopes)
            known.append((model, slopes))
        for model, slopes in known:  # behind all gradients
            optim.SGD().step(0.0, model, slopes)  # weights are packed as in training
        shown = [each.detach() for each in seen] if sees_choices else []
        seen.clear()
        return found, shown

    fast = burnish.compile(step)
    made, shown = fast(Tensor(labels), *(Tensor(each) for each in inputs))
    if "one plan" not in (report := fast.explain()):
        raise RuntimeError(f"expected one plan of the step, got: {report}")
    arrays = {name: np.array(each.numpy()) for name, each in made.items()}
    return Found(arrays, [np.array(each.numpy()) for each in shown])


def _models(made: Any) -> Sequence[Any]:
    return made if isinstance(made, tuple) else [made]


def _losses(
    row: Row,
    models: Sequence[Any],
    tensors: list[Any],
    wanted: Any,
    cross_entropy: Callable[[Any, Any], Any],
) -> list[tuple[Any, Any]]:
    """Each loss of a step, and the model whose gradients it gives."""
    if len(models) == 1:
        made = models[0](*tensors)
        made = made.reshape(-1, made.shape[-1]) if row.words else made
        labels = wanted.reshape(-1) if row.words else wanted
        return [(cross_entropy(made, labels), models[0])]
    generator, critic = models
    fake = generator(wanted)
    loss = critic(fake.detach()).mean() - critic(tensors[0]).mean()
    return [(loss, critic), (-critic(fake).mean(), generator)]


def apart(found: Arrays, exact: Arrays) -> float:
    """The distance of all gradients together, relative to the norm of `exact`."""
    if found.keys() != exact.keys():
        raise ValueError(f"expected gradients of {set(exact)}, got {set(found)}")
    gap = sum(float(((found[k] - v) ** 2).sum()) for k, v in exact.items())
    return math.sqrt(gap / sum(float((v**2).sum()) for v in exact.values()))


class Drawn(NamedTuple):
    """Of one side of one draw: its errors, with its own choices and with those of
    float64, and the flips by layer."""

    error: float
    error_with_flips: float
    flips: dict[str, int]


def _judged(row: Row, seed: int, found: Found, exact: Arrays) -> Drawn:
    run = Following(found.choices)
    near = theirs(row, seed, run.layers(), [], torch.float64).gradients
    return Drawn(apart(found.gradients, near), apart(found.gradients, exact), run.flips)


def drawn(row: Row, seed: int) -> tuple[Drawn, Drawn]:
    """The errors of the planned step and of PyTorch's for one draw."""
    own = ours(row, seed, True)
    bare = ours(row, seed, False)
    if any((own.gradients[k] != v).any() for k, v in bare.gradients.items()):
        gap = apart(own.gradients, bare.gradients)
        raise RuntimeError(f"a step that returns its choices differs by {gap:.1e}")
    seen: list[Any] = []
    other = theirs(row, seed, seeing(torch.nn, seen), seen, torch.float32)
    exact = theirs(row, seed, Following(None).layers(), [], torch.float64).gradients
    return _judged(row, seed, own, exact), _judged(row, seed, other, exact)


def _mean(numbers: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, numbers)) / len(numbers))


def _flips(draws: Sequence[Drawn]) -> str:
    count = sum(sum(each.flips.values()) for each in draws)
    names = sorted({name for each in draws for name in each.flips})
    shown = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
    return f"{count} ({shown})" if count else "0"


def table(options: argparse.Namespace) -> None:
    """A line for each network, printed as they come."""
    torch.set_num_threads(1)
    burnish.set_num_threads(1)
    head = f"{'planned':>9}{'torch':>9}{'ratio':>7}{'highest':>9}"
    print(f"{'':28}{head}  with flips, planned and torch; flips, planned; torch")
    texts, rows = options.only.lower().split(","), []
    for name in (n for n in ROWS if any(text in n.lower() for text in texts)):
        pairs = [drawn(ROWS[name], seed) for seed in range(options.draws)]
        mine, other = [p[0] for p in pairs], [p[1] for p in pairs]
        errors = _mean([d.error for d in mine]), _mean([d.error for d in other])
        highest = max(a.error / b.error for a, b in pairs)
        loose = [_mean([d.error_with_flips for d in side]) for side in (mine, other)]
        print(
            f"{name:28}{errors[0]:9.1e}{errors[1]:9.1e}{errors[0] / errors[1]:7.2f}"
            f"{highest:9.2f}  {loose[0]:.1e} {loose[1]:.1e};"
            f" {_flips(mine)}; {_flips(other)}",
            flush=True,
        )
        rows.append({"name": name, "draws": [[d._asdict() for d in p] for p in pairs]})
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")
