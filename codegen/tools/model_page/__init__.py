"""A page to look at a model: `burnish inspect --html`, and what two models differ in.

In: a model file or folder. Out: `Look`, a tree of boxes with everything that is known
of each module, and one HTML file of it. Invariant: the page shows what `Look` has, and
`--json` prints the same.
"""

from burnish.codegen.tools.model_page.boxes import Box, Look
from burnish.codegen.tools.model_page.look import look

__all__ = ["Box", "Look", "look"]
