"""images -> logits

Imported from resnet18_dynamo.onnx (opset 20), sha256
40c32b46223c01cc1fae024097b41ddb619cf2a09517af8beaa1b778358fe3a5;
weights in resnet18_dynamo.safetensors.
"""

from burnish import nn, ops


class BasicBlock(nn.Module):
    """(batch, in_channels, _, _) -> (batch, channels, _, _)"""

    def __init__(self, in_channels, channels, stride=1, downsample=False):
        self.conv1 = nn.Conv2d(in_channels, channels, 3, stride=stride, padding=1)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1)
        self.downsample = (
            nn.Sequential(nn.Conv2d(in_channels, channels, 1, stride=2))
            if downsample
            else nn.Identity()
        )

    def forward(self, x):
        x = self.conv2(ops.relu(self.conv1(x))) + self.downsample(x)
        return ops.relu(x)


class Model(nn.Module):
    def __init__(self, classes=1000):
        self.conv1 = nn.Conv2d(3, 64, 7, stride=2, padding=3)
        self.layer1 = [BasicBlock(64, 64) for _ in range(2)]
        self.layer2 = nn.Sequential(
            BasicBlock(64, 128, stride=2, downsample=True), BasicBlock(128, 128)
        )
        self.layer3 = nn.Sequential(
            BasicBlock(128, 256, stride=2, downsample=True), BasicBlock(256, 256)
        )
        self.layer4 = nn.Sequential(
            BasicBlock(256, 512, stride=2, downsample=True), BasicBlock(512, 512)
        )
        self.fc = nn.Linear(512, classes)

    @nn.accepts(images="float32[batch, 3, 224, 224]")
    def forward(self, images):
        x = ops.relu(self.conv1(images))
        x = ops.max_pool(x, kernel_size=3, stride=2, padding=1)
        for layer in self.layer1:
            x = layer(x)
        x = self.layer4(self.layer3(self.layer2(x)))
        return self.fc(x.mean((-1, -2), keepdims=True).reshape(-1, 512))
