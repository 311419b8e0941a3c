"""images -> logits

Imported from squeezenet_dynamo.onnx (opset 20), sha256
3ad5aa2a429c29483b7f9711239c09438854859d89e70564cc3f14320c3ca698;
weights in squeezenet_dynamo.safetensors.
"""

from burnish import nn, ops


class Fire(nn.Module):
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
            Fire(64, 16),
            Fire(128, 16),
            nn.MaxPool2d(3, stride=2, ceil_mode=True),
            Fire(128, 32),
            Fire(256, 32),
            nn.MaxPool2d(3, stride=2, ceil_mode=True),
            Fire(256, 48),
            Fire(384, 48),
            Fire(384, 64),
            Fire(512, 64),
        )
        self.classifier = nn.Sequential(
            nn.Identity(), nn.Conv2d(512, 1000, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(1)
        )

    @nn.accepts(images="float32[batch, 3, 224, 224]")
    def forward(self, images):
        return self.classifier(self.features(images)).reshape(-1, 1000)
