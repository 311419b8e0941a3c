"""Program: the form between Graph and source, in the runtime's operators.

In: expressions (trees over values, weights and literals), statements that name their
results, blocks of them. Out: the same changed, its data flow, and its text.
Invariant: nothing here knows ONNX; values are single-assignment; a node is not changed
but rebuilt. Names are made when the source is rendered.
"""

from burnish.codegen.program.dataflow import Flow as Flow
from burnish.codegen.program.dataflow import defined as defined
from burnish.codegen.program.dataflow import demand_order as demand_order
from burnish.codegen.program.dataflow import last_uses as last_uses
from burnish.codegen.program.dataflow import operands as operands
from burnish.codegen.program.dataflow import reads as reads
from burnish.codegen.program.dataflow import values_in as values_in
from burnish.codegen.program.expressions import Attribute as Attribute
from burnish.codegen.program.expressions import BinOp as BinOp
from burnish.codegen.program.expressions import Call as Call
from burnish.codegen.program.expressions import Conditional as Conditional
from burnish.codegen.program.expressions import Keyed as Keyed
from burnish.codegen.program.expressions import Layer as Layer
from burnish.codegen.program.expressions import ListOrTuple as ListOrTuple
from burnish.codegen.program.expressions import Method as Method
from burnish.codegen.program.expressions import ModuleCall as ModuleCall
from burnish.codegen.program.expressions import Numbered as Numbered
from burnish.codegen.program.expressions import Repeat as Repeat
from burnish.codegen.program.expressions import SelfAttr as SelfAttr
from burnish.codegen.program.expressions import Slice as Slice
from burnish.codegen.program.expressions import Subscript as Subscript
from burnish.codegen.program.expressions import UnaryOp as UnaryOp
from burnish.codegen.program.expressions import Unwritten as Unwritten
from burnish.codegen.program.leaves import Change as Change
from burnish.codegen.program.leaves import Constant as Constant
from burnish.codegen.program.leaves import Dim as Dim
from burnish.codegen.program.leaves import Expression as Expression
from burnish.codegen.program.leaves import Host as Host
from burnish.codegen.program.leaves import Literal as Literal
from burnish.codegen.program.leaves import Name as Name
from burnish.codegen.program.leaves import Shape as Shape
from burnish.codegen.program.leaves import Source as Source
from burnish.codegen.program.leaves import Value as Value
from burnish.codegen.program.leaves import Weight as Weight
from burnish.codegen.program.leaves import exchanged as exchanged
from burnish.codegen.program.leaves import walk as walk
from burnish.codegen.program.plan import ClassPlan as ClassPlan
from burnish.codegen.program.plan import Plan as Plan
from burnish.codegen.program.plan import Program as Program
from burnish.codegen.program.plan import called_by as called_by
from burnish.codegen.program.plan import called_in_turn as called_in_turn
from burnish.codegen.program.plan import callee as callee
from burnish.codegen.program.plan import contained as contained
from burnish.codegen.program.plan import held as held
from burnish.codegen.program.plan import under as under
from burnish.codegen.program.pruning import pruned as pruned
from burnish.codegen.program.statements import Assign as Assign
from burnish.codegen.program.statements import Block as Block
from burnish.codegen.program.statements import If as If
from burnish.codegen.program.statements import Level as Level
from burnish.codegen.program.statements import Loop as Loop
from burnish.codegen.program.statements import Scope as Scope
from burnish.codegen.program.statements import Statement as Statement
from burnish.codegen.program.statements import attributes_used as attributes_used
from burnish.codegen.program.statements import every_expression as every_expression
from burnish.codegen.program.statements import level_names as level_names
