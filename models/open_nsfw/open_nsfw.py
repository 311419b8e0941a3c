"""input_0 -> 4195

Imported from open_nsfw.onnx (opset 17), sha256
fb29e60f4b224afa2a4a16d5f3e5993375efe15f88b4c591311eb3a6e5b251d8;
weights in open_nsfw.safetensors.
"""

from burnish import nn, ops


class Bottleneck(nn.Module):
    """(batch, _, _, _) -> (batch, _, _, _)"""

    def __init__(self, channels, stride=1):
        self.conv1 = nn.Conv2d(2 * channels, channels, 1, stride=stride, bias=False)
        self.bias = nn.Param(nn.init.normal(0.02), (1, 1, 1, channels))
        self.mean = nn.Param(nn.init.normal(0.02), (1, 1, 1, channels))
        self.scale = nn.Param(nn.init.normal(0.02), (1, 1, 1, channels))
        self.bias2 = nn.Param(nn.init.normal(0.02), (1, 1, 1, channels))
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bias3 = nn.Param(nn.init.normal(0.02), (1, 1, 1, channels))
        self.mean2 = nn.Param(nn.init.normal(0.02), (1, 1, 1, channels))
        self.scale2 = nn.Param(nn.init.normal(0.02), (1, 1, 1, channels))
        self.bias4 = nn.Param(nn.init.normal(0.02), (1, 1, 1, channels))
        self.conv3 = nn.Conv2d(channels, 4 * channels, 1, bias=False)
        self.bias5 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 4 * channels))
        self.mean3 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 4 * channels))
        self.scale3 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 4 * channels))
        self.bias6 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 4 * channels))
        self.conv4 = nn.Conv2d(2 * channels, 4 * channels, 1, stride=stride, bias=False)
        self.bias7 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 4 * channels))
        self.mean4 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 4 * channels))
        self.scale4 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 4 * channels))

    def forward(self, x):
        y = self.conv1(x.transpose(0, 3, 1, 2)).transpose(0, 2, 3, 1)
        y = (y + self.bias - self.mean) * self.scale + self.bias2
        y = self.conv2(ops.relu(y).transpose(0, 3, 1, 2))
        y = (y.transpose(0, 2, 3, 1) + self.bias3 - self.mean2) * self.scale2
        y = self.conv3(ops.relu(y + self.bias4).transpose(0, 3, 1, 2))
        y = y.transpose(0, 2, 3, 1) + self.bias5 - self.mean3
        x = self.conv4(x.transpose(0, 3, 1, 2)).transpose(0, 2, 3, 1)
        x = (x + self.bias7 - self.mean4) * self.scale4 + self.bias6
        return ops.relu(y * self.scale3 + self.bias6 + x)


class Bottleneck2(nn.Module):
    """(batch, _, _, _) -> (batch, _, _, _)"""

    def __init__(self, channels):
        self.conv1 = nn.Conv2d(4 * channels, channels, 1, bias=False)
        self.bias = nn.Param(nn.init.normal(0.02), (1, 1, 1, channels))
        self.mean = nn.Param(nn.init.normal(0.02), (1, 1, 1, channels))
        self.scale = nn.Param(nn.init.normal(0.02), (1, 1, 1, channels))
        self.bias2 = nn.Param(nn.init.normal(0.02), (1, 1, 1, channels))
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bias3 = nn.Param(nn.init.normal(0.02), (1, 1, 1, channels))
        self.mean2 = nn.Param(nn.init.normal(0.02), (1, 1, 1, channels))
        self.scale2 = nn.Param(nn.init.normal(0.02), (1, 1, 1, channels))
        self.bias4 = nn.Param(nn.init.normal(0.02), (1, 1, 1, channels))
        self.conv3 = nn.Conv2d(channels, 4 * channels, 1, bias=False)
        self.bias5 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 4 * channels))
        self.mean3 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 4 * channels))
        self.scale3 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 4 * channels))
        self.bias6 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 4 * channels))

    def forward(self, x):
        y = self.conv1(x.transpose(0, 3, 1, 2)).transpose(0, 2, 3, 1)
        y = (y + self.bias - self.mean) * self.scale + self.bias2
        y = self.conv2(ops.relu(y).transpose(0, 3, 1, 2))
        y = (y.transpose(0, 2, 3, 1) + self.bias3 - self.mean2) * self.scale2
        y = self.conv3(ops.relu(y + self.bias4).transpose(0, 3, 1, 2))
        y = y.transpose(0, 2, 3, 1) + self.bias5 - self.mean3
        return ops.relu(y * self.scale3 + self.bias6 + x)


class Model(nn.Module):
    def __init__(self, classes=2):
        self.conv = nn.Conv2d(3, 64, 7, stride=2, bias=False)
        self.bias = nn.Param(nn.init.normal(0.02), (1, 1, 1, 64))
        self.mean = nn.Param(nn.init.normal(0.02), (1, 1, 1, 64))
        self.scale = nn.Param(nn.init.normal(0.02), (1, 1, 1, 64))
        self.bias2 = nn.Param(nn.init.normal(0.02), (1, 1, 1, 64))
        self.stage1 = nn.Sequential(Bottleneck(32), Bottleneck2(32), Bottleneck2(32))
        self.stage2 = nn.Sequential(
            Bottleneck(64, stride=2), Bottleneck2(64), Bottleneck2(64), Bottleneck2(64)
        )
        self.stage3 = nn.Sequential(
            Bottleneck(128, stride=2),
            Bottleneck2(128),
            Bottleneck2(128),
            Bottleneck2(128),
            Bottleneck2(128),
            Bottleneck2(128),
        )
        self.stage4 = nn.Sequential(
            Bottleneck(256, stride=2), Bottleneck2(256), Bottleneck2(256)
        )
        self.head = nn.Linear(1024, classes)

    @nn.accepts(input_0="float32[batch, 224, 224, 3]")
    def forward(self, input_0):
        x = ops.pad(input_0, pads=((0, 0), (3, 3), (3, 3), (0, 0)))
        x = self.conv(x.transpose(0, 3, 1, 2)).transpose(0, 2, 3, 1)
        x = (x + self.bias - self.mean) * self.scale
        x = ops.relu(x + self.bias2).transpose(0, 3, 1, 2)
        x = ops.pad(x, pads=((0, 0), (0, 0), (0, 1), (0, 1)), mode="edge")
        x = self.stage1(ops.max_pool(x, kernel_size=3, stride=2).transpose(0, 2, 3, 1))
        x = self.stage4(self.stage3(self.stage2(x)))
        return ops.softmax(self.head(x.mean((1, 2))))
