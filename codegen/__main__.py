"""`python -m burnish.codegen` is the `burnish` command."""

import sys

from burnish.codegen.cli import main

if __name__ == "__main__":
    sys.exit(main())
