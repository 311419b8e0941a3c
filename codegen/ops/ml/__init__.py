"""Rules of ai.onnx.ml: encoders, linear and kernel models, tree ensembles.

In: features, and a model's tables as attributes. Out: functions; tables are buffers.
Invariant: labels and scores are those of the specification, ties included.
"""

from burnish.codegen.ops.ml import classical, classifiers, trees

__all__ = ["classical", "classifiers", "trees"]
