"""The `repr` of a module, and its settings."""

from html.parser import HTMLParser

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
        "    transposed=False\n"
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


# --- in a notebook ---


class Boxes(HTMLParser):
    """The boxes of a page, and that each element is closed."""

    def __init__(self, page):
        super().__init__()
        self.open, self.text, self.boxes, self.tags = [], [], 0, set()
        self.feed(page)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.boxes += tag == "details"
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


class Hostile(nn.Module):
    def __init__(self):
        self.items = {"<script>pwned()</script>": nn.Linear(2, 2)}

    def extra_repr(self):
        return "'><img src=x onerror=pwned()>"


def test_a_notebook_shows_boxes_with_counts():
    page = Boxes(Net()._repr_html_())
    shown = ["Net()", "6 params", "layers.0: Linear(2, 3, bias=False)", "6 params"]
    assert page.text == [
        *shown,
        "weight: float32[3, 2]",
        "layers.1: ReLU()",
        "0 params",
    ]
    assert page.boxes == 3


def test_equal_neighbours_share_a_box():
    page = Boxes(nn.Sequential(*(nn.Linear(2, 2) for _ in range(900)))._repr_html_())
    assert page.boxes <= 300 + 1


def test_a_list_of_equal_modules_is_one_box():
    class Deep(nn.Module):
        def __init__(self):
            self.layers = [nn.Linear(2, 2) for _ in range(900)]

    page = Boxes(Deep()._repr_html_())
    assert page.boxes == 2
    assert "layers.0-899: 900 x Linear(2, 2)" in page.text
    assert page.text.count("5,400 params") == 2


def test_what_is_left_out_is_counted():
    class Wide(nn.Module):
        def __init__(self):
            self.layers = [nn.Linear(2, 2 + n) for n in range(500)]

    page = Boxes(Wide()._repr_html_())
    assert page.boxes == 300
    assert page.text[-1] == "201 more modules"


def test_no_word_of_a_module_is_markup():
    page = Boxes(Hostile()._repr_html_())
    assert page.tags == {"details", "summary", "span", "div", "br"}
    assert any("<script>pwned()</script>" in text for text in page.text)


def test_a_notebook_makes_no_values():
    net = Net()
    net._repr_html_()
    assert net.layers[0].weight.is_lazy
