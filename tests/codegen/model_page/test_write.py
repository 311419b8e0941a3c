"""The page itself: what is on it, that all of it is text, and its bounds."""

from __future__ import annotations

import dataclasses
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import onnx
import pytest

from burnish.codegen.cli import main
from burnish.codegen.tools.model_page import against, boxes, look, write
from tests.codegen.model_page.test_look import blocks
from tests.codegen.test_injection import PAYLOADS, hostile
from tests.harness.projects import net

ACT = "\"'><script>pwned()</script><img src=x onerror=pwned()></pre></script>{{ 7*7 }}"


class Page(HTMLParser):
    """What a page consists of. voids: elements that have no end."""

    voids = frozenset(("meta", "input", "br"))

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.tags, self.attributes, self.open = Counter(), [], []
        self.text, self.mistakes = [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags[tag] += 1
        self.attributes += [(tag, *each) for each in attrs]
        if tag not in self.voids:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        self.open.remove(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.mistakes.append(tag)

    def handle_data(self, data):
        self.text.append(data)


def checked(text):
    """A page whose elements are closed, with ids once each, that fetches nothing."""
    page = Page(text)
    assert not page.mistakes
    assert not page.open
    ids = [value for _, name, value in page.attributes if name == "id"]
    assert len(ids) == len(set(ids))
    named = {
        word
        for _, name, value in page.attributes
        if name in ("for", "aria-labelledby", "aria-describedby")
        for word in value.split()
    }
    assert named <= set(ids)
    assert {v[1:] for _, name, v in page.attributes if name == "href"} <= set(ids)
    assert page.tags["script"] == 1
    assert not any(name.startswith("on") for _, name, _ in page.attributes)
    assert not any(
        name in ("src", "srcset", "action") for _, name, _ in page.attributes
    )
    assert page.tags["img"] == page.tags["link"] == page.tags["iframe"] == 0
    return page


def written(path, folder, apart=None):
    return write.write(look(path), folder / "page.html", apart).read_text("utf-8")


def test_every_box_has_a_summary_and_the_source_is_there(tmp_path):
    found = look(blocks(tmp_path / "blocks.onnx"))
    page = checked(written(tmp_path / "blocks.onnx", tmp_path))
    assert page.tags["details"] == page.tags["summary"]
    text = "".join(page.text)
    assert found.source in text
    for box in found.root.walk():
        assert box.name in text
        assert all(reason in text for reason in box.reasons)
    assert "in x: float32[batch, time, 4]" in " ".join(text.split())
    assert page.tags["svg"] == 10  # of five weights and five biases
    labels = [
        v for tag, name, v in page.attributes if (tag, name) == ("svg", "aria-label")
    ]
    assert all("mean" in label for label in labels)


def test_bars_are_shares_of_the_whole(tmp_path):
    text = written(blocks(tmp_path / "blocks.onnx"), tmp_path)
    assert text.count("width: 100.0%") == 2 * 3  # of the model and of its only list
    assert (
        text.count("width: 20.0%") == 5 * 3 + 5 * 2
    )  # the results of a block: tanh too


@pytest.mark.parametrize("text", PAYLOADS.values(), ids=PAYLOADS)
def test_a_file_s_words_stay_words(text, tmp_path):
    path = tmp_path / "net.onnx"
    path.write_bytes(hostile(text).SerializeToString())
    if main(["inspect", str(path), "--html", str(tmp_path / "page.html")]) == 0:
        checked((tmp_path / "page.html").read_text("utf-8"))


def filled(kind):
    """An object of a dataclass that has `ACT` wherever a text may be."""
    made = {
        boxes.Flow: lambda: boxes.Flow(ACT, ACT, (ACT, 3)),
        boxes.Held: lambda: boxes.Held(ACT, ACT, (3,), 12, True, ACT),
        boxes.Box: lambda: boxes.Box(
            *(ACT,) * 4,
            lines=(boxes.Span(1, 1),),
            tensors=[filled(boxes.Held)],
            calls=2,
            inputs=(filled(boxes.Flow),),
            outputs=(filled(boxes.Flow),),
            steps=(boxes.Step(ACT, "", ACT),) * 9 + (boxes.Step("", ACT, ""),),
            reasons=[ACT],
        ),
    }
    return made[kind]()


def test_whatever_the_words_are_nothing_of_them_is_markup(tmp_path):
    root = filled(boxes.Box)
    root.children = [dataclasses.replace(filled(boxes.Box), same_as=ACT)]
    seen = boxes.Look(
        ACT,
        (),
        ACT,
        f"x = {ACT!r}  # {ACT}",
        root,
        (boxes.Operator(ACT, 1, 1, 1),),
        (ACT,),
        ACT,
        {ACT: 3},
        (ACT,),
    )
    change = (against.Changed(ACT, ACT),)
    values = (against.Values(ACT, 3, 1, 0.5, None),)
    apart = against.Differences(
        ACT, ACT, change, change, change, change, values, 0, (f"+{ACT}",)
    )
    page = checked(write.write(seen, tmp_path / "page.html", apart).read_text("utf-8"))
    assert "".join(page.text).count(ACT) > 30


def test_a_page_has_at_most_so_many_boxes(tmp_path, monkeypatch):
    monkeypatch.setattr(write, "BOXES", 5)
    page = checked(written(blocks(tmp_path / "blocks.onnx"), tmp_path))
    assert sum(value == "box" for _, _, value in page.attributes) == 5
    assert "more modules are left out" in " ".join(page.text)


def long_chain(path, length):
    """A flat model of so many nodes."""
    nodes = [
        onnx.helper.make_node(("Relu", "Tanh", "Neg")[i % 3], [f"v{i}"], [f"v{i + 1}"])
        for i in range(length)
    ]
    ends = [
        onnx.helper.make_tensor_value_info(name, 1, ["n", 4])
        for name in ("v0", f"v{length}")
    ]
    graph = onnx.helper.make_graph(nodes, "g", ends[:1], ends[1:])
    sets = [onnx.helper.make_opsetid("", 18)]
    onnx.save(onnx.helper.make_model(graph, opset_imports=sets, ir_version=9), path)
    return path


def test_a_page_has_at_most_so_many_operators_of_a_module(tmp_path):
    text = written(long_chain(tmp_path / "net.onnx", 500), tmp_path)
    checked(text)
    assert text.count("<li ") == 400
    assert "100 more operators are left out" in text


@pytest.mark.parametrize(
    ("count", "shown"),
    [
        (0, "0"),
        (999, "999"),
        (1000, "1k"),
        (999_499, "999k"),
        (999_999, "1M"),
        (1_814_073_344, "1.81G"),
        (10**18, "1E"),
        (10**22, "1e+04E"),
    ],
)
def test_numbers_are_short(count, shown):
    assert write.number(count) == shown


def test_strings_over_lines_and_comments_are_coloured():
    source = 'class A:\n    """one\n    two"""\n    x = 1  # so\n'
    lines = list(write.coloured(source))
    assert ["".join(text for _, text in line) for line in lines] == source.split("\n")
    assert [kind for line in lines for kind, _ in line if kind] == ["k", "s", "s", "c"]


def test_no_input_is_replaced(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = net(Path("net.onnx"), beside=True)
    other = net(Path("other.onnx"), seed=1)
    data = Path("net.onnx.data")
    before = [each.read_bytes() for each in (path, data, other)]
    for each in (path, data, other):
        words = ["inspect", "net.onnx", "--against", "other.onnx", "--html", str(each)]
        assert main(words) == 2
        assert "is an input and stays as it is" in capsys.readouterr().err
    assert [each.read_bytes() for each in (path, data, other)] == before


def test_values_are_drawn_as_columns():
    seen = boxes.Histogram(0, 1, 0.5, 0.1, 0, 0, 8, (1, 0, 4, 3))
    assert write.drawn(seen) == "M0 12V9h1V12h1V0h1V3h1V12z"


def test_a_histogram_says_what_is_odd():
    seen = boxes.Histogram(-1, 1, np.float64(0.25), 0.1, 2, 3, 8, (5,))
    summary = write.spread(seen)
    assert summary == "-1 to 1, mean 0.25, deviation 0.1, 25.0% zeros, 3 not finite"
