"""Import rules: one function or row for each ONNX operator, by family.

In: a node's inputs as expressions, its attributes. Out: expressions of the runtime.
Invariant: a rule's signature is its operator's schema for every version it answers for;
what passes may know of an operator is declared with its rule.
"""

from burnish.codegen.ops import (
    arrays,
    control,
    elementwise,
    layers,
    media,
    ml,
    quantized,
    sequence,
    training,
)
from burnish.codegen.ops.rule.expressions import call, function, layer, method
from burnish.codegen.ops.rule.registry import (
    NodeContext,
    Roles,
    Rule,
    argument_roles,
    find,
    functions,
    has_rule,
    having,
    load_installed,
    macs_by_function,
    macs_of,
    neutral_of,
    onnx_op,
    registry,
    role_names,
    shapes_of,
    traits_of,
    twins,
    weights_of,
)
from burnish.codegen.ops.rule.traits import Trait, Twin

__all__ = [
    "NodeContext",
    "Roles",
    "Rule",
    "Trait",
    "Twin",
    "argument_roles",
    "arrays",
    "call",
    "control",
    "elementwise",
    "find",
    "function",
    "functions",
    "has_rule",
    "having",
    "layer",
    "layers",
    "load_installed",
    "macs_by_function",
    "macs_of",
    "media",
    "method",
    "ml",
    "neutral_of",
    "onnx_op",
    "quantized",
    "registry",
    "role_names",
    "sequence",
    "shapes_of",
    "training",
    "traits_of",
    "twins",
    "weights_of",
]
