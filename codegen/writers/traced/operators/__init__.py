"""Export rules of operators and layers, by family."""

from burnish.codegen.writers.traced.operators import (
    activation,
    control,
    conv,
    elementwise,
    image,
    index,
    layers,
    linear,
    norm,
    others,
    quantize,
    recurrent,
    reduce,
    shape,
    tables,
)

__all__ = [
    "activation",
    "control",
    "conv",
    "elementwise",
    "image",
    "index",
    "layers",
    "linear",
    "norm",
    "others",
    "quantize",
    "recurrent",
    "reduce",
    "shape",
    "tables",
]
