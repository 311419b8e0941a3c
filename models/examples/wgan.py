"""A Wasserstein GAN that learns to write digits.

    python -m burnish.models.examples.wgan [--data FOLDER] [--steps 600]
        [--run runs/wgan]

The critic says how much more a real digit is worth than a generated one; that its
slope stays near 1 is asked of it by a gradient penalty (Gulrajani et al.,
arXiv:1704.00028), whose gradient is one of a gradient. The network of the gallery's
`mnist` judges the result. Pictures of digits are written where Pillow is installed.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from itertools import chain, count, pairwise
from pathlib import Path

import numpy as np

from burnish import Tensor, data, nn, ops, optim, seed
from burnish.models.examples.guide import DIGITS
from burnish.models.mnist.mnist import Model as Reader

LATENT = 32
CRITIC_STEPS = 4
PENALTY = 10.0


def scaled(images: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray]:
    """A batcher: (batch, 784) from -1 to 1."""
    return (images.reshape(len(images), -1).astype(np.float32) / 127.5 - 1,)


def network(*sizes: int) -> nn.Sequential:
    """Linear layers with leaky corners between them."""
    layers: list[nn.Module] = []
    for inside, out in pairwise(sizes):
        layers += [nn.Linear(inside, out), nn.LeakyReLU(0.2)]
    return nn.Sequential(*layers[:-1])


class Gan:
    """Generator and critic, each with its own optimizer."""

    def __init__(self, rate: float = 3e-4):
        self.generator = network(LATENT, 256, 512, 784).to("cpu:autodiff")
        self.critic = network(784, 512, 256, 1).to("cpu:autodiff")
        self.optimizers = (
            optim.Adam(betas=(0.5, 0.9)),
            optim.Adam(betas=(0.5, 0.9)),
        )
        self.rate = rate

    def generate(self, number: int) -> Tensor:
        """(number, 784) from -1 to 1"""
        return ops.tanh(self.generator(Tensor.randn(number, LATENT)))

    def train_critic(self, real: Tensor) -> float:
        """One step; how far apart the critic holds real and generated digits."""
        fake = self.generate(len(real)).detach()
        distance = self.critic(real).mean() - self.critic(fake).mean()
        loss = PENALTY * self.steepness(real, fake) - distance
        self.optimizers[0].step(self.rate, self.critic, loss.backward())
        return distance.item()

    def steepness(self, real: Tensor, fake: Tensor) -> Tensor:
        """How far the critic's slope is from 1, somewhere between real and fake."""
        place = Tensor.rand(len(real), 1)
        between = (real + place * (fake - real)).require_grad()
        gradients = self.critic(between).sum().backward(create_graph=True)
        slope = between.grad(gradients)
        assert slope is not None
        return (((slope * slope).sum(1) + 1e-12).sqrt() - 1).square().mean()

    def train_generator(self, number: int) -> None:
        """One step towards what the critic takes for real."""
        loss = -self.critic(self.generate(number)).mean()
        self.optimizers[1].step(self.rate, self.generator, loss.backward())


def judged(images: np.ndarray) -> dict[str, float]:
    """What the gallery's network makes of digits (n, 784) from -1 to 1.

    "sure": its share for the digit it reads, on average; "variety": e to the entropy of
    what it reads, 10 where it reads every digit as often.
    """
    pixels = ((images.reshape(-1, 28, 28) + 1) / 2 - 0.1307) / 0.3081
    shares = ops.softmax(Reader.from_file()(pixels.astype(np.float32)), axis=1).numpy()
    often = (shares.argmax(1)[:, None] == np.arange(10)).mean(0)
    entropy = -(often * np.log(often + 1e-12)).sum()
    return {"sure": float(shares.max(1).mean()), "variety": float(np.exp(entropy))}


def save_grid(path: Path, images: np.ndarray) -> None:
    """Write 8 by 8 digits as one picture."""
    from PIL import Image

    grid = images[:64].reshape(8, 8, 28, 28).swapaxes(1, 2).reshape(224, 224)
    Image.fromarray(((grid + 1) * 127.5).astype(np.uint8)).save(path)


def endless(batches: data.DataLoader) -> Iterator[Tensor]:
    """Batches of one epoch after the other."""
    return (real for (real,) in chain.from_iterable(batches for _ in count()))


def main(argv: list[str] | None = None) -> dict[str, float]:
    """Train, and give the critic's last distance and how the digits are judged."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=DIGITS)
    parser.add_argument("--steps", type=int, default=600, help="of the generator")
    parser.add_argument("--run", type=Path, default=Path("runs/wgan"))
    options = parser.parse_args(argv)

    seed(0)
    digits = data.MnistDataset(options.data, "train")
    real = endless(data.batches(digits, 64, shuffle=0, drop_last=True, batcher=scaled))
    gan = Gan()
    options.run.mkdir(parents=True, exist_ok=True)
    found: dict[str, float] = {}
    for step in range(1, options.steps + 1):
        distances = [gan.train_critic(next(real)) for _ in range(CRITIC_STEPS)]
        gan.train_generator(64)
        if step % 100 and step != options.steps:
            continue
        images = gan.generate(256).numpy()
        found = {"distance": distances[-1], **judged(images)}
        shown = "  ".join(f"{name} {value:.2f}" for name, value in found.items())
        print(f"step {step:4}  {shown}")
        try:
            save_grid(options.run / f"digits-{step:04}.png", images)
        except ImportError:
            print("pip install 'burnish[data]' to get pictures of the digits")
    gan.generator.valid().save_file(options.run / "generator.safetensors")
    return found


if __name__ == "__main__":
    main()
