"""Plan to text.

tidy     single-use expressions nest
names    every value gets a name
words    expressions as text
layout   lines that a formatter leaves alone
body     statements as lines
page     the whole module, through the templates
"""

from burnish.codegen.render.page import Header, render

__all__ = ["Header", "render"]
