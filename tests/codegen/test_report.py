"""The page of a run."""

import re
import xml.dom.minidom as xml

import numpy as np
import pytest

from burnish import nn, optim
from burnish.codegen.cli import main
from burnish.codegen.tools.report import line_plot, thinned, ticks
from burnish.data import batches
from burnish.learner import Accuracy, Learner, Loss, Renderer, Supervised


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    directory = tmp_path_factory.mktemp("runs") / "a <run>"
    rng = np.random.default_rng(0)
    x = rng.standard_normal((32, 4)).astype("float32")
    y = (x[:, 0] > 0).astype("int64")
    Learner(
        nn.Sequential(nn.Linear(4, 2)),
        optim.SGD(),
        0.1,
        step=Supervised(nn.CrossEntropyLoss()),
        metrics=[Accuracy(), Loss()],
        epochs=3,
        directory=directory,
        renderer=Renderer(),
    ).fit(batches((x, y), 8), batches((x, y), 8))
    return directory


def test_one_page_with_everything(run, capsys):
    assert main(["report", str(run)]) == 0
    assert capsys.readouterr().out.strip() == str(run / "report.html")
    page = (run / "report.html").read_text("utf-8")
    assert "<title>a &lt;run&gt;</title>" in page
    assert "3 epochs" in page
    for title in ("Accuracy (%) by epoch", "Loss by batch"):
        assert f"<figcaption>{title}</figcaption>" in page
    assert "from epoch 1 of 3" in page
    assert not re.search(r"(src|href)=", page), "the page needs nothing beside it"
    for svg in re.findall(r"<svg.*?</svg>", page):
        xml.parseString(svg)


def test_another_place_and_no_run(run, tmp_path, capsys):
    assert main(["report", str(run), "-o", str(tmp_path / "page.html")]) == 0
    assert (tmp_path / "page.html").exists()
    assert main(["report", str(tmp_path)]) == 1
    assert "expected the directory of a run" in capsys.readouterr().err


TICKS = [
    ((0, 1), {}, [0, 0.2, 0.4, 0.6, 0.8, 1]),
    ((1, 10), {"whole": True}, [2, 4, 6, 8, 10]),
    ((1, 3), {"whole": True}, [1, 2, 3]),
    ((2, 2), {}, [2]),
    ((-0.003, 0.004), {}, [-0.002, 0, 0.002, 0.004]),
]


@pytest.mark.parametrize(("ends", "options", "expected"), TICKS)
def test_ticks(ends, options, expected):
    assert ticks(*ends, **options) == pytest.approx(expected)


def test_points_lie_inside():
    svg = line_plot({"train": [(1, 3.0), (2, float("nan")), (3, -2.0)]}, "epoch")
    (points,) = re.findall(r'points="(.*?)"', svg)
    placed = np.array([p.split(",") for p in points.split()], float)
    assert len(placed) == 2
    assert (placed > 0).all()
    assert (placed < [460, 220]).all()
    assert placed[0][1] < placed[1][1]


def test_many_points_become_few_means():
    points = [(i, float(i)) for i in range(1000)]
    few = thinned(points, 100)
    assert len(few) == 100
    assert few[0] == (4.5, 4.5)
    assert thinned(points[:5], 100) == points[:5]
