"""Back to ONNX: weights into the graph they came from, and modules as graphs.

In: fine-tuned weights and their model file, or a module and example inputs. Out: an
ONNX file that appears whole or not at all.
Invariant: what cannot be written exactly is refused by name; no input is changed.
"""

from burnish.codegen.writers.into_graph import Written, onto
from burnish.codegen.writers.traced import Exported, export

__all__ = ["Exported", "Written", "export", "onto"]
