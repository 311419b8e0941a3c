"""Networks of published shapes, written once for `burnish.nn` and `torch.nn` alike.

nn is either module, functions what has relu and cat. Parameters have the same names in
both, so that a state of one loads into the other.
"""

from __future__ import annotations

from typing import Any


def cnn(nn: Any, relu: Any) -> Any:
    """The guide's classifier of digits: (N, 1, 28, 28) -> (N, 10)"""

    class Model(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.conv1 = nn.Conv2d(1, 8, 3)
            self.conv2 = nn.Conv2d(8, 16, 3)
            self.pool = nn.AdaptiveAvgPool2d(8)
            self.dropout = nn.Dropout(0.5)
            self.linear1 = nn.Linear(16 * 8 * 8, 512)
            self.linear2 = nn.Linear(512, 10)

        def forward(self, x: Any) -> Any:
            x = self.dropout(self.conv1(x))
            x = relu(self.dropout(self.conv2(x)))
            x = self.pool(x).reshape(x.shape[0], 16 * 8 * 8)
            return self.linear2(relu(self.dropout(self.linear1(x))))

    return Model()


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


def resnet50(nn: Any, classes: int = 10) -> Any:
    """ResNet-50: (N, 3, H, W) -> (N, classes)"""

    class Block(nn.Module):  # type: ignore[misc]
        def __init__(self, inside: int, wide: int, stride: int) -> None:
            super().__init__()
            outside = 4 * wide
            self.inner = nn.Sequential(
                *_normed(nn, inside, wide, 1, 1, nn.ReLU),
                *_normed(nn, wide, wide, 3, stride, nn.ReLU),
                _conv(nn, wide, outside, 1, 1),
                nn.BatchNorm2d(outside),
            )
            self.relu = nn.ReLU()
            self.downsample = None
            if stride > 1 or inside != outside:
                self.downsample = nn.Sequential(
                    _conv(nn, inside, outside, 1, stride), nn.BatchNorm2d(outside)
                )

        def forward(self, x: Any) -> Any:
            y = self.inner(x)
            return self.relu(y + (self.downsample(x) if self.downsample else x))

    inside, blocks = 64, []
    for wide, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for i in range(count):
            blocks.append(Block(inside, wide, 1 if i else stride))
            inside = 4 * wide
    stem = [*_normed(nn, 3, 64, 7, 2, nn.ReLU), nn.MaxPool2d(3, 2, 1)]
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, classes)]
    return nn.Sequential(*stem, *blocks, *head)


def mobilenet_v2(nn: Any, classes: int = 10) -> Any:
    """MobileNetV2 without dropout: (N, 3, H, W) -> (N, classes)"""

    class Block(nn.Module):  # type: ignore[misc]
        def __init__(self, inside: int, outside: int, stride: int, by: int) -> None:
            super().__init__()
            wide = inside * by
            layers = _normed(nn, inside, wide, 1, 1, nn.ReLU6) if by > 1 else []
            layers += _normed(nn, wide, wide, 3, stride, nn.ReLU6, groups=wide)
            layers += [_conv(nn, wide, outside, 1, 1), nn.BatchNorm2d(outside)]
            self.conv = nn.Sequential(*layers)
            self.is_residual = stride == 1 and inside == outside

        def forward(self, x: Any) -> Any:
            return x + self.conv(x) if self.is_residual else self.conv(x)

    inside, layers = 32, _normed(nn, 3, 32, 3, 2, nn.ReLU6)
    for by, outside, count, stride in _STAGES:
        for i in range(count):
            layers.append(Block(inside, outside, 1 if i else stride, by))
            inside = outside
    layers += _normed(nn, inside, 1280, 1, 1, nn.ReLU6)
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


def efficientnet_b0(nn: Any, classes: int = 10) -> Any:
    """EfficientNet-B0 without dropout: (N, 3, H, W) -> (N, classes)"""

    class Squeeze(nn.Module):  # type: ignore[misc]
        def __init__(self, wide: int, few: int) -> None:
            super().__init__()
            self.scale = nn.Sequential(
                nn.AdaptiveAvgPool2d(1),
                nn.Conv2d(wide, few, 1),
                nn.SiLU(),
                nn.Conv2d(few, wide, 1),
                nn.Sigmoid(),
            )

        def forward(self, x: Any) -> Any:
            return x * self.scale(x)

    class Block(nn.Module):  # type: ignore[misc]
        def __init__(
            self, inside: int, outside: int, kernel: int, stride: int, by: int
        ) -> None:
            super().__init__()
            wide, silu = inside * by, nn.SiLU
            layers = _normed(nn, inside, wide, 1, 1, silu) if by > 1 else []
            layers += _normed(nn, wide, wide, kernel, stride, silu, groups=wide)
            layers += [Squeeze(wide, max(1, inside // 4))]
            layers += [_conv(nn, wide, outside, 1, 1), nn.BatchNorm2d(outside)]
            self.block = nn.Sequential(*layers)
            self.is_residual = stride == 1 and inside == outside

        def forward(self, x: Any) -> Any:
            return x + self.block(x) if self.is_residual else self.block(x)

    inside, layers = 32, _normed(nn, 3, 32, 3, 2, nn.SiLU)
    for by, outside, count, stride, kernel in _MBCONV:
        for i in range(count):
            layers.append(Block(inside, outside, kernel, 1 if i else stride, by))
            inside = outside
    layers += _normed(nn, inside, 1280, 1, 1, nn.SiLU)
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(1280, classes)]
    return nn.Sequential(*layers, *head)


_MBCONV = (
    (1, 16, 1, 1, 3),
    (6, 24, 2, 2, 3),
    (6, 40, 2, 2, 5),
    (6, 80, 3, 2, 3),
    (6, 112, 3, 1, 5),
    (6, 192, 4, 2, 5),
    (6, 320, 1, 1, 3),
)
"""Of EfficientNet-B0: expansion, channels, blocks, the first one's stride, kernel."""


def convnext_t(nn: Any, classes: int = 10) -> Any:
    """ConvNeXt-T without layer scale: (N, 3, H, W) -> (N, classes)"""

    class Norm(nn.Module):  # type: ignore[misc]
        """Layer norm over the channels of images."""

        def __init__(self, channels: int) -> None:
            super().__init__()
            self.norm = nn.LayerNorm(channels)

        def forward(self, x: Any) -> Any:
            return self.norm(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)

    class Block(nn.Module):  # type: ignore[misc]
        def __init__(self, dim: int) -> None:
            super().__init__()
            self.depthwise = nn.Conv2d(dim, dim, 7, padding=3, groups=dim)
            self.inner = nn.Sequential(
                nn.LayerNorm(dim),
                nn.Linear(dim, 4 * dim),
                nn.GELU(),
                nn.Linear(4 * dim, dim),
            )

        def forward(self, x: Any) -> Any:
            y = self.inner(self.depthwise(x).permute(0, 2, 3, 1))
            return x + y.permute(0, 3, 1, 2)

    layers = [nn.Conv2d(3, 96, 4, 4), Norm(96)]
    for dim, count in ((96, 3), (192, 3), (384, 9), (768, 3)):
        if dim > 96:
            layers += [Norm(dim // 2), nn.Conv2d(dim // 2, dim, 2, 2)]
        layers += [Block(dim) for _ in range(count)]
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.LayerNorm(768)]
    return nn.Sequential(*layers, *head, nn.Linear(768, classes))


def unet(nn: Any, functions: Any, classes: int = 2) -> Any:
    """U-Net of three scales: (N, 3, H, W) -> (N, classes, H, W)"""

    def twice(inside: int, outside: int) -> Any:
        first = _normed(nn, inside, outside, 3, 1, nn.ReLU)
        return nn.Sequential(*first, *_normed(nn, outside, outside, 3, 1, nn.ReLU))

    class Model(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.down1, self.down2 = twice(3, 32), twice(32, 64)
            self.middle = twice(64, 128)
            self.pool = nn.MaxPool2d(2)
            self.up1 = nn.ConvTranspose2d(128, 64, 2, 2)
            self.up2 = nn.ConvTranspose2d(64, 32, 2, 2)
            self.left1, self.left2 = twice(128, 64), twice(64, 32)
            self.head = nn.Conv2d(32, classes, 1)

        def forward(self, x: Any) -> Any:
            a = self.down1(x)
            b = self.down2(self.pool(a))
            y = self.up1(self.middle(self.pool(b)))
            y = self.left1(functions.cat([y, b], 1))
            return self.head(self.left2(functions.cat([self.up2(y), a], 1)))

    return Model()


def gan(nn: Any) -> tuple[Any, Any]:
    """A Wasserstein GAN of 32 x 32 images: the generator (N, 64, 1, 1), the critic"""
    up, layers = nn.ConvTranspose2d, []
    for inside, outside, stride, pad in (
        (64, 128, 1, 0),
        (128, 64, 2, 1),
        (64, 32, 2, 1),
    ):
        layers += [
            up(inside, outside, 4, stride, pad),
            nn.BatchNorm2d(outside),
            nn.ReLU(),
        ]
    generator = nn.Sequential(*layers, up(32, 3, 4, 2, 1), nn.Tanh())
    layers = []
    for inside, outside in ((3, 32), (32, 64), (64, 128)):
        layers += [nn.Conv2d(inside, outside, 4, 2, 1), nn.LeakyReLU(0.2)]
    return generator, nn.Sequential(*layers, nn.Conv2d(128, 1, 4), nn.Flatten())


def _conv(nn: Any, inside: int, outside: int, kernel: int, stride: int, **more) -> Any:
    pad = kernel // 2
    return nn.Conv2d(inside, outside, kernel, stride, pad, bias=False, **more)


def _normed(
    nn: Any, inside: int, outside: int, kernel: int, stride: int, act: Any, **more
) -> list[Any]:
    conv = _conv(nn, inside, outside, kernel, stride, **more)
    return [conv, nn.BatchNorm2d(outside), act()]
