"""Fine-tune the imported ResNet-18 to tell four colours apart.

    python -m burnish.models.resnet18.train [--layers all] [--steps 10] [--out FILE]

The file of torch's older exporter is used, which kept batch normalization: in training
it normalizes by the batch, and its running statistics follow. Half a minute.
"""

from __future__ import annotations

import sys
from typing import Any

from burnish import nn
from burnish.models._pictures import CLASSES, Task, main


def new_head(model: Any) -> nn.Module:
    model.fc = nn.Linear(512, len(CLASSES))
    return model.fc


if __name__ == "__main__":
    sys.exit(main(Task("resnet18_torchscript", new_head, rate=3e-3), __doc__))
