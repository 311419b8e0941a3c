"""Export rules of operators and layers, by family.

In: a recorded call. Out: ONNX nodes, through the emitter.
Invariant: the nodes compute the call's numbers, for every size that is dynamic.
"""

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
