"""Export rules of operators and layers, by family.

In: a recorded call. Out: ONNX nodes, through the emitter.
Invariant: the nodes compute the call's numbers, for every size that is dynamic.
"""

from burnish.codegen.writers.traced.operators import activation as activation
from burnish.codegen.writers.traced.operators import control as control
from burnish.codegen.writers.traced.operators import conv as conv
from burnish.codegen.writers.traced.operators import elementwise as elementwise
from burnish.codegen.writers.traced.operators import image as image
from burnish.codegen.writers.traced.operators import index as index
from burnish.codegen.writers.traced.operators import layers as layers
from burnish.codegen.writers.traced.operators import linear as linear
from burnish.codegen.writers.traced.operators import norm as norm
from burnish.codegen.writers.traced.operators import others as others
from burnish.codegen.writers.traced.operators import quantize as quantize
from burnish.codegen.writers.traced.operators import recurrent as recurrent
from burnish.codegen.writers.traced.operators import reduce as reduce
from burnish.codegen.writers.traced.operators import shape as shape
from burnish.codegen.writers.traced.operators import tables as tables
