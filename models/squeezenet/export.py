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

from burnish.models._export import export_classifier
from burnish.models._originals import parser, run
from burnish.models._torchvision import models


def main() -> list[Path]:
    options = parser("squeezenet", __doc__).parse_args()
    torch.manual_seed(0)
    return export_classifier(models.squeezenet1_1(), "squeezenet", options.out)


if __name__ == "__main__":
    sys.exit(run(main))
