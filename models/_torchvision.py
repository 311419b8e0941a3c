"""torchvision's model definitions, also beside a CPU build of torch.

No torchvision build fits CPU builds of torch: its compiled operators do not load there
and its import stops at the first one missing. Declaring the names lets it pass;
classifiers run, detectors that call those operators do not.

    pip install --no-deps torchvision==0.28.0 pillow
"""

import torch

try:
    from torchvision import models
except RuntimeError:
    _library = torch.library.Library("torchvision", "DEF")
    for _name in ("nms", "qnms"):
        _library.define(f"{_name}(Tensor dets, Tensor scores, float t) -> Tensor")
    from torchvision import models

__all__ = ["models"]
