"""Plan to text.

In: a Plan and a header. Out: the source of a module, through the templates.
Invariant: a formatter leaves the text as it is; names are used; text of a model file
is an identifier or behind `repr`.
"""

from burnish.codegen.render.page import Header, render

__all__ = ["Header", "render"]
