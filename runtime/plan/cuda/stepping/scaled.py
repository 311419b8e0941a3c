"""Gradients of a loss times a factor, with which halves do not underflow."""

from __future__ import annotations

from typing import Any

import numpy as np

from burnish.autodiff import Gradients, Variable, backward
from burnish.backend.cuda.elementwise.scaling import Scale
from burnish.plan.cuda.stepping.mixed import Mixed


def scaled_backward(
    output: Variable, gradient: Any, mixed: Mixed, scale: Scale, repeats: bool
) -> Gradients:
    """`backward(output, gradient)` by way of a loss times the factor of `scale`.

    The gradients are divided by it again, and float32. repeats: where one overflows the
    factor is halved and they are computed anew, which waits for the GPU.
    """
    if output.node is None or (gradient is None and output.data.size != 1):
        return backward(output, gradient)  # which raises an error
    seed = np.ones(output.shape, np.float32) if gradient is None else gradient
    own = output.device.put(seed.data if isinstance(seed, Variable) else seed)
    while True:
        found = backward(output, output.wrap(scale.scaled(own), output.device))
        mixed.widened(found, scale)
        if not (repeats and scale.halve()):
            return found
