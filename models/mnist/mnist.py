"""images -> logits

Imported from mnist.onnx (opset 18), sha256
5d4ebb6d186f19455b7635dc776b96a8691f8603cbbdd25c13bc4a4d0f102ead;
weights in mnist.safetensors.
"""

from burnish import nn, ops


class Model(nn.Module):
    def __init__(self, classes=10):
        self.conv1 = nn.Conv2d(1, 8, 3)
        self.dropout = nn.Dropout(p=0.25)
        self.conv2 = nn.Conv2d(8, 16, 3)
        self.linear1 = nn.Linear(1024, 128)
        self.linear2 = nn.Linear(128, classes)

    @nn.accepts(images="float32[batch, 28, 28]")
    def forward(self, images):
        x = self.dropout(self.conv1(images.reshape(-1, 1, 28, 28)))
        x = ops.relu(self.dropout(self.conv2(x)))
        x = self.linear1(ops.flatten(ops.avg_pool(x, kernel_size=3)))
        return self.linear2(ops.relu(self.dropout(x)))
