"""Pages in a headless Chromium, with Pyodide from this machine."""

import math

import numpy as np
import pytest

from burnish.codegen.cli import main
from burnish.models.mnist.web.__main__ import build
from tests.harness import pyodide
from tests.harness.browser import browser, chromium, served
from tests.harness.projects import net, words

pytestmark = [
    pytest.mark.skipif(chromium() is None, reason="no chromium on PATH"),
    pytest.mark.skipif(
        not pyodide.FOLDER.exists(),
        reason="no Pyodide: python -m tests.harness.pyodide fetches it",
    ),
]


@pytest.fixture(scope="module")
def page():
    with browser(chromium()) as opened:
        yield opened


#: A 3 as two bowls: centres, radii and angles in degrees, in shares of the canvas.
BOWLS = [((0.5, 0.34), 0.15, 200, 450), ((0.5, 0.65), 0.17, 270, 520)]


def three(box):
    x, y, width, height = box
    points = []
    for (cx, cy), radius, first, last in BOWLS:
        for angle in np.linspace(first, last, 25):
            turn = math.radians(angle)
            points.append(
                (
                    x + width * (cx + radius * math.cos(turn)),
                    y + height * (cy + radius * math.sin(turn)),
                )
            )
    return points


def ready(page):
    page.wait("!!document.querySelector('#outputs section, #status.error')")
    assert not page.evaluate("document.querySelector('#status.error')?.textContent")


BEST = "document.querySelector('tr.best th')?.textContent"


def test_a_drawn_3_is_read(page, tmp_path):
    folder = build(tmp_path)
    with served(folder, pyodide.FOLDER) as address:
        page.open(address)
        ready(page)
        box = page.evaluate(
            "(({x, y, width, height}) => [x, y, width, height])"
            "(document.querySelector('canvas').getBoundingClientRect())"
        )
        page.drag(three(box))
        page.wait(f"{BEST} === '3'", seconds=20)
        shares = page.evaluate(
            "[...document.querySelectorAll('td.share')]"
            ".map((cell) => parseFloat(cell.textContent))"
        )
        assert len(shares) == 10
        assert sum(shares) == pytest.approx(100, abs=0.6)
        assert shares[3] > 80
        page.screenshot(tmp_path / "three.png")
        assert (tmp_path / "three.png").stat().st_size > 5000
        page.evaluate("document.querySelector('button').click()")
        page.wait(f"{BEST} !== '3'", seconds=20)


WRITE = """
(() => {
  const text = document.querySelector("textarea");
  text.value = "%s";
  text.dispatchEvent(new Event("input"));
})()
"""


def test_an_error_is_reported_and_the_next_numbers_are_answered(page, tmp_path):
    out = tmp_path / "out"
    model = net(tmp_path / "net.onnx")
    assert main(["generate", str(model), "-o", str(out), "--web"]) == 0
    with served(out / "net_web", pyodide.FOLDER) as address:
        page.open(address)
        ready(page)
        page.evaluate(WRITE % "1 2 3")
        message = page.wait("document.querySelector('#status.error')?.textContent")
        assert "x: expected numbers for batch x 4, got 3" in message
        page.evaluate(WRITE % "1 2 3 4")
        page.wait("!document.querySelector('#status.error')", seconds=20)
        assert "[1, 3]" in page.evaluate("document.getElementById('outputs').innerText")


def test_ids_are_looked_up_where_an_address_has_32_bits(page, tmp_path):
    out = tmp_path / "out"
    model = words(tmp_path / "words.onnx")
    assert main(["generate", str(model), "-o", str(out), "--web"]) == 0
    with served(out / "words_web", pyodide.FOLDER) as address:
        page.open(address)
        ready(page)
        page.evaluate(WRITE % "1 2 3")
        page.wait("document.getElementById('outputs').innerText.includes('[1, 3, 4]')")
        assert not page.evaluate("document.querySelector('#status.error')?.textContent")
        shown = page.evaluate("document.getElementById('outputs').innerText")
        assert "int64[1, 3, 2]" in shown
