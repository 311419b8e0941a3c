"""Text generation: a small causal transformer learns sentences and writes new ones.

    python -m burnish.models.examples.text_generation [--sentences 6000] [--epochs 8]
        [--run runs/text_generation] [--prompt "The hungry wolf"]

The sentences are made up, and have a rule that spans several words: "The wolf that two
children fear hears a goose." What is written at the end is checked with the grammar.
With the `tokenizers` package (pip install 'burnish[text]') text is cut into subwords.
"""

from __future__ import annotations

import argparse
import re
from functools import partial
from pathlib import Path

import numpy as np

from burnish import Tensor, data, nn, optim, seed
from burnish.generation import Cache, generate
from burnish.learner import Learner, Loss, Perplexity, StepOutput
from burnish.models.examples._tokens import learned

TIME = 64
ADJECTIVES = ("young", "tired", "hungry", "quiet", "clever", "small", "grey", "brave")
NOUNS = (
    ["fox", "farmer", "child", "goose", "wolf", "sailor", "miller", "mouse"],
    ["foxes", "farmers", "children", "geese", "wolves", "sailors", "millers", "mice"],
)
VERBS = (
    ["sees", "follows", "likes", "hears", "fears", "finds"],
    ["see", "follow", "like", "hear", "fear", "find"],
)
COUNTS = (("the", "a", "every"), ("the", "two", "many"))
PLACES = ("near the river", "in the forest", "behind the barn", "at night")


def sentence(rng: np.random.Generator) -> str:
    """A made up sentence."""
    subject, number = _phrase(rng)
    if rng.random() < 0.3:
        other, others = _phrase(rng)
        subject += f" that {other} {rng.choice(VERBS[others])}"
    place = f" {rng.choice(PLACES)}" if rng.random() < 0.4 else ""
    text = f"{subject} {rng.choice(VERBS[number])} {_phrase(rng)[0]}{place}."
    return text[0].upper() + text[1:]


def _phrase(rng: np.random.Generator) -> tuple[str, int]:
    number = int(rng.random() < 0.5)
    words = [rng.choice(COUNTS[number]), rng.choice(NOUNS[number])]
    if rng.random() < 0.5:
        words.insert(1, rng.choice(ADJECTIVES))
    return " ".join(words), number


def grammar() -> re.Pattern[str]:
    """What every sentence matches."""

    def one(*words: str) -> str:
        return f"(?:{'|'.join(words)})"

    phrases = [
        f"{one(*COUNTS[n])}(?: {one(*ADJECTIVES)})? {one(*NOUNS[n])}" for n in (0, 1)
    ]
    clauses = one(*(f"{phrases[n]} {one(*VERBS[n])}" for n in (0, 1)))
    starts = [f"{phrases[n]}(?: that {clauses})? {one(*VERBS[n])}" for n in (0, 1)]
    ends = f"{one(*phrases)}(?: {one(*PLACES)})?"
    return re.compile(f"{one(*starts)} {ends}\\.", re.IGNORECASE)


class Writer(nn.Module):
    """ids (batch, time) -> logits (batch, time, tokens) of the token behind each

    cache: what `generate` remembers of earlier positions.
    """

    def __init__(self, tokens: int, dim: int = 64, heads: int = 4, depth: int = 2):
        self.embedding = nn.Embedding(tokens, dim)
        self.position = nn.PositionalEncoding(dim)
        layer = partial(
            nn.TransformerEncoderLayer, dim, heads, 4 * dim, batch_first=True
        )
        self.layers = [layer(norm_first=True) for _ in range(depth)]
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, tokens)

    def forward(self, ids: Tensor, cache: Cache | None = None) -> Tensor:
        known = [nn.MhaCache() for _ in self.layers]
        if cache is not None:
            known = cache.keep(self, lambda: known)
        x = self.position(self.embedding(ids), start=len(known[0]))
        for layer, before in zip(self.layers, known, strict=True):
            x = layer(x, is_causal=True, cache=before)
        return self.head(self.norm(x))

    def train_step(self, batch: tuple[Tensor, Tensor]) -> StepOutput:
        """What the Learner does with windows of text and what follows each token."""
        ids, following = batch
        logits = self(ids)
        loss = nn.cross_entropy(logits.flatten(0, 1), following.flatten())
        return StepOutput(loss, logits, following)

    valid_step = train_step


def windows(ids: list[int]) -> data.ArrayDataset:
    """Pieces of TIME tokens, and the same a token later."""
    count = (len(ids) - 1) // TIME
    return data.ArrayDataset(
        np.reshape(ids[: count * TIME], (count, TIME)),
        np.reshape(ids[1 : count * TIME + 1], (count, TIME)),
    )


def main(argv: list[str] | None = None) -> dict[str, float]:
    """Train, and give the perplexity of held back text and how sentences came out.

    "right": the share of generated sentences that the grammar allows; "new": the share
    of these that were not in the training text.
    """
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sentences", type=int, default=6000)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--run", type=Path, default=Path("runs/text_generation"))
    parser.add_argument("--prompt", default="The")
    options = parser.parse_args(argv)

    seed(0)
    rng = np.random.default_rng(0)
    text = [sentence(rng) for _ in range(options.sentences)]
    held = len(text) // 10
    tokens = learned(text[held:], 420)
    batches, unseen = (
        data.batches(windows(tokens.encode(" ".join(part))), 16, shuffle=order)
        for part, order in ((text[held:], 0), (text[:held], None))
    )
    learner = Learner(
        Writer(tokens.size),
        optim.AdamW(),
        optim.OneCycle(4e-3, options.epochs * len(batches)),
        metrics=[Loss(), Perplexity()],
        epochs=options.epochs,
        directory=options.run,
        overwrite=True,
    )
    model = learner.fit(batches, unseen)
    prompts = [tokens.encode(options.prompt)] * 32
    ids = generate(model, prompts, TIME, do_sample=True, temperature=0.8)
    written = [tokens.decode(row) for row in ids.tolist()]
    print("\n".join(written[:3]))
    whole = [part for row in written for part in re.findall(r"\S[^.]*\.", row)]
    right = [part for part in whole if grammar().fullmatch(part)]
    new = set(right) - set(text[held:])
    found = {
        "perplexity": learner.store.epochs("Perplexity", "valid")[options.epochs],
        "right": len(right) / max(len(whole), 1),
        "new": len(new) / max(len(set(right)), 1),
    }
    print("  ".join(f"{name} {value:.3g}" for name, value in found.items()))
    return found


if __name__ == "__main__":
    main()
