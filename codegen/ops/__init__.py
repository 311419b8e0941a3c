"""Import rules: one function or row for each ONNX operator, by family.

In: a node's inputs as expressions, its attributes. Out: expressions of the runtime.
Invariant: a rule's signature is its operator's schema for every version it answers for;
what passes may know of an operator is declared with its rule.
"""

from burnish.codegen.ops import arrays as arrays
from burnish.codegen.ops import control as control
from burnish.codegen.ops import elementwise as elementwise
from burnish.codegen.ops import layers as layers
from burnish.codegen.ops import media as media
from burnish.codegen.ops import ml as ml
from burnish.codegen.ops import quantized as quantized
from burnish.codegen.ops import search as search
from burnish.codegen.ops import sequence as sequence
from burnish.codegen.ops import training as training
from burnish.codegen.ops.rule.expressions import call as call
from burnish.codegen.ops.rule.expressions import function as function
from burnish.codegen.ops.rule.expressions import layer as layer
from burnish.codegen.ops.rule.expressions import method as method
from burnish.codegen.ops.rule.registry import NodeContext as NodeContext
from burnish.codegen.ops.rule.registry import Roles as Roles
from burnish.codegen.ops.rule.registry import Rule as Rule
from burnish.codegen.ops.rule.registry import argument_roles as argument_roles
from burnish.codegen.ops.rule.registry import find as find
from burnish.codegen.ops.rule.registry import functions as functions
from burnish.codegen.ops.rule.registry import has_rule as has_rule
from burnish.codegen.ops.rule.registry import having as having
from burnish.codegen.ops.rule.registry import load_installed as load_installed
from burnish.codegen.ops.rule.registry import macs_by_function as macs_by_function
from burnish.codegen.ops.rule.registry import macs_of as macs_of
from burnish.codegen.ops.rule.registry import neutral_of as neutral_of
from burnish.codegen.ops.rule.registry import onnx_op as onnx_op
from burnish.codegen.ops.rule.registry import registry as registry
from burnish.codegen.ops.rule.registry import role_names as role_names
from burnish.codegen.ops.rule.registry import shapes_of as shapes_of
from burnish.codegen.ops.rule.registry import traits_of as traits_of
from burnish.codegen.ops.rule.registry import twins as twins
from burnish.codegen.ops.rule.registry import weights_of as weights_of
from burnish.codegen.ops.rule.traits import Trait as Trait
from burnish.codegen.ops.rule.traits import Twin as Twin
