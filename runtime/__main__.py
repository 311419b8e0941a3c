"""`python -m burnish` is the `burnish` command.

Python puts the current folder first on the path here. It is taken away, so that no file
of a model's folder is imported in the place of a package.
"""

import os
import sys

if __name__ == "__main__":
    if sys.path[:1] in ([""], [os.getcwd()]):
        del sys.path[0]
    from burnish.codegen.cli import main

    sys.exit(main())
