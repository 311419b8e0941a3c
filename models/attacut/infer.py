"""Split Thai text, which has no spaces between words.

    python -m burnish.models.attacut.infer [TEXT ...]

The network is told each character and the syllable it belongs to, and says where words
begin. Syllables are found here by the longest match in its dictionary.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator, Mapping
from itertools import pairwise
from string import punctuation

import numpy as np

from burnish.models._gallery import weights
from burnish.models._originals import OriginalError, cache_folder
from burnish.models.attacut.attacut import Model

TEXTS = (
    "วันนี้อากาศดีมากฉันไปตลาด",
    "ภาษาไทยเขียนติดกันโดยไม่เว้นวรรค",
    "ฉันซื้อ Python มา 2 เล่ม",
)
_RUN = re.compile(r"[A-Za-z]+|[0-9,]+|\s+")


class Splitter:
    """Thai text to words; joined they are the text again."""

    def __init__(
        self, model: Model, characters: Mapping[str, int], syllables: Mapping[str, int]
    ):
        self.model = model
        self.characters = characters
        self.syllables = syllables
        self.longest = max(map(len, syllables))

    @classmethod
    def from_cache(cls) -> Splitter:
        """With the original's weights and dictionaries, fetched once."""
        model = Model.from_file(weights("attacut"))
        folder = cache_folder("attacut")
        dictionaries = (
            json.loads((folder / f"attacut-sc-{name}.json").read_text("utf-8"))
            for name in ("characters", "syllables")
        )
        return cls(model, *dictionaries)

    def __call__(self, text: str) -> list[str]:
        if not text:
            return []
        syllables = list(self._syllables(text))
        ids = np.array(
            [
                [self._character(sign) for part in syllables for sign in part],
                [self._syllable(part) for part in syllables for _ in part],
            ]
        )
        begins = np.asarray(self.model(ids[None])) > 0  # logits: more likely than not
        begins[0] = True
        starts = [*np.flatnonzero(begins), len(text)]
        return [text[a:b] for a, b in pairwise(starts)]

    def _syllables(self, text: str) -> Iterator[str]:
        at = 0
        while at < len(text):
            if run := _RUN.match(text, at):
                part = run[0]
            else:
                ends = range(min(self.longest, len(text) - at), 0, -1)
                parts = (text[at : at + size] for size in ends)
                part = next((p for p in parts if p in self.syllables), text[at])
            yield part
            at += len(part)

    def _character(self, sign: str) -> int:
        name = "<PUNC>" if sign in punctuation else sign
        return self.characters.get(name, self.characters["<UNK>"])

    def _syllable(self, part: str) -> int:
        name = part
        if part[0].isascii() and part[0].isalpha():
            name = "<ENGLISH>"
        elif part[0] in "0123456789,":
            name = "<NUMBER>"
        return self.syllables.get(name, self.syllables["<UNK>"])


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("texts", nargs="*", default=TEXTS, metavar="TEXT")
    options = parser.parse_args()
    try:
        split = Splitter.from_cache()
    except OriginalError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    for text in options.texts:
        print("|".join(split(text)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
