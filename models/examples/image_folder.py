"""A folder of pictures, one folder a class, and a small convolutional network.

    python -m burnish.models.examples.image_folder [--folder runs/shapes] [--count 600]
        [--epochs 10] [--workers 2] [--run runs/image_folder]

A folder that is not there is made up first: bright discs, squares and triangles of
many sizes on dark ground. Pictures are read when they are needed, by threads, and
turned at random while training. Needs Pillow: pip install 'burnish[data]'.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from burnish import Tensor, data, nn, ops, optim, seed
from burnish.errors import InputError
from burnish.learner import Accuracy, KeepBest, Learner, Loss, Supervised

SIZE = 32
SHAPES = ("disc", "square", "triangle")


def make_up(folder: Path, count: int) -> None:
    """Write `count` pictures as PNG files: folder/disc/0000.png and so on."""
    try:
        from PIL import Image
    except ImportError:
        raise InputError(
            "image_folder: expected the package Pillow; pip install 'burnish[data]'"
        ) from None
    rng = np.random.default_rng(0)
    y, x = np.mgrid[:SIZE, :SIZE].astype(np.float32)
    for number in range(count):
        shape = SHAPES[number % len(SHAPES)]
        radius = rng.uniform(6, 10)
        across, down = (grid - rng.uniform(12, 20) for grid in (x, y))
        inside = {
            "disc": across**2 + down**2 < radius**2,
            "square": np.maximum(abs(across), abs(down)) < 0.85 * radius,
            "triangle": (down < radius / 2) & (3**0.5 * abs(across) < radius + down),
        }[shape]
        ground, colour = rng.uniform(0, 110, 3), rng.uniform(145, 255, 3)
        picture = np.where(inside[:, :, None], colour, ground)
        picture = picture + rng.normal(0, 12, picture.shape)
        path = folder / shape / f"{number:04}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(picture.clip(0, 255).astype(np.uint8)).save(path)


def turned(item: Any, generator: np.random.Generator) -> Any:
    """A picture turned by quarters and mirrored, whatever comes; its class stays."""
    image, label = item
    image = np.rot90(image, int(generator.integers(4)))
    return image[:, :: generator.choice((-1, 1))], label


class Network(nn.Module):
    """(batch, 3, 32, 32) -> (batch, classes)"""

    def __init__(self, classes: int):
        self.conv1 = nn.Conv2d(3, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.conv3 = nn.Conv2d(32, 32, 3, padding=1)
        self.norm1 = nn.BatchNorm2d(16)
        self.norm2 = nn.BatchNorm2d(32)
        self.norm3 = nn.BatchNorm2d(32)
        self.fc = nn.Linear(32, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = ops.max_pool(ops.relu(self.norm1(self.conv1(x))), kernel_size=2)
        x = ops.max_pool(ops.relu(self.norm2(self.conv2(x))), kernel_size=2)
        x = ops.relu(self.norm3(self.conv3(x)))
        return self.fc(x.mean(axis=(2, 3)))


def main(argv: list[str] | None = None) -> dict[str, float]:
    """Train, and give the last epoch's metrics of pictures that were held back."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", type=Path, default=Path("runs/shapes"))
    parser.add_argument("--count", type=int, default=600, help="of pictures made up")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--workers", type=int, default=2, help="threads that read")
    parser.add_argument("--run", type=Path, default=Path("runs/image_folder"))
    options = parser.parse_args(argv)

    seed(0)
    if not options.folder.exists():
        make_up(options.folder, options.count)
    pictures = data.ImageFolderDataset.classification(options.folder, size=(SIZE, SIZE))
    print(f"{len(pictures)} pictures of {', '.join(pictures.classes)}")
    train, valid = data.train_test_split(pictures, test=0.2)
    batches = data.batches(
        train,
        32,
        shuffle=0,
        augment=turned,
        batcher=data.channels_first,
        num_workers=options.workers,
    )
    learner = Learner(
        Network(len(pictures.classes)),
        optim.AdamW(),
        optim.OneCycle(5e-3, options.epochs * len(batches)),
        step=Supervised(nn.CrossEntropyLoss()),
        metrics=[Accuracy(), Loss()],
        epochs=options.epochs,
        directory=options.run,
        checkpoints=KeepBest("Accuracy"),
        overwrite=True,
    )
    model = learner.fit(batches, data.batches(valid, 64, batcher=data.channels_first))
    image, label = valid[0]
    (pixels,) = data.channels_first(image[None])
    read = int(model(Tensor(pixels)).argmax(1).item())
    print(f"a {pictures.classes[label]} is taken for a {pictures.classes[read]}")
    return {
        name: learner.store.epochs(name, "valid")[options.epochs]
        for name in ("Accuracy", "Loss")
    }


if __name__ == "__main__":
    main()
