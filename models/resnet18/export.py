"""Export torchvision's ResNet-18, with seeded weights, by both exporters.

    python -m burnish.models.resnet18.export [--out DIR]

Needs torch, onnx, onnxscript and torchvision (see `burnish.models._torchvision`).

`resnet18_dynamo.onnx`       the newer exporter's; batch normalization is folded into
                             the convolutions, which are found in its scopes
`resnet18_torchscript.onnx`  the older exporter's; the 20 BatchNormalization nodes are
                             there, in inference mode, so it is the one to train
"""

import sys
from pathlib import Path

import torch
from torch import nn

from burnish.models._export import export_classifier
from burnish.models._originals import parser, run
from burnish.models._torchvision import models


def build() -> nn.Module:
    """A ResNet-18 whose batch normalization is as uneven as after training."""
    torch.manual_seed(0)
    model = models.resnet18()
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.normal_(module.weight, 1.0, 0.1)
            nn.init.normal_(module.bias, 0.0, 0.1)
    with torch.no_grad():
        for _ in range(4):
            model(torch.randn(8, 3, 224, 224))  # moves the running statistics
    return model


def main() -> list[Path]:
    options = parser("resnet18", __doc__).parse_args()
    return export_classifier(build(), "resnet18", options.out)


if __name__ == "__main__":
    sys.exit(run(main))
