"""Peak memory of generating from large files: `python benchmarks/memory.py --mb 1024`.

The file has a few large weights, one of them stored transposed, and many small ones.
What is printed is the peak of `burnish generate` above that of `burnish --help`.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper

_GRAPH, _INITIALIZER, _RAW = b"\x3a", b"\x2a", b"\x4a"
MB = 1 << 20


def write(path: Path, megabytes: int) -> None:
    """A model of about that size, written piece by piece."""
    side = 256 * max(1, int((megabytes * MB / 4 / 4) ** 0.5 / 256))
    shapes = [(f"fc{i}.weight", (side, side)) for i in range(3)]
    shapes += [("head", (side, side))]
    shapes += [(f"scale{i}", (side,)) for i in range(200)]
    nodes, x = [], "x"
    for name, shape in shapes:
        y = f"after_{name}"
        if name == "head":
            nodes.append(helper.make_node("MatMul", [x, name], [y]))
        elif len(shape) == 2:
            nodes.append(helper.make_node("Gemm", [x, name], [y], transB=1))
        else:
            nodes.append(helper.make_node("Mul", [x, name], [y]))
        x = y
    value = helper.make_tensor_value_info
    ends = [value(name, TensorProto.FLOAT, ["batch", side]) for name in ("x", x)]
    graph = helper.make_graph(nodes, "large", ends[:1], ends[1:])
    opset = helper.make_opsetid("", 20)
    model = helper.make_model(graph, opset_imports=[opset], ir_version=10)
    heads = [_tensor_head(name, shape) for name, shape in shapes]
    body = graph.SerializeToString()
    size = len(body) + sum(len(head) + _bytes(shape) for head, shape in heads)
    model.ClearField("graph")
    with path.open("wb") as out:
        out.write(model.SerializeToString() + _GRAPH + _varint(size) + body)
        for head, shape in heads:
            out.write(head)
            for piece in _pieces(_bytes(shape)):
                out.write(piece)


def _bytes(shape: tuple[int, ...]) -> int:
    return 4 * int(np.prod(shape))


def _tensor_head(name: str, shape: tuple[int, ...]) -> tuple[bytes, tuple[int, ...]]:
    """What stands before the bytes of one initializer."""
    tensor = onnx.TensorProto(name=name, dims=shape, data_type=TensorProto.FLOAT)
    start = tensor.SerializeToString() + _RAW + _varint(_bytes(shape))
    return _INITIALIZER + _varint(len(start) + _bytes(shape)) + start, shape


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def _pieces(size: int) -> Iterator[bytes]:
    piece = np.linspace(-1, 1, MB // 4, dtype=np.float32).tobytes()
    for start in range(0, size, MB):
        yield piece[: min(MB, size - start)]


def peak(*arguments: str) -> float:
    """The peak resident memory of one `burnish` process, in MB."""
    command = (
        "import resource, sys; from burnish.codegen.cli import main\n"
        "try:\n    main(sys.argv[1:])\nexcept SystemExit as end:\n"
        "    assert not end.code, end\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    run = [sys.executable, "-c", command, *arguments]
    done = subprocess.run(run, capture_output=True, text=True, check=True)
    unit = 1 if sys.platform == "darwin" else 1024
    return int(done.stdout.split()[-1]) * unit / MB


def above(path: Path, *options: str) -> float:
    """Peak MB of generating from the file, above the command's own."""
    with tempfile.TemporaryDirectory() as out:
        return peak("generate", str(path), "-o", out, *options) - peak("--help")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mb", type=int, default=1024)
    size = parser.parse_args().mb
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "large.onnx"
        write(path, size)
        real = path.stat().st_size / MB
        for options in ((), ("--half",)):
            used = above(path, *options)
            print(
                f"{real:.0f} MB file {' '.join(options):7s} {used:6.0f} MB", flush=True
            )


if __name__ == "__main__":
    main()
