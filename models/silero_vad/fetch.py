"""Fetch silero_vad_op18_ifless.onnx from the silero-vad package.

    python -m burnish.models.silero_vad.fetch [--out DIR]

The model is under the MIT licence.
"""

import sys
from pathlib import Path

from burnish.models._originals import Member, fetch, parser, run

PACKAGE = "silero-vad==6.2.3"
MEMBERS = (
    Member(
        "silero_vad/data/silero_vad_op18_ifless.onnx",
        "7671cd04b004e9076da0d4a7b1a5aec36adf161c39230c1cb94a4fd5db6bbd28",
    ),
)


def main() -> list[Path]:
    options = parser("silero_vad", __doc__).parse_args()
    return fetch(PACKAGE, MEMBERS, options.out)


if __name__ == "__main__":
    sys.exit(run(main))
