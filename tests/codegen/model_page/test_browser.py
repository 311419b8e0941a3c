"""The page in a headless Chromium: from disk, by pointer and by keys."""

from __future__ import annotations

import pytest

from burnish.codegen.tools.model_page import look, write
from tests.codegen.model_page.test_look import blocks
from tests.harness.browser import browser, chromium

pytestmark = pytest.mark.skipif(chromium() is None, reason="no chromium on PATH")

MARKED = "[...document.querySelectorAll('.line.on')].map((line) => line.id)"
SHOWN = (
    "[...document.querySelectorAll('details.box')]"
    ".filter((box) => box.checkVisibility())"
    ".map((box) => box.querySelector('b').textContent)"
)
FOCUS = "document.activeElement"


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    return look(blocks(tmp_path_factory.mktemp("blocks") / "blocks.onnx"))


@pytest.fixture(scope="module")
def opened():
    with browser(chromium()) as page:
        for domain in ("Network", "Log"):
            page.call(f"{domain}.enable")
        yield page


@pytest.fixture
def page(opened, found, tmp_path):
    """The page, as it is opened; at its end it has fetched and lamented nothing."""
    path = write.write(found, tmp_path / "page.html")
    opened.appears(1440, 900, dark=False)
    opened.messages.clear()
    opened.open(path.as_uri())
    opened.wait(
        f"location.href === {path.as_uri()!r} && document.readyState === 'complete'"
    )
    yield opened
    opened.evaluate("1")  # whatever happened has been reported by now
    methods = [(each["method"], each["params"]) for each in opened.messages]
    asked = [
        p["request"]["url"] for m, p in methods if m == "Network.requestWillBeSent"
    ]
    assert set(asked) <= {path.as_uri()}
    bad = ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded")
    assert not [each for each in methods if each[0] in bad]


def click(page, selector):
    box = page.evaluate(
        f"(() => {{ const each = {selector}; each.scrollIntoView({{block: 'center'}});"
        " const {x, y, height} = each.getBoundingClientRect();"
        " return [x + 40, y + height / 2]; })()"
    )
    page.drag([tuple(box)])


def lines_of(found, path):
    return [
        f"L{n}"
        for n in sorted(
            {
                number
                for span in found.boxes[path].lines
                for number in range(span.first, span.last + 1)
            }
        )
    ]


def test_a_click_on_a_box_opens_it_and_marks_its_lines(page, found):
    page.evaluate("document.getElementById('close').click()")
    assert page.evaluate(SHOWN) == ["Model", "blocks"]
    click(page, "document.querySelectorAll('.box > summary')[1]")
    assert page.evaluate(SHOWN) == [
        "Model",
        "blocks",
        *(f"blocks.{i}" for i in range(5)),
    ]
    assert page.evaluate(MARKED) == lines_of(found, "blocks")
    click(page, "document.querySelectorAll('.box > summary')[2]")
    assert page.evaluate(MARKED) == lines_of(found, "blocks.0")
    title = page.evaluate("document.getElementById('where').textContent")
    assert title.startswith("blocks.py, lines ")
    assert page.evaluate("document.querySelectorAll('.box.on').length") == 1


def test_marked_lines_are_in_view(page):
    page.appears(900, 300, dark=True)
    for number in range(3):
        click(page, f"document.querySelectorAll('.box > summary')[{number}]")
        assert page.evaluate(
            "(() => { const line = document.querySelector('.line.on')"
            ".getBoundingClientRect(), pane = document.getElementById('source')"
            ".getBoundingClientRect();"
            " return line.top >= pane.top - 1 && line.top < pane.bottom; })()"
        )


def typed(page, text):
    for letter in text:
        page.press(letter, text=letter)


def test_the_search_leaves_what_it_finds(page, found):
    page.press("/", 191, "/")
    assert page.evaluate(f"{FOCUS}.id") == "search"
    typed(page, "blocks.2")
    page.wait("document.getElementById('found').textContent === '2 found'")
    shown = page.evaluate(SHOWN)
    assert {"Model", "blocks", "blocks.2"} <= set(shown)
    assert "blocks.1" not in shown
    page.press("Enter", 13, "\r")
    assert page.evaluate("document.getElementById('found').textContent") == "1 of 2"
    assert page.evaluate(MARKED) == lines_of(found, "blocks.2")
    page.press("Escape", 27)
    page.wait("document.getElementById('found').textContent === ''")
    assert "blocks.1" in page.evaluate(SHOWN)


def test_the_search_finds_operators_and_says_when_there_is_nothing(page):
    page.press("/", 191, "/")
    typed(page, "tanh")
    page.wait("document.getElementById('found').textContent === '5 found'")
    typed(page, "?")
    page.wait("document.getElementById('found').textContent === '0 found'")


def test_keys_alone_reach_open_and_mark_a_box(page, found):
    page.evaluate("document.getElementById('close').click()")
    page.evaluate("document.getElementById('close').focus()")
    page.press("Tab", 9)
    assert page.evaluate(f"{FOCUS}.matches('.box > summary')")
    assert page.evaluate(f"getComputedStyle({FOCUS}).outlineStyle") == "solid"
    page.press("Tab", 9)
    page.press("Enter", 13, "\r")
    assert page.evaluate(f"{FOCUS}.parentElement.open")
    assert page.evaluate(MARKED) == lines_of(found, "blocks")


def test_what_a_screen_reader_says(page):
    """Names of what can be used, as Chromium gives them to one."""
    page.call("Accessibility.enable")
    nodes = page.call("Accessibility.getFullAXTree")["nodes"]
    page.call("Accessibility.disable")
    labels = [
        (each["role"]["value"], each.get("name", {}).get("value", ""))
        for each in nodes
        if not each["ignored"]
    ]
    names = dict(labels)
    assert names["searchbox"] == "Search"
    assert ("region", "Generated source") in labels
    assert {"main", "status", "heading"} <= set(names)
    opened = [name for role, name in labels if role == "DisclosureTriangle"]
    assert any("parameters 100 FLOPs" in name for name in opened)
    pictures = [name for role, name in labels if role in ("image", "img")]
    assert len(pictures) == 10
    assert all("mean" in name for name in pictures)
    used = ("button", "link", "searchbox", "DisclosureTriangle")
    assert all(name for role, name in labels if role in used)


@pytest.mark.parametrize("width", [400, 900, 1440])
@pytest.mark.parametrize("dark", [False, True])
def test_nothing_is_wider_than_the_window_and_all_can_be_read(page, width, dark):
    page.appears(width, 900, dark)
    page.evaluate("document.getElementById('open').click()")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    contrast = page.evaluate(
        """(() => {
          const light = (color) => color.match(/[0-9.]+/g).slice(0, 3)
            .map((c) => c / 255)
            .map((c) => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
            .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
          const behind = (each) => {
            for (; each; each = each.parentElement) {
              const color = getComputedStyle(each).backgroundColor;
              if (!color.startsWith("rgba(0, 0, 0, 0")) return color;
            }
          };
          return Math.min(...[...document.querySelectorAll("body *")]
            .filter((each) => each.checkVisibility() && [...each.childNodes]
              .some((child) => child.nodeType === 3 && child.textContent.trim()))
            .map((each) => {
              const [a, b] = [getComputedStyle(each).color, behind(each)].map(light)
                .sort((a, b) => b - a);
              return (a + 0.05) / (b + 0.05);
            }));
        })()"""
    )
    assert contrast >= 4.5
