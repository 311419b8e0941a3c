"""Program to Plan: the author's modules are recovered as classes.

pipeline says the phases and their order.
"""

from burnish.codegen.arrange.pipeline import arrange, finished

__all__ = ["arrange", "finished"]
