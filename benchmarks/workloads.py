"""Networks of all kinds as ONNX files with random weights: what `compiled.py` times.

    python benchmarks/workloads.py FOLDER NAME BATCH

writes FOLDER/NAME-bBATCH.onnx and an .npz of inputs beside it. Published sizes, made by
torch, torchvision or transformers, whichever a network needs.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import logging
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

Made = tuple[Any, dict[str, Any]]
"""A torch module in evaluation mode, and its inputs by name."""


def _vision(name: str, size: int = 224) -> Callable[[int], Made]:
    def make(batch: int) -> Made:
        import torch
        import torchvision

        model = getattr(torchvision.models, name)(weights=None)
        return _settled(model), {"images": torch.randn(batch, 3, size, size)}

    return make


def _settled(model: Any) -> Any:
    """Batch norms as after training, so that activations keep their size."""
    import torch

    for module in model.modules():
        if isinstance(module, torch.nn.modules.batchnorm._BatchNorm):
            torch.nn.init.uniform_(module.running_var, 0.5, 2.0)
            torch.nn.init.normal_(module.running_mean, 0, 0.1)
    return model.eval()


class _Outputs:
    """Makes modules of transformers give tensors: what `pick` says of their output."""

    def __new__(cls, model: Any, names: tuple[str, ...], pick: str) -> Any:
        import torch

        class Wrapped(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.model = model

            def forward(self, *args: Any) -> Any:
                return getattr(self.model(**dict(zip(names, args, strict=True))), pick)

        return Wrapped().eval()


def _encoder(width: int, depth: int, heads: int) -> Callable[[int], Made]:
    def make(batch: int) -> Made:
        import torch
        import transformers

        config = transformers.BertConfig(
            hidden_size=width,
            num_hidden_layers=depth,
            num_attention_heads=heads,
            intermediate_size=4 * width,
            attn_implementation="eager",
        )
        words = torch.randint(0, config.vocab_size, (batch, 128))
        names = ("input_ids", "attention_mask")
        model = _Outputs(transformers.BertModel(config), names, "last_hidden_state")
        return model, dict(zip(names, (words, torch.ones_like(words)), strict=True))

    return make


def _gpt2(words: int) -> Callable[[int], Made]:
    def make(batch: int) -> Made:
        import torch
        import transformers

        config = transformers.GPT2Config(attn_implementation="eager", use_cache=False)
        given = {"input_ids": torch.randint(0, config.vocab_size, (batch, words))}
        given["attention_mask"] = torch.ones_like(given["input_ids"])
        model = transformers.GPT2LMHeadModel(config)
        return _Outputs(model, tuple(given), "logits"), given

    return make


def _t5(batch: int) -> Made:
    import torch
    import transformers

    config = transformers.T5Config(d_model=512, d_ff=2048, num_layers=6, num_heads=8)
    model = transformers.T5EncoderModel(config)
    given = {"input_ids": torch.randint(0, config.vocab_size, (batch, 64))}
    return _Outputs(model, tuple(given), "last_hidden_state"), given


def _whisper(batch: int) -> Made:
    import torch
    import transformers
    from transformers.models.whisper.modeling_whisper import WhisperEncoder

    config = transformers.WhisperConfig(
        d_model=384,
        encoder_layers=4,
        encoder_attention_heads=6,
        encoder_ffn_dim=1536,
        attn_implementation="eager",
    )
    given = {"input_features": torch.randn(batch, 80, 3000)}
    return _Outputs(WhisperEncoder(config), tuple(given), "last_hidden_state"), given


def _detector(batch: int) -> Made:
    """YOLO-shaped: C2f blocks with SiLU, a pyramid with upsampling, three heads."""
    import torch
    from torch import nn

    def conv(i: int, o: int, k: int = 1, s: int = 1) -> Any:
        layers = (nn.Conv2d(i, o, k, s, k // 2, bias=False), nn.BatchNorm2d(o))
        return nn.Sequential(*layers, nn.SiLU())

    class Block(nn.Module):
        def __init__(self, i: int, o: int, n: int, add: bool = True):
            super().__init__()
            self.first, self.last = conv(i, o), conv((2 + n) * o // 2, o)
            self.add = add
            self.inner = nn.ModuleList(
                nn.Sequential(conv(o // 2, o // 2, 3), conv(o // 2, o // 2, 3))
                for _ in range(n)
            )

        def forward(self, x: Any) -> Any:
            parts = list(self.first(x).chunk(2, 1))
            for each in self.inner:
                y = each(parts[-1])
                parts.append(parts[-1] + y if self.add else y)
            return self.last(torch.cat(parts, 1))

    class Pyramid(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.stem = nn.Sequential(conv(3, 16, 3, 2), conv(16, 32, 3, 2))
            self.a = nn.Sequential(Block(32, 32, 1), conv(32, 64, 3, 2))
            self.b = Block(64, 64, 2)
            self.c = nn.Sequential(conv(64, 128, 3, 2), Block(128, 128, 2))
            self.d = nn.Sequential(conv(128, 256, 3, 2), Block(256, 256, 1))
            self.pool, self.join = nn.MaxPool2d(5, 1, 2), conv(512, 256)
            self.narrow, self.up = conv(256, 128), nn.Upsample(scale_factor=2)
            self.e, self.f = Block(384, 128, 1, False), Block(192, 64, 1, False)
            self.down = conv(64, 64, 3, 2)
            self.g = Block(192, 128, 1, False)
            self.heads = nn.ModuleList(
                nn.Sequential(conv(w, 64, 3), conv(64, 64, 3), nn.Conv2d(64, 144, 1))
                for w in (64, 128, 256)
            )

        def forward(self, images: Any) -> Any:
            b = self.b(self.a(self.stem(images)))
            c = self.c(b)
            d = self.narrow(self.d(c))
            pools = [d]
            for _ in range(3):
                pools.append(self.pool(pools[-1]))
            d = self.join(torch.cat(pools, 1))
            e = self.e(torch.cat([self.up(d), c], 1))
            f = self.f(torch.cat([self.up(e), b], 1))
            g = self.g(torch.cat([self.down(f), e], 1))
            maps = [h(x) for h, x in zip(self.heads, (f, g, d), strict=True)]
            y = torch.cat([m.flatten(2) for m in maps], 2)
            box, scores = y.split((64, 80), 1)
            n, _, a = box.shape
            box = box.view(n, 4, 16, a).softmax(2)
            box = (box * torch.arange(16.0).view(1, 1, 16, 1)).sum(2)
            return torch.cat([box, scores.sigmoid()], 1)

    return _settled(Pyramid()), {"images": torch.randn(batch, 3, 640, 640)}


def _keywords(batch: int) -> Made:
    """DS-CNN of keyword spotting: 49 frames of 10 features."""
    import torch
    from torch import nn

    def block(i: int, o: int, k: Any, s: Any, p: Any, groups: int = 1) -> list[Any]:
        conv = nn.Conv2d(i, o, k, s, p, groups=groups, bias=False)
        return [conv, nn.BatchNorm2d(o), nn.ReLU()]

    layers = block(1, 64, (10, 4), 2, (5, 1))
    for _ in range(4):
        layers += block(64, 64, 3, 1, 1, 64) + block(64, 64, 1, 1, 0)
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 12), nn.Softmax(-1)]
    model = nn.Sequential(*layers, *head)
    return _settled(model), {"features": torch.randn(batch, 1, 49, 10)}


def _tagger(batch: int) -> Made:
    import torch
    from torch import nn

    class Tagger(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words = nn.Embedding(10000, 100)
            self.lstm = nn.LSTM(100, 128, 2, batch_first=True, bidirectional=True)
            self.tags = nn.Linear(256, 17)

        def forward(self, words: Any) -> Any:
            return self.tags(self.lstm(self.words(words))[0]).log_softmax(-1)

    return Tagger().eval(), {"words": torch.randint(0, 10000, (batch, 32))}


def _waves(batch: int) -> Made:
    """A 1-d U-Net for sound: strided convolutions down, transposed ones up, skips."""
    import torch
    from torch import nn

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            widths = (1, 24, 48, 96, 192)
            pairs = list(itertools.pairwise(widths))
            self.down = nn.ModuleList(
                nn.Sequential(nn.Conv1d(i, o, 8, 4, 2), nn.GroupNorm(8, o), nn.GELU())
                for i, o in pairs
            )
            self.up = nn.ModuleList(
                nn.ConvTranspose1d(o, max(i, 1), 8, 4, 2) for i, o in reversed(pairs)
            )
            self.mid = nn.Conv1d(192, 192, 3, padding=1)

        def forward(self, waves: Any) -> Any:
            x, skips = waves, []
            for layer in self.down:
                skips.append(x)
                x = layer(x)
            x = torch.relu(self.mid(x))
            for layer, skip in zip(self.up, reversed(skips), strict=True):
                x = layer(x) + skip
            return torch.tanh(x)

    return Net().eval(), {"waves": torch.randn(batch, 1, 16384)}


def _mlp(batch: int) -> Made:
    import torch
    from torch import nn

    widths = (784, 256, 256)
    layers = [
        layer
        for i, o in itertools.pairwise(widths)
        for layer in (nn.Linear(i, o), nn.ReLU())
    ]
    model = nn.Sequential(*layers, nn.Linear(256, 10)).eval()
    return model, {"x": torch.randn(batch, 784)}


WORKLOADS: dict[str, Callable[[int], Made]] = {
    "resnet18": _vision("resnet18"),
    "resnet50": _vision("resnet50"),
    "mobilenet_v2": _vision("mobilenet_v2"),
    "mobilenet_v3": _vision("mobilenet_v3_large"),
    "efficientnet_b0": _vision("efficientnet_b0"),
    "squeezenet": _vision("squeezenet1_1"),
    "shufflenet": _vision("shufflenet_v2_x1_0"),
    "convnext_t": _vision("convnext_tiny"),
    "swin_t": _vision("swin_t"),
    "vit_b_16": _vision("vit_b_16"),
    "minilm": _encoder(384, 6, 12),
    "bert_base": _encoder(768, 12, 12),
    "gpt2_prefill": _gpt2(64),
    "gpt2_one_word": _gpt2(1),
    "t5_encoder": _t5,
    "whisper_encoder": _whisper,
    "detector": _detector,
    "keywords": _keywords,
    "tagger": _tagger,
    "unet_1d": _waves,
    "mlp": _mlp,
}


def make(name: str, batch: int) -> Made:
    """A network with the same random weights each time."""
    import torch

    torch.manual_seed(0)
    return WORKLOADS[name](batch)


def write(folder: Path, name: str, batch: int) -> None:
    """The ONNX file of a network, and its inputs."""
    import numpy as np
    import torch

    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    model, given = make(name, batch)
    target = folder / f"{name}-b{batch}.onnx"
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        options: dict[str, Any] = {"input_names": list(given), "opset_version": 17}
        torch.onnx.export(model, tuple(given.values()), target, dynamo=False, **options)
    np.savez(target.with_suffix(".npz"), **{k: v.numpy() for k, v in given.items()})


if __name__ == "__main__":
    write(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
