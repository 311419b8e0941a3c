"""images -> logits

Imported from squeezenet_torchscript.onnx (opset 18), sha256
645470f077ebbd6a39c9ecef649ea001d7f5bb52b16e2ad3a2b254c125f7ae5b;
weights in squeezenet_torchscript.safetensors.
"""

from burnish import nn, ops


class Feature(nn.Module):
    """(batch, in_channels, _, _) -> (batch, _, _, _)"""

    def __init__(self, in_channels, channels):
        self.squeeze = nn.Conv2d(in_channels, channels, 1)
        self.expand1x1 = nn.Conv2d(channels, 4 * channels, 1)
        self.expand3x3 = nn.Conv2d(channels, 4 * channels, 3, padding=1)

    def forward(self, x):
        x = ops.relu(self.squeeze(x))
        return ops.concat(
            ops.relu(self.expand1x1(x)), ops.relu(self.expand3x3(x)), axis=1
        )


class Model(nn.Module):
    def __init__(self):
        self.features = nn.Sequential(
            nn.Conv2d(3, 64, 3, stride=2),
            nn.ReLU(),
            nn.MaxPool2d(3, stride=2, ceil_mode=True),
            Feature(64, 16),
            Feature(128, 16),
            nn.MaxPool2d(3, stride=2, ceil_mode=True),
            Feature(128, 32),
            Feature(256, 32),
            nn.MaxPool2d(3, stride=2, ceil_mode=True),
            Feature(256, 48),
            Feature(384, 48),
            Feature(384, 64),
            Feature(512, 64),
        )
        self.classifier = nn.Sequential(
            nn.Identity(), nn.Conv2d(512, 1000, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(1)
        )

    @nn.accepts(images="float32[batch, 3, 224, 224]")
    def forward(self, images):
        return ops.flatten(self.classifier(self.features(images)))
