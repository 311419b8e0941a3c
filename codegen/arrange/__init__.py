"""Program to Plan: the author's modules come back as classes.

grouping   statements of one scope, brought together where data flow allows
modules    a group becomes a class, a layer, a Sequential, or a list and a loop
finishing  classes merged where only sizes differ, named, given arguments
"""

from burnish.codegen.arrange.finishing import finished
from burnish.codegen.arrange.modules import arrange

__all__ = ["arrange", "finished"]
