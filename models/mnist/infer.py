"""Read the digits that ship with the package.

python -m burnish.models.mnist.infer [--count 6] [--device cpu]
"""

from __future__ import annotations

import argparse
import sys

import numpy as np

from burnish.models.mnist.mnist import Model
from burnish.models.mnist.train import digits, normalised, score

SHADES = " ░▒▓█"


def drawing(image: np.ndarray) -> str:
    """28 lines in 14: each character is two pixels high."""
    pairs = image.reshape(14, 2, 28).mean(1)
    levels = (pairs * (len(SHADES) - 0.01)).astype(int)
    return "\n".join("".join(SHADES[level] for level in row) for row in levels)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=6, help="digits to show")
    parser.add_argument("--device", default="cpu", help='"cpu" or "cuda"')
    options = parser.parse_args()

    model = Model.from_file().to(options.device)
    images, labels = digits("test")
    shown = images[: options.count]
    logits = np.asarray(model(normalised(shown)))
    odds = np.exp(logits - logits.max(1, keepdims=True))
    odds /= odds.sum(1, keepdims=True)
    for image, row, label in zip(shown, odds, labels[: options.count], strict=True):
        print(drawing(image))
        print(f"reads {row.argmax()} ({row.max():.1%} sure), it is {label}\n")
    print(f"{score(model, images, labels):.1%} of {len(images):,} digits are right")
    return 0


if __name__ == "__main__":
    sys.exit(main())
