"""Program to Plan: the author's modules come back as classes.

grouping   statements of one scope, brought together where data flow allows
modules    a group becomes a class, a layer, a Sequential, or a list and a loop
"""

from burnish.codegen.arrange.modules import arrange, finished

__all__ = ["arrange", "finished"]
