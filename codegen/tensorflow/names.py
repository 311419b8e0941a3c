"""Parse TensorFlow's names: "model/dense_1/MatMul/ReadVariableOp:0" is of dense_1.

A name is the path of the scopes that an operator was made in, and the operator. Its
converters add a count ("__123") to what they make beside it, and an output's number.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence, Set

Path = tuple[str, ...]

_CONVERTERS = ("tf2onnx", "keras2onnx", "tensorflow")
_TAIL = re.compile(r"(:\d+|__\d+|_(weights|bias)_fused_bn)+$")
_CALL = re.compile(r"((Stateful)?PartitionedCall|while|cond)(_\d+)?")
_LOOP = re.compile(r"^(cond___|\w+?_while_(cond|body)_(frozen_)?\d+_)")
_COUNT = re.compile(r"_\d+$")
_MOST = 0.75
_HEAVY = re.compile(r"(BatchMatMul|Conv|DepthwiseConv|Einsum|GatherV|MatMul|Tensordot)")
#: Operators and functions of TensorFlow whose own parts are named below them.
_OPERATORS = re.compile(
    r"Add|AddV2|AvgPool|BatchMatMulV2|BiasAdd|Cast|ConcatV2|Const|Conv[123]D"
    r"|Conv[23]DBackpropInput(V2)?|DepthwiseConv2dNative|Einsum|Elu|Erf|ExpandDims|Fill"
    r"|FusedBatchNorm(V2|V3)?|Gather|GatherV2|Gelu|Identity|LeakyRelu|MatMul|Maximum"
    r"|MaxPool(2d)?|Mean|Minimum|Mul|Neg|Pad|PadV2|Pow|RealDiv|ReadVariableOp|Relu6?"
    r"|Repeat|Reshape|Resize(Bilinear|NearestNeighbor)|Rsqrt|SelectV2|Selu|Shape"
    r"|Sigmoid|Slice|Softmax|Softplus|SpaceToBatchND|Split|Sqrt|SquaredDifference"
    r"|Squeeze|Stack|StridedSlice|Sub|Sum|Tanh|Tensor(Array|List)\w*|Tensordot|Tile"
    r"|Transpose|Where|add"
    r"|batchnorm|convolution|depthwise|einsum|embedding_lookup|moments|mul|range|resize"
    r"|separable_conv2d|strided_slice|sub|transpose|truediv|zeros"
)


def is_tensorflows(producer: str, names: Sequence[str]) -> bool:
    """Whether a file's names are TensorFlow's: by who wrote it, else by their form."""
    if producer.lower().startswith(_CONVERTERS):
        return True
    paths = [name for name in names if "/" in name]
    if any(name.startswith("/") for name in paths) or 2 * len(paths) < len(names):
        return False
    typed = sum(_is_operator(_TAIL.sub("", n).rpartition("/")[2]) for n in paths)
    return len(paths) > 2 and 2 * typed > len(paths)


def path_of(name: str) -> Path | None:
    """The scopes in a name, outermost first; None where it has none."""
    parts = name.split(";")
    heavy = [part for part in parts if _HEAVY.match(part.rpartition("/")[2])]
    return _path((heavy or parts)[0])


def is_own(name: str) -> bool:
    """Whether the author's code gave an operator's name."""
    return "/" in name and _TAIL.search(name) is None


def _path(name: str) -> Path | None:
    if "/" not in name:
        return None
    name = _LOOP.sub("", _TAIL.sub("", name))
    parts = [part for part in name.split("/") if not _CALL.fullmatch(part)]
    del parts[-2 if parts[-1:] == ["read"] else -1 :]  # a variable's own name
    popped = ""
    while parts and _is_operator(parts[-1]) and _bare(parts[-1]) != popped:
        popped = parts.pop()
    for place in range(len(parts) - 1, 0, -1):
        if parts[place] == parts[place - 1]:  # "conv1d/conv1d/ExpandDims"
            del parts[place]
    return tuple(part.replace("_._", "_").replace(".", "_") for part in parts)


def _is_operator(name: str) -> bool:
    return _OPERATORS.fullmatch(_bare(name)) is not None


def _bare(name: str) -> str:
    return _COUNT.sub("", name)


def without_calls(paths: Mapping[Path, Set[Hashable]]) -> dict[Path, Path]:
    """Keras 3 counts a layer's uses, the first one too: "conv1_1" is "conv1".

    paths: with the weights that each of them reads. Two scopes are one by this only
    where they read the same weights; else both keep their names.
    """
    reads: dict[Path, set[Hashable]] = defaultdict(set)
    for path, weights in paths.items():
        for depth in range(1, len(path) + 1):
            reads[path[:depth]] |= weights
    counted = sum(_COUNT.search(path[-1]) is not None for path in reads)
    roots = {path[0] for path in paths if path}
    if counted < _MOST * len(reads) or not all(map(_COUNT.search, roots)):
        return {path: path for path in paths}
    same: dict[Path, list[Path]] = defaultdict(list)
    for path in reads:
        same[*path[:-1], _bare(path[-1])].append(path)
    names = {
        path: bare[-1] if all(reads[p] == reads[path] for p in several) else path[-1]
        for bare, several in same.items()
        for path in several
    }
    return {
        path: tuple(names[path[: depth + 1]] for depth in range(len(path)))
        for path in paths
    }
