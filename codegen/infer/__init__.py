"""Source from a weights file alone, inferred from names and shapes of its tensors.

In: names, shapes and dtypes of a checkpoint's tensors. Out: classes with the members
that these determine; open steps of the forward are methods to fill in.
Invariant: a guess is marked as one; every tensor has its place in the model.
"""

from burnish.codegen.infer.build import Inferred, infer

__all__ = ["Inferred", "infer"]
