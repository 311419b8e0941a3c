"""images -> logits

Imported from resnet18_torchscript.onnx (opset 18), sha256
734157b50129ea708b050ccffac83822250b66a24cd197bbd138a1346ab6b483;
weights in resnet18_torchscript.safetensors.
"""

from burnish import nn, ops


class Layer(nn.Module):
    """(batch, in_channels, _, _) -> (batch, channels, _, _)"""

    def __init__(self, in_channels, channels, stride=1, downsample=False):
        self.conv1 = nn.Conv2d(
            in_channels, channels, 3, stride=stride, padding=1, bias=False
        )
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.downsample = (
            nn.Sequential(
                nn.Conv2d(in_channels, channels, 1, stride=2, bias=False),
                nn.BatchNorm2d(channels),
            )
            if downsample
            else nn.Identity()
        )

    def forward(self, x):
        y = ops.relu(self.bn1(self.conv1(x)))
        return ops.relu(self.bn2(self.conv2(y)) + self.downsample(x))


class Model(nn.Module):
    def __init__(self, classes=1000):
        self.conv1 = nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.layer1 = [Layer(64, 64) for _ in range(2)]
        self.layer2 = nn.Sequential(
            Layer(64, 128, stride=2, downsample=True), Layer(128, 128)
        )
        self.layer3 = nn.Sequential(
            Layer(128, 256, stride=2, downsample=True), Layer(256, 256)
        )
        self.layer4 = nn.Sequential(
            Layer(256, 512, stride=2, downsample=True), Layer(512, 512)
        )
        self.fc = nn.Linear(512, classes)

    @nn.accepts(images="float32[batch, 3, 224, 224]")
    def forward(self, images):
        x = ops.relu(self.bn1(self.conv1(images)))
        x = ops.max_pool(x, kernel_size=3, stride=2, padding=1)
        for layer in self.layer1:
            x = layer(x)
        x = self.layer4(self.layer3(self.layer2(x)))
        return self.fc(ops.flatten(ops.global_avg_pool(x)))
