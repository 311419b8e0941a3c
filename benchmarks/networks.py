"""Networks of published shapes, written once for `burnish.nn` and `torch.nn` alike.

nn is either module; parameters have torchvision's names, so that a state of one loads
into the other.
"""

from __future__ import annotations

from typing import Any


def resnet18(nn: Any, classes: int = 10) -> Any:
    """ResNet-18: (N, 3, H, W) -> (N, classes)"""

    class Block(nn.Module):  # type: ignore[misc]
        def __init__(self, inside: int, outside: int, stride: int) -> None:
            super().__init__()
            self.conv1 = _conv(nn, inside, outside, 3, stride)
            self.bn1 = nn.BatchNorm2d(outside)
            self.conv2 = _conv(nn, outside, outside, 3, 1)
            self.bn2 = nn.BatchNorm2d(outside)
            self.relu = nn.ReLU()
            self.downsample = None
            if stride > 1 or inside != outside:
                self.downsample = nn.Sequential(
                    _conv(nn, inside, outside, 1, stride), nn.BatchNorm2d(outside)
                )

        def forward(self, x: Any) -> Any:
            y = self.relu(self.bn1(self.conv1(x)))
            y = self.bn2(self.conv2(y))
            return self.relu(y + (self.downsample(x) if self.downsample else x))

    stages = [(64, 64, 1), (64, 128, 2), (128, 256, 2), (256, 512, 2)]
    blocks = [
        Block(*each)
        for inside, outside, stride in stages
        for each in ((inside, outside, stride), (outside, outside, 1))
    ]
    return nn.Sequential(
        _conv(nn, 3, 64, 7, 2),
        nn.BatchNorm2d(64),
        nn.ReLU(),
        nn.MaxPool2d(3, 2, 1),
        *blocks,
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(512, classes),
    )


def mobilenet_v2(nn: Any, classes: int = 10) -> Any:
    """MobileNetV2 without dropout: (N, 3, H, W) -> (N, classes)"""

    class Block(nn.Module):  # type: ignore[misc]
        def __init__(self, inside: int, outside: int, stride: int, by: int) -> None:
            super().__init__()
            wide = inside * by
            layers = _normed(nn, inside, wide, 1, 1) if by > 1 else []
            layers += _normed(nn, wide, wide, 3, stride, groups=wide)
            layers += [_conv(nn, wide, outside, 1, 1), nn.BatchNorm2d(outside)]
            self.conv = nn.Sequential(*layers)
            self.is_residual = stride == 1 and inside == outside

        def forward(self, x: Any) -> Any:
            return x + self.conv(x) if self.is_residual else self.conv(x)

    inside, layers = 32, _normed(nn, 3, 32, 3, 2)
    for by, outside, count, stride in _STAGES:
        for i in range(count):
            layers.append(Block(inside, outside, 1 if i else stride, by))
            inside = outside
    layers += _normed(nn, inside, 1280, 1, 1)
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(1280, classes)]
    return nn.Sequential(*layers, *head)


_STAGES = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)
"""Of MobileNetV2: expansion, channels, blocks, the first one's stride."""


def _conv(nn: Any, inside: int, outside: int, kernel: int, stride: int, **more) -> Any:
    pad = kernel // 2
    return nn.Conv2d(inside, outside, kernel, stride, pad, bias=False, **more)


def _normed(nn: Any, inside: int, outside: int, kernel: int, stride: int, **more):
    conv = _conv(nn, inside, outside, kernel, stride, **more)
    return [conv, nn.BatchNorm2d(outside), nn.ReLU6()]
