"""Rank sentences by meaning.

    python -m burnish.models.minilm.infer [--query TEXT] [SENTENCE ...]

Tokens are made here from the model's vocabulary, in plain Python. The weights are those
of the fetched package as they are, since the imported network has the same names; the
ONNX file is not needed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import numpy as np

from burnish.models._originals import OriginalError, cache_folder, fetch
from burnish.models.minilm._wordpiece import WordPiece
from burnish.models.minilm.fetch import MEMBERS, PACKAGE
from burnish.models.minilm.minilm import Model
from burnish.serialize import load_file

QUERY = "How do I make the code run faster?"
SENTENCES = (
    "Ways to speed up a slow program",
    "The train to Oslo was late again",
    "Measure first, then optimize the inner loop",
    "Bread needs flour, water, salt and time",
    "He ran faster than anyone in his school",
    "A cat sleeps on the warm keyboard",
)
LONGEST = 256  # tokens


class Encoder:
    """Sentences to vectors of length 1 whose products say how alike they are."""

    def __init__(self, model: Model, tokenizer: WordPiece):
        self.model = model
        self.tokenizer = tokenizer

    @classmethod
    def from_package(cls) -> Encoder:
        """With the weights and the vocabulary of the package, fetched once."""
        folder = cache_folder("minilm")
        fetch(PACKAGE, MEMBERS, folder)
        weights = load_file(folder / "model.safetensors")
        kept = {n: w for n, w in weights.items() if not n.startswith("pooler.")}
        model = Model().load_state_dict(kept)
        words = (folder / "vocab.txt").read_text("utf-8").splitlines()
        return cls(model, WordPiece(words))

    def __call__(self, sentences: Sequence[str]) -> np.ndarray:
        """(sentences, 384)"""
        rows = [self.tokenizer(sentence)[:LONGEST] for sentence in sentences]
        ids = np.zeros((len(rows), max(map(len, rows))), np.int64)
        mask = np.zeros_like(ids)
        for i, row in enumerate(rows):
            ids[i, : len(row)] = row
            mask[i, : len(row)] = 1
        tokens = np.asarray(self.model(ids, mask, np.zeros_like(ids)))
        means = (tokens * mask[..., None]).sum(1) / mask.sum(1, keepdims=True)
        return means / np.linalg.norm(means, axis=1, keepdims=True)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--query", default=QUERY, metavar="TEXT")
    parser.add_argument("sentences", nargs="*", default=SENTENCES, metavar="SENTENCE")
    options = parser.parse_args()
    try:
        encode = Encoder.from_package()
    except OriginalError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1

    query, *vectors = encode([options.query, *options.sentences])
    scores = np.array(vectors) @ query
    print(options.query)
    for i in np.argsort(-scores):
        bar = "█" * round(20 * max(scores[i], 0))
        print(f"{scores[i]:6.3f}  {bar:20}  {options.sentences[i]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
