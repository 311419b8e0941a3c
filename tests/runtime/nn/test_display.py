"""What `repr` shows of a module, and how that is changed."""

from burnish import nn


class Net(nn.Module):
    def __init__(self):
        self.layers = [nn.Linear(2, 3, bias=False), nn.ReLU()]
        self.scale = 0.5


TEXTS = [
    (
        {},
        "Net(  # 6 params\n"
        "  (layers.0): Linear(2, 3, bias=False)  # 6 params\n"
        "  (layers.1): ReLU()\n"
        ")",
    ),
    (
        {"num_params": False, "indent": 4},
        "Net(\n    (layers.0): Linear(2, 3, bias=False)\n    (layers.1): ReLU()\n)",
    ),
    (
        {"attributes": True},
        "Net(  # 6 params\n"
        "  scale=0.5\n"
        "  (layers.0): Linear(2, 3, bias=False  # 6 params\n"
        "    in_features=2\n"
        "    out_features=3\n"
        "    bias=None\n"
        "  )\n"
        "  (layers.1): ReLU()\n"
        ")",
    ),
    (
        {"tensors": True, "new_lines": False},
        "Net((layers.0): Linear(2, 3, bias=False, weight: Param(3, 2) float32)  "
        "# 6 params, (layers.1): ReLU())  # 6 params",
    ),
]


def test_settings():
    for settings, text in TEXTS:
        assert nn.pretty(Net(), **settings) == text
    assert repr(Net()) == TEXTS[0][1]


def test_a_class_has_its_own_settings_and_contents():
    class Quiet(Net):
        display_settings = nn.DisplaySettings(num_params=False)

        def extra_repr(self):
            return f"scale={self.scale}"

    text = (
        "Quiet(scale=0.5\n"
        "  (layers.0): Linear(2, 3, bias=False)\n"
        "  (layers.1): ReLU()\n"
        ")"
    )
    assert repr(Quiet()) == text
    assert text.replace("\n", "\n  ") in repr(nn.Sequential(nn.ReLU(), Quiet()))
    assert repr(nn.Sequential(Quiet())).startswith("Sequential(  # 6 params")
