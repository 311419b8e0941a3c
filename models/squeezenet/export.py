"""Export torchvision's SqueezeNet 1.1, with seeded weights, by both exporters.

    python -m burnish.models.squeezenet.export [--out DIR]

Needs torch, onnx, onnxscript and torchvision (see `burnish.models._torchvision`).

`squeezenet_dynamo.onnx`       the newer exporter's; names and classes of the modules
                               are in each node's metadata, nodes have flat names
`squeezenet_torchscript.onnx`  the older exporter's; node names are module paths

Neither holds the Dropout of the classifier, which does nothing in evaluation.
"""

import sys
from pathlib import Path

import torch
from torch import nn

from burnish.models._export import export_classifier
from burnish.models._originals import parser, run
from burnish.models._torchvision import models


def build() -> nn.Module:
    """A SqueezeNet whose biases are not all zero, as after training.

    The older exporter would merge equal ones, the newer one leave out zeros.
    """
    torch.manual_seed(0)
    model = models.squeezenet1_1()
    for module in model.modules():
        if isinstance(module, nn.Conv2d) and module.bias is not None:
            nn.init.normal_(module.bias, 0.0, 0.1)
    return model


def main() -> list[Path]:
    options = parser("squeezenet", __doc__).parse_args()
    return export_classifier(build(), "squeezenet", options.out)


if __name__ == "__main__":
    sys.exit(run(main))
