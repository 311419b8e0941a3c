"""Export modules to ONNX: record their calls, then emit ONNX nodes.

In: a module and example inputs. Out: a graph with the module's names and scopes.
Invariant: every operator and layer has its way back in one table (`operators/`), and
what has none is named; sizes that follow dynamic axes are computed in the graph.
"""

from burnish.codegen.writers.traced.export import Exported, export

__all__ = ["Exported", "export"]
