"""Small projects with a model, as users have them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

_NET = """
<ir_version: 9, opset_import: ["" : 18]>
net (float[batch, 4] x) => (float[batch, 3] y)
{
   hidden = Gemm <transB = 1> (x, weight, bias)
   y = Relu (hidden)
}
"""


def net(path: Path, seed: int = 0, beside: bool = False) -> Path:
    """A linear layer and a ReLU; `seed` gives other weights.

    beside: its weights in a file of their own.
    """
    model = onnx.parser.parse_model(_NET)
    draw = np.random.default_rng(seed)
    for name, shape in (("weight", (3, 4)), ("bias", (3,))):
        values = draw.standard_normal(shape).astype(np.float32)
        model.graph.initializer.append(numpy_helper.from_array(values, name))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.with_name(f"{path.name}.data").unlink(missing_ok=True)  # it would grow
    onnx.save(
        model,
        path,
        save_as_external_data=beside,
        location=f"{path.name}.data",
        size_threshold=0,
    )
    return path


_WORDS = """
<ir_version: 9, opset_import: ["" : 18]>
words (int64[batch, time] ids) => (float[batch, time, 4] y, int64[batch, time, 2] best)
{
   y = Gather (table, ids)
   _, best = TopK (y, two)
}
"""


def words(path: Path) -> Path:
    """Row i of the table for each id i, and the places of the greatest two in it."""
    model = onnx.parser.parse_model(_WORDS)
    draw = np.random.default_rng(0)
    values = {
        "table": draw.standard_normal((10, 4)).astype(np.float32),
        "two": np.array([2], np.int64),
    }
    for name, value in values.items():
        model.graph.initializer.append(numpy_helper.from_array(value, name))
    onnx.save(model, path)
    return path


def project(root: Path, tables: str = "", build: str = "") -> Path:
    """A folder with a package, a model (one that is there stays) and a pyproject.toml.

    tables: more lines of the model's table, and what follows it. build: what comes
    before the table.
    """
    if not (root / "assets" / "net.onnx").exists():
        net(root / "assets" / "net.onnx")
    package = root / "src" / "my_app"
    package.mkdir(parents=True, exist_ok=True)
    (package / "__init__.py").write_text("")
    (root / "pyproject.toml").write_text(
        f'{build}\n[project]\nname = "my-app"\nversion = "1.0"\n\n'
        f'[[tool.burnish.model]]\nsource = "assets/net.onnx"\nmodule = "my_app.net"\n'
        f"{tables}\n"
    )
    return root
