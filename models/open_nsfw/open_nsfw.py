"""input_0 -> 4195

Imported from open_nsfw.onnx (opset 17), sha256
fb29e60f4b224afa2a4a16d5f3e5993375efe15f88b4c591311eb3a6e5b251d8;
weights in open_nsfw.safetensors.
"""

from burnish import nn, ops


class Bottleneck(nn.Module):
    """(batch, in_channels, _, _) -> (batch, _, _, _)"""

    def __init__(self, in_channels, channels, stride=1, downsample=False):
        self.conv1 = nn.Conv2d(in_channels, channels, 1, stride=stride)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1)
        self.conv3 = nn.Conv2d(channels, 4 * channels, 1)
        self.downsample = (
            nn.Conv2d(in_channels, 4 * channels, 1, stride=stride)
            if downsample
            else nn.Identity()
        )

    def forward(self, x):
        y = self.conv2(ops.relu(self.conv1(x)))
        return ops.relu(self.conv3(ops.relu(y)) + self.downsample(x))


class Model(nn.Module):
    def __init__(self, classes=2):
        self.conv = nn.Conv2d(3, 64, 7, stride=2)
        self.stage1 = nn.Sequential(
            Bottleneck(64, 32, downsample=True),
            Bottleneck(128, 32),
            Bottleneck(128, 32),
        )
        self.stage2 = nn.Sequential(
            Bottleneck(128, 64, stride=2, downsample=True),
            *[Bottleneck(256, 64) for _ in range(3)],
        )
        self.stage3 = nn.Sequential(
            Bottleneck(256, 128, stride=2, downsample=True),
            *[Bottleneck(512, 128) for _ in range(5)],
        )
        self.stage4 = nn.Sequential(
            Bottleneck(512, 256, stride=2, downsample=True),
            Bottleneck(1024, 256),
            Bottleneck(1024, 256),
        )
        self.head = nn.Linear(1024, classes)

    @nn.accepts(input_0="float32[batch, 224, 224, 3]")
    def forward(self, input_0):
        x = input_0.transpose(0, 3, 1, 2)
        x = ops.relu(self.conv(ops.pad(x, pads=((0, 0), (0, 0), (3, 3), (3, 3)))))
        x = ops.pad(x, pads=((0, 0), (0, 0), (0, 1), (0, 1)), mode="edge")
        x = self.stage2(self.stage1(ops.max_pool(x, kernel_size=3, stride=2)))
        x = self.stage4(self.stage3(x)).mean((2, 3))
        return ops.softmax(self.head(x))
