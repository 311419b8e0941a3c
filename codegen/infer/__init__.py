"""Source from weights alone: what names and shapes tell of a model.

checkpoint  the model's tensors among what a file holds
tree        names as a tree of modules
order       which comes first, where the file has lost it
leaves      one module of PyTorch's own by its tensors (convs, norms, recurrent)
classes     the tree as classes, blocks of one form once
chains      numbered modules: a Sequential, a list
forwards    what is certain of forward, and a named line for what is not
steps       the words on these lines
"""

from burnish.codegen.infer.build import Inferred, infer

__all__ = ["Inferred", "infer"]
