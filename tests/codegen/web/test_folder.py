"""The files of a page: the same bytes, nobody's file lost, and Python that runs."""

import json
import subprocess
import sys
import zipfile

import numpy as np
import pytest

from burnish.codegen.cli import main
from burnish.models.mnist.train import digits
from burnish.models.mnist.web.__main__ import build
from tests.harness.projects import net
from tests.harness.small_gpt2 import write_gpt2

PAGE = ["app.py", "files.json", "index.html", "model.zip", "worker.js"]


@pytest.fixture
def model(tmp_path):
    return net(tmp_path / "net.onnx")


def generate(model, *options):
    out = model.parent / "out"
    return main(["generate", str(model), "-o", str(out), "--web", *options]), out


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_page_is_beside_the_module(model):
    code, out = generate(model)
    assert code == 0
    assert names(out / "net_web") == PAGE
    with zipfile.ZipFile(out / "net_web" / "model.zip") as archive:
        held = set(archive.namelist())
        assert archive.read("net.py") == (out / "net.py").read_bytes()
    assert {"net.py", "net.safetensors", "page.py", "burnish/__init__.py"} <= held
    assert not any(name.startswith("burnish/codegen") for name in held)


def test_the_same_model_gives_the_same_bytes(model):
    _, out = generate(model)
    before = {path.name: path.read_bytes() for path in (out / "net_web").iterdir()}
    assert generate(model)[0] == 0
    assert before == {p.name: p.read_bytes() for p in (out / "net_web").iterdir()}


def test_files_in_the_way_stay(model, capsys):
    _, out = generate(model)
    page = out / "net_web"
    (page / "app.py").write_text("mine")
    assert generate(model)[0] == 0
    assert (page / "app.py").read_text() == "mine"

    (page / "index.html").write_text("mine too")
    before = (out / "net.py").stat().st_mtime_ns
    capsys.readouterr()
    assert generate(model)[0] == 1
    message = capsys.readouterr().err
    assert "index.html was changed since Burnish wrote it" in message
    assert "--diff" not in message, "it is refused together with --web"
    assert (page / "index.html").read_text() == "mine too"
    assert (out / "net.py").stat().st_mtime_ns == before

    assert generate(model, "--force")[0] == 0
    assert (page / "index.html.bak").read_text() == "mine too"
    assert (page / "app.py").read_text() == "mine"


def test_a_folder_of_somebody_stays(model, capsys):
    page = model.parent / "out" / "net_web"
    page.mkdir(parents=True)
    (page / "worker.js").write_text("mine")
    assert generate(model)[0] == 1
    assert "worker.js was not written by Burnish" in capsys.readouterr().err
    assert names(model.parent / "out") == ["net_web"]
    assert names(page) == ["worker.js"]


@pytest.mark.parametrize("options", [["--no-weights"], ["--diff"]])
def test_options_that_do_not_go_together(model, options, capsys):
    assert generate(model, *options)[0] == 2
    assert "--web: expected" in capsys.readouterr().err
    assert not (model.parent / "out").exists()


#: What Pyodide has not, or what nobody there needs.
ABSENT = """
import importlib.abc, sys
class Absent(importlib.abc.MetaPathFinder):
    names = ("mmap", "multiprocessing", "onnx", "onnx_ir", "safetensors", "ml_dtypes",
             "jinja2", "rich", "cupy", "torch", "ctypes", "subprocess", "socket")
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in self.names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
import numpy, numpy.random
for name in [n for n in sys.modules if n.partition(".")[0] in Absent.names]:
    del sys.modules[name]
sys.meta_path.insert(0, Absent())
"""

ASK = """
import json
class Proxy(dict):
    def to_py(self):
        return dict(self)
import page
print(page.answer(Proxy(json.loads(sys.argv[1])), Proxy()))
"""


def answered(folder, tmp_path, **inputs):
    """What the page's Python answers without what a browser has not."""
    with zipfile.ZipFile(folder / "model.zip") as archive:
        archive.extractall(tmp_path / "python")
    (tmp_path / "python" / "app.py").write_bytes((folder / "app.py").read_bytes())
    ran = subprocess.run(
        [sys.executable, "-S", "-c", _path() + ABSENT + ASK, json.dumps(inputs)],
        cwd=tmp_path / "python",
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)["outputs"]


def _path():
    """The current folder and NumPy's, without what `site` would add."""
    import numpy

    return f"import sys; sys.path[:] += [{str(numpy.__path__[0])[:-6]!r}]\n"


@pytest.mark.parametrize("options", [[], ["--embed"], ["--half"], ["--quantize", "q8"]])
def test_a_model_answers_where_only_numpy_is(model, options, tmp_path):
    _, out = generate(model, *options)
    x = {
        "kind": "numbers",
        "dtype": "float32",
        "shape": ["batch", 4],
        "text": "1 2 3 4",
    }
    (found,) = answered(out / "net_web", tmp_path, x=x)
    assert found["shape"] == [1, 3]


def test_ids_go_through_gpt2(tmp_path):
    folder = tmp_path / "gpt2"
    write_gpt2(folder)
    _, out = generate(folder)
    x = {"kind": "ids", "dtype": "int64", "shape": ["batch", "time"], "text": "1 2 3"}
    (found,) = answered(out / "gpt2_web", tmp_path, input_ids=x)
    assert found["shape"] == [1, 3, 50]


def test_the_digits_are_read(tmp_path):
    folder = build(tmp_path)
    images, labels = digits("test")
    grey = np.round(images[0] * 255).astype(int)
    pixels = np.stack([grey, grey, grey, grey], -1).reshape(-1).tolist()
    made = {"kind": "picture", "layout": "HW", "channels": 1, "height": 28, "width": 28}
    made |= {"dtype": "float32", "shape": ["batch", 28, 28], "pixels": pixels}
    (found,) = answered(folder, tmp_path, images=made)
    shares = [score["share"] for score in found["scores"]]
    assert np.argmax(shares) == labels[0]
    assert max(shares) > 0.9
