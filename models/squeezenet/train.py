"""Fine-tune the imported SqueezeNet to tell four colours apart.

    python -m burnish.models.squeezenet.train [--layers all] [--steps 10] [--out FILE]

It has no batch normalization, and its last layer is a convolution. Half a minute.
"""

from __future__ import annotations

import sys
from typing import Any

from burnish import nn
from burnish.models._pictures import CLASSES, Task, main


def new_head(model: Any) -> nn.Module:
    head = nn.Conv2d(512, len(CLASSES), 1)
    model.classifier[1] = head
    return head


if __name__ == "__main__":
    sys.exit(main(Task("squeezenet_torchscript", new_head, rate=1e-2), __doc__))
