"""What every ONNX operator means, one function an operator, by family."""

from burnish.codegen.ops import (
    activation,
    arithmetic,
    attention,
    boxes,
    cast,
    compare,
    control,
    conv,
    create,
    image,
    index,
    linear,
    norm,
    pool,
    quantize,
    recurrent,
    reduce,
    sequence,
    shape,
    signal,
    text,
)
from burnish.codegen.ops._rules import (
    NodeContext,
    Rule,
    find,
    has_rule,
    onnx_op,
    registry,
)

__all__ = ["NodeContext", "Rule", "find", "has_rule", "onnx_op", "registry"]

FAMILIES = (
    activation,
    arithmetic,
    attention,
    boxes,
    cast,
    compare,
    control,
    conv,
    create,
    image,
    index,
    linear,
    norm,
    pool,
    quantize,
    recurrent,
    reduce,
    sequence,
    shape,
    signal,
    text,
)
