"""Post-training quantization of activations.

A layer's input is rounded to small numbers in front of it (`layer.on_input`); the layer
then computes with their values in floating point. NumPy multiplies matrices of integers
without BLAS, many times slower, and sums of products of eight bits are the same to
within float32's rounding.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from burnish.autodiff import no_grad
from burnish.errors import InputError
from burnish.lowbit import Calibration, Level, QuantScheme
from burnish.nn import Embedding, Module, Param, ParamGroup
from burnish.nn.lowbit.input_quantizer import InputQuantizer
from burnish.quantization.observer import Observer
from burnish.quantization.quantizer import Quantizer, chosen

M = TypeVar("M", bound=Module)


def quantize_dynamic(
    model: M,
    weights: Quantizer | None = None,
    inputs: QuantScheme | None = None,
    group: ParamGroup | None = None,
) -> M:
    """Small weights, and inputs with scales of their own at every call; in place.

    inputs: None is affine 8 bits, one scale a row (a token, a sample). group: the
    weights; the layers that hold them round their inputs, embeddings excepted.
    """
    inputs = inputs or QuantScheme("q8f", "affine", Level.row())
    for layer in layers(model, group).values():
        layer.on_input = InputQuantizer(inputs).to(layer.device)
    return model.quantize_weights(weights or Quantizer(), group)


def quantize_static(
    model: M,
    batches: Iterable[Any],
    weights: Quantizer | None = None,
    inputs: Quantizer | None = None,
    group: ParamGroup | None = None,
) -> M:
    """Small weights, and inputs with scales from `batches`; in place.

    batches: what the model is called with, each a tensor, a tuple of arguments or a
    mapping of named ones. inputs: None is affine 8 bits per tensor over the whole
    range. group: as in `quantize_dynamic`.

    Raises InputError when there are no batches or a layer sees none; the model is
    unchanged then.
    """
    inputs = inputs or input_quantizer()
    if inputs.scheme.level.kind not in ("tensor", "channel"):
        raise InputError(
            f"quantize_static: expected scales per tensor or per channel, got "
            f"{inputs.scheme.level}; quantize_dynamic has scales per row"
        )
    found = layers(model, group)
    before = {path: layer.on_input for path, layer in found.items()}
    observers = {path: Observer(inputs) for path in found}
    try:
        for path, layer in found.items():
            layer.on_input = observers[path]
        _run(model, batches)
        made = {
            path: InputQuantizer(inputs.scheme, observers[path].params(path))
            for path in found
        }
        model.quantize_weights(weights or Quantizer(), group)
    except BaseException:
        for path, layer in found.items():
            layer.on_input = before[path]
        raise
    for path, layer in found.items():
        layer.on_input = made[path].to(layer.device)
    return model


def input_quantizer() -> Quantizer:
    """Affine 8 bits, one scale for a layer's whole input, over its whole range."""
    return Quantizer(Calibration.min_max(), QuantScheme("q8f", "affine"))


def layers(model: Module, group: ParamGroup | None) -> dict[str, Module]:
    """The layers by path whose own `weight` is to be small, without embeddings."""
    weights = {id(param) for param in chosen(model, group).values()}
    found = {}
    for path, module in model.named_modules():
        weight = vars(module).get("weight")
        if not isinstance(weight, Param) or isinstance(module, Embedding):
            continue
        if weights & {id(part) for _, part in weight.parts()}:
            found[path] = module
    return found


def _run(model: Module, batches: Iterable[Any]) -> None:
    count = 0
    with no_grad():
        for batch in batches:
            count += 1
            if isinstance(batch, tuple):
                model(*batch)
            elif isinstance(batch, Mapping):
                model(**batch)
            else:
                model(batch)
    if not count:
        raise InputError(
            "quantize_static: expected batches to calibrate with, got none"
        )
