"""Text classification: whether a short review is praise, by a small transformer.

    python -m burnish.models.examples.text_classification [--texts 3000] [--epochs 6]
        [--run runs/text_classification] [--say "not a bad film"]

The reviews are made up. Single words do not decide: "not" turns the word behind it
round, and what comes behind "but" counts for more than what comes before. With the
`tokenizers` package (pip install 'burnish[text]') texts are cut into subwords.
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path

import numpy as np

from burnish import Tensor, data, nn, optim, seed
from burnish.learner import Accuracy, KeepBest, Learner, Loss, Supervised
from burnish.models.examples._tokens import PAD, learned

CLASSES = ("complaint", "praise")
THINGS = (
    "acting", "plot", "music", "ending", "dialogue", "camera work", "humour", "cast",
    "pace", "opening", "script", "sound", "story", "scenery",
)  # fmt: skip
GOOD = (
    "wonderful", "clever", "moving", "bright", "gripping", "fresh", "funny", "superb",
)  # fmt: skip
BAD = ("dull", "clumsy", "tired", "loud", "silly", "flat", "slow", "awful")
DEGREES = ("", "very ", "rather ", "truly ", "quite ", "so ")


def review(rng: np.random.Generator) -> tuple[str, int]:
    """A made up review, and whether it is praise."""
    first, opinion = _clause(rng)
    if rng.random() < 0.4:
        return f"{first.capitalize()}.", opinion
    second, other = _clause(rng)
    if opinion == other:
        return f"{first.capitalize()}, and {second}.", opinion
    if rng.random() < 0.5:
        return f"{first.capitalize()}, but {second}.", other
    return f"Although {first}, {second}.", other


def _clause(rng: np.random.Generator) -> tuple[str, int]:
    good, negated = rng.random(2) < 0.5
    word = str(rng.choice(GOOD if good else BAD))
    turn = "not " if negated else ""
    text = f"the {rng.choice(THINGS)} was {turn}{rng.choice(DEGREES)}{word}"
    return text, int(good != negated)


class Classifier(nn.Module):
    """ids (batch, time), 0 for padding -> logits (batch, classes)"""

    def __init__(self, tokens: int, dim: int = 64, heads: int = 4, depth: int = 2):
        self.embedding = nn.Embedding(tokens, dim, padding_idx=PAD)
        self.position = nn.PositionalEncoding(dim)
        layer = partial(
            nn.TransformerEncoderLayer, dim, heads, 2 * dim, batch_first=True
        )
        self.layers = [layer(norm_first=True) for _ in range(depth)]
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, len(CLASSES))

    def forward(self, ids: Tensor) -> Tensor:
        padded = ids == PAD
        x = self.position(self.embedding(ids))
        for layer in self.layers:
            x = layer(x, src_key_padding_mask=padded)
        kept = 1 - padded.astype(x.dtype).unsqueeze(-1)
        return self.head((self.norm(x) * kept).sum(1) / kept.sum(1))


def main(argv: list[str] | None = None) -> dict[str, float]:
    """Train, and give the last epoch's metrics of reviews that were held back."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--texts", type=int, default=3000)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--run", type=Path, default=Path("runs/text_classification"))
    parser.add_argument("--say", action="append", help="a review to read at the end")
    options = parser.parse_args(argv)

    seed(0)
    rng = np.random.default_rng(0)
    # by text, so that none is on both sides
    reviews = list(dict(review(rng) for _ in range(options.texts)).items())
    held = len(reviews) // 5
    tokens = learned([text for text, _ in reviews[held:]], 400)

    def encoded(item: tuple[str, int]) -> tuple[np.ndarray, int]:
        text, label = item
        return np.array(tokens.encode(text)), label

    print(f"{len(reviews)} reviews, {tokens.size} tokens, such as {reviews[0][0]!r}")
    batches, unseen = (
        data.batches(
            data.MappedDataset(part, encoded),
            32,
            shuffle=order,
            collate=data.padded(PAD),
        )
        for part, order in ((reviews[held:], 0), (reviews[:held], None))
    )
    learner = Learner(
        Classifier(tokens.size),
        optim.AdamW(),
        optim.OneCycle(2e-3, options.epochs * len(batches)),
        step=Supervised(nn.CrossEntropyLoss()),
        metrics=[Accuracy(), Loss()],
        epochs=options.epochs,
        directory=options.run,
        checkpoints=KeepBest("Accuracy"),
        overwrite=True,
    )
    model = learner.fit(batches, unseen)
    said = options.say or [
        "The plot was not very clever, but the cast was superb.",
        "Although the music was superb, the plot was not very clever.",
    ]
    for text in said:
        logits = model(Tensor([tokens.encode(text)]))
        print(f"{CLASSES[logits.argmax(1).item()]:9}  {text}")
    return {
        name: learner.store.epochs(name, "valid")[options.epochs]
        for name in ("Accuracy", "Loss")
    }


if __name__ == "__main__":
    main()
