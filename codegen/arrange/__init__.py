"""Program to Plan: the author's modules are recovered as classes.

In: a Program. Out: a Plan: classes, small to large, and the paths of weights.
Invariant: every phase but the needed ones is cosmetic: the numbers equal `--flat`.
`pipeline` has the phases and their order.
"""

from burnish.codegen.arrange.parts import joined
from burnish.codegen.arrange.pipeline import arrange, finished

__all__ = ["arrange", "finished", "joined"]
