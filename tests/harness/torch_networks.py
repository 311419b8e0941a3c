"""PyTorch modules that tests export: the usual architectures, small or as published."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn


class BasicBlock(nn.Module):
    def __init__(self, before: int, after: int, stride: int):
        super().__init__()
        self.conv1 = nn.Conv2d(before, after, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(after)
        self.conv2 = nn.Conv2d(after, after, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(after)
        self.downsample: Any = None
        if stride > 1:
            conv = nn.Conv2d(before, after, 1, stride, bias=False)
            self.downsample = nn.Sequential(conv, nn.BatchNorm2d(after))

    def forward(self, x: Tensor) -> Tensor:
        y = self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x)))))
        return torch.relu(y + (self.downsample(x) if self.downsample else x))


class ResNet18(nn.Module):
    def __init__(self, classes: int = 10):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        widths = (64, 64), (64, 128), (128, 256), (256, 512)
        for i, (before, after) in enumerate(widths, 1):
            first = BasicBlock(before, after, 1 if i == 1 else 2)
            layer = nn.Sequential(first, BasicBlock(after, after, 1))
            setattr(self, f"layer{i}", layer)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(512, classes)

    def forward(self, images: Tensor) -> Tensor:
        x = self.maxpool(torch.relu(self.bn1(self.conv1(images))))
        for i in range(1, 5):
            x = getattr(self, f"layer{i}")(x)
        return self.fc(self.avgpool(x).flatten(1))


class Fire(nn.Module):
    def __init__(self, before: int, squeezed: int, each: int):
        super().__init__()
        self.squeeze = nn.Conv2d(before, squeezed, 1)
        self.expand1x1 = nn.Conv2d(squeezed, each, 1)
        self.expand3x3 = nn.Conv2d(squeezed, each, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.relu(self.squeeze(x))
        return torch.relu(torch.cat([self.expand1x1(x), self.expand3x3(x)], 1))


class SqueezeNet(nn.Module):
    def __init__(self, classes: int = 10):
        super().__init__()

        def pool() -> nn.Module:
            return nn.MaxPool2d(3, 2, ceil_mode=True)

        self.features = nn.Sequential(
            nn.Conv2d(3, 64, 3, 2),
            nn.ReLU(),
            pool(),
            Fire(64, 16, 64),
            Fire(128, 16, 64),
            pool(),
            Fire(128, 32, 128),
            Fire(256, 32, 128),
            pool(),
            Fire(256, 48, 192),
            Fire(384, 48, 192),
            Fire(384, 64, 256),
            Fire(512, 64, 256),
        )
        self.classifier = nn.Conv2d(512, classes, 1)

    def forward(self, images: Tensor) -> Tensor:
        return self.classifier(self.features(images)).mean((2, 3))


class Tagger(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(50, 16)
        self.lstm = nn.LSTM(16, 24, num_layers=2, batch_first=True, bidirectional=True)
        self.head = nn.Linear(48, 5)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(self.lstm(self.embedding(tokens))[0])


class AutoEncoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, 8, 3, 2, 1),
            nn.BatchNorm2d(8),
            nn.ReLU(),
            nn.Conv2d(8, 16, 3, 2, 1),
            nn.BatchNorm2d(16),
            nn.LeakyReLU(0.2),
        )
        self.decoder = nn.Sequential(
            nn.ConvTranspose2d(16, 8, 3, 2, 1, output_padding=1),
            nn.BatchNorm2d(8),
            nn.ReLU(),
            nn.ConvTranspose2d(8, 1, 4, 2, 1),
            nn.Sigmoid(),
        )

    def forward(self, images: Tensor) -> Tensor:
        return self.decoder(self.encoder(images))


def encoder() -> nn.Module:
    """PyTorch's own transformer; forward(src)."""
    layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True)
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)


def bert() -> nn.Module:
    import transformers

    config = transformers.BertConfig(
        vocab_size=97,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=40,
    )
    return transformers.BertModel(config, add_pooling_layer=False)


def gpt2() -> nn.Module:
    import transformers

    config = transformers.GPT2Config(
        vocab_size=97,
        n_embd=32,
        n_layer=2,
        n_head=4,
        n_positions=40,
        bos_token_id=1,
        eos_token_id=1,
        use_cache=False,
    )
    return transformers.GPT2LMHeadModel(config)


def llama() -> nn.Module:
    import transformers

    config = transformers.LlamaConfig(
        vocab_size=97,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=40,
        use_cache=False,
    )
    return transformers.LlamaForCausalLM(config)
