"""Train the network of the Burn Book's guide in PyTorch and export it.

    python -m burnish.models.mnist.train_original --data DIR [--out DIR]

DIR holds MNIST's four gzipped IDX files. Written are `mnist.onnx` and `digits/`, the
first few digits of the same files. Needs torch, onnx and onnxscript. The older of
torch's exporters is used: it is the one that can leave Dropout in the graph.
"""

import gzip
import sys
import zlib
from pathlib import Path

import numpy as np
import onnx
import torch
from torch import Tensor, nn

from burnish.models._export import export_by_torchscript
from burnish.models._originals import OriginalError, parser, run, write

DIGITS_SHIPPED = {"train": 2000, "t10k": 1000}
HIDDEN = 128
DROPOUT = 0.25
EPOCHS = 10
BATCH = 32
RATE = 3e-3


class Model(nn.Module):
    """images (batch, 28, 28) -> logits (batch, 10)"""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3)
        self.conv2 = nn.Conv2d(8, 16, 3)
        self.pool = nn.AdaptiveAvgPool2d((8, 8))
        self.dropout = nn.Dropout(DROPOUT)
        self.linear1 = nn.Linear(16 * 8 * 8, HIDDEN)
        self.linear2 = nn.Linear(HIDDEN, 10)
        self.activation = nn.ReLU()

    def forward(self, images: Tensor) -> Tensor:
        batch, height, width = images.shape
        x = images.reshape(batch, 1, height, width)
        x = self.dropout(self.conv1(x))
        x = self.dropout(self.conv2(x))
        x = self.pool(self.activation(x))  # (batch, 16, 8, 8)
        x = self.dropout(self.linear1(x.flatten(1)))
        return self.linear2(self.activation(x))


def read_idx(path: Path) -> np.ndarray:
    """The array of bytes in a gzipped IDX file."""
    packed = path.read_bytes()
    try:
        content = gzip.decompress(packed)
        kind, rank = content[2:4]
        shape = np.frombuffer(content, ">u4", rank, offset=4)
        array = np.frombuffer(content, np.uint8, offset=4 + 4 * rank).reshape(shape)
    except (EOFError, ValueError, gzip.BadGzipFile, zlib.error) as error:
        raise OriginalError(f"{path} is not a gzipped IDX file: {error}") from None
    if kind != 0x08:
        raise OriginalError(f"{path} holds numbers of kind {kind:#04x}, not bytes")
    return array


def write_idx(path: Path, array: np.ndarray) -> None:
    """Write bytes as a gzipped IDX file, the same one each time."""
    header = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes()
    write(path, gzip.compress(header + array.tobytes(), 9, mtime=0))


def load(data: Path, split: str) -> tuple[Tensor, Tensor]:
    """Normalised images (n, 28, 28) and their labels (n,)."""
    images = torch.tensor(read_idx(data / f"{split}-images-idx3-ubyte.gz"))
    labels = torch.tensor(read_idx(data / f"{split}-labels-idx1-ubyte.gz"))
    return (images / 255 - 0.1307) / 0.3081, labels.long()


def train(model: Model, images: Tensor, labels: Tensor) -> None:
    optimizer = torch.optim.Adam(model.parameters())
    steps = EPOCHS * -(-len(images) // BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, total_steps=steps)
    for epoch in range(EPOCHS):
        model.train()
        total = 0.0
        for chosen in torch.randperm(len(images)).split(BATCH):
            loss = nn.functional.cross_entropy(model(images[chosen]), labels[chosen])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.item() * len(chosen)
        print(f"epoch {epoch + 1:2}  loss {total / len(images):.4f}")
    model.eval()


@torch.no_grad()
def accuracy(model: Model, images: Tensor, labels: Tensor) -> float:
    return (model(images).argmax(1) == labels).double().mean().item()


def export(model: Model, images: Tensor) -> bytes:
    """The network as it predicts, with its Dropout nodes, as an ONNX file."""
    inputs = {"images": images}
    traced = export_by_torchscript(model.train(), inputs, "logits", {0: "batch"})
    exported = onnx.load_from_string(traced)
    set_to_inference(exported.graph)
    onnx.checker.check_model(exported, full_check=True)
    return exported.SerializeToString(deterministic=True)


def set_to_inference(graph: onnx.GraphProto) -> None:
    """Take away the `training_mode` input of each Dropout."""
    modes = set()
    for node in graph.node:
        if node.op_type == "Dropout":
            modes.add(node.input.pop())
    kept = [node for node in graph.node if not modes.intersection(node.output)]
    del graph.node[:]
    graph.node.extend(kept)


def main() -> list[Path]:
    arguments = parser("mnist", __doc__)
    arguments.add_argument("--data", type=Path, metavar="DIR", required=True)
    options = arguments.parse_args()

    torch.manual_seed(0)
    model = Model()
    train(model, *load(options.data, "train"))
    images, labels = load(options.data, "t10k")
    print(f"test accuracy {accuracy(model, images, labels):.2%}")

    written = [options.out / "mnist.onnx"]
    write(written[0], export(model, images[:2]))
    for split, count in DIGITS_SHIPPED.items():
        for part in ("images-idx3", "labels-idx1"):
            name = f"{split}-{part}-ubyte.gz"
            written.append(options.out / "digits" / name)
            write_idx(written[-1], read_idx(options.data / name)[:count])
    return written


if __name__ == "__main__":
    sys.exit(run(main))
