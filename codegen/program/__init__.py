"""Program: what will be written, in the runtime's and Python's words.

Nothing here knows ONNX. Expressions are trees whose leaves are values, weights and
literals; a statement gives names to an expression's results; a block is a list of
statements and what it hands back. Values are single-assignment; their names are made
when the source is rendered.

leaves       values, weights, constants, literals
expressions  calls, operators, indexing, layers
statements   assignments, branches, loops, and blocks of them
dataflow     who makes and who reads a value, and orders that follow from it
plan         a whole program, and the classes that it is arranged in
"""

from burnish.codegen.program.dataflow import (
    Flow,
    defined,
    demand_order,
    last_uses,
    operands,
    reads,
    values_in,
)
from burnish.codegen.program.expressions import (
    Attribute,
    BinOp,
    Call,
    Conditional,
    Keyed,
    Layer,
    ListOrTuple,
    Method,
    ModuleCall,
    Numbered,
    Repeat,
    SelfAttr,
    Slice,
    Subscript,
    UnaryOp,
    Unwritten,
)
from burnish.codegen.program.leaves import (
    Change,
    Constant,
    Dim,
    Expression,
    Host,
    Literal,
    Name,
    Shape,
    Source,
    Value,
    Weight,
    exchanged,
    walk,
)
from burnish.codegen.program.plan import (
    ClassPlan,
    Plan,
    Program,
    called_by,
    held,
)
from burnish.codegen.program.pruning import (
    pruned,
)
from burnish.codegen.program.statements import (
    Assign,
    Block,
    If,
    Level,
    Loop,
    Scope,
    Statement,
    attributes_used,
    every_expression,
)

__all__ = [
    "Assign",
    "Attribute",
    "BinOp",
    "Block",
    "Call",
    "Change",
    "ClassPlan",
    "Conditional",
    "Constant",
    "Dim",
    "Expression",
    "Flow",
    "Host",
    "If",
    "Keyed",
    "Layer",
    "Level",
    "ListOrTuple",
    "Literal",
    "Loop",
    "Method",
    "ModuleCall",
    "Name",
    "Numbered",
    "Plan",
    "Program",
    "Repeat",
    "Scope",
    "SelfAttr",
    "Shape",
    "Slice",
    "Source",
    "Statement",
    "Subscript",
    "UnaryOp",
    "Unwritten",
    "Value",
    "Weight",
    "attributes_used",
    "called_by",
    "defined",
    "demand_order",
    "every_expression",
    "exchanged",
    "held",
    "last_uses",
    "operands",
    "pruned",
    "reads",
    "values_in",
    "walk",
]
