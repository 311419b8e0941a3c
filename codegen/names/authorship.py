"""Classify names: given by the model's author, or numbered by a tool.

Files hold both. Of a torch module's weight its path is the author's; "onnx::MatMul_12",
"t41", "unsqueeze_5", "dense/MatMul:0" and PaddlePaddle's "conv2d_0.w_0" are counts of
what wrote the file. Structure, names of members and of values come from the first kind
alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from burnish import ops

OPERATORS = frozenset(vars(ops)["__all__"])
"""The operators' names, of which a process has imported some."""
_TENSORFLOW = re.compile(r".*(:\d+|__\d+)$")
_TFLITE = re.compile(r"[^;]*/[^;]*(;[^;]*/[^;]*)+")
_EXPORTERS = re.compile(r"val_\d|onnx::|scalar_tensor|[a-z]+(\d+_\d+)?_cast(_\d+)?$")
_PADDLES = re.compile(r"\w+_\d+\.[bw]_\d+", re.ASCII)
#: Values that Paddle2ONNX made: "p2o.pd_op.reshape.0.0", "auto.cast.3".
_PADDLES_VALUE = re.compile(r"(p2o|auto\.cast|helper)\.")
#: Those that stand for what an operator says: the factor of a `scale`.
_PADDLES_CONSTANT = re.compile(r"(helper\.constant|p2o\.pd_op\.full)\.\d")
_PATH = re.compile(r"[A-Za-z_]\w*|\w+(\.\w+)+", re.ASCII)
_SHORT = re.compile(r"[a-z]{0,2}_?\d+$")
_OUTPUT = re.compile(r"_output_\d+(_\d+)*$")
_AGAIN = re.compile(r"(_\d+)+$")
_COUNT = re.compile(r"(.*?)_?\d+", re.ASCII)
_HINT = re.compile(r".*\d|.*[/:.].*|_|val|.*output.*")
#: The prefix that spox gives names of a model that it inlines, in branches too.
_INLINED = re.compile(r"(\w+?__)?Inline_\d+__", re.ASCII)
#: Names that torch gives what functions make of a shape alone: "zeros", "ones_like_2".
_MADE = re.compile(
    r"(arange|cos|eye|full|linspace|ones|sin|tril|triu|zeros"
    r"|((empty|full|ones|zeros)_like|new_(full|ones|zeros)))(_\d+)?",
    re.ASCII,
)
_LONGEST_HINT = 24
#: Names that torch's tracer gives the first result of a function; later ones have a
#: number. Words that an author would use too, such as "mean" or "mask", are not here.
_TRACED = re.compile(
    r"_*(abs|addmm|add|arange|baddbmm|bmm|cat|ceil|chunk|clamp|clone|contiguous|copy|cos"
    r"|detach|div|einsum|eq|expand|exp|flatten|flip|floordiv|floor|gather"
    r"|getitem|ge|gt|index_put|index_select|le|log|logical_(and|not|or)|lt|masked_fill"
    r"|matmul|mm|mul|neg|ne|permute|pow|reciprocal|repeat|reshape"
    r"|roll|round|rsqrt|rsub|scatter|select|sigmoid|sin|slice|split_with_sizes|split"
    r"|sqrt|squeeze|stack|sub|sum|sym_size|tanh|tile|to|transpose|tril|triu|truediv"
    r"|type_as|unbind|unflatten|unfold|unsafe_view|unsqueeze|view|where)",
    re.ASCII,
)
#: Names that frameworks give layers, without "_", before they add a number.
_LAYER = re.compile(
    r"((sync|depthwise|separable|group)*(de)?conv(olution)?|innerproduct|fullyconnected"
    r"|((sync)?batch|layer|group|instance)norm(alization)?|linear|dense|fc|bn|ln|embedding"
    r"|lstm|gru|rnn|prelu|gemm|matmul|createparameter)([123]d)?(transpose)?",
    re.ASCII | re.IGNORECASE,
)
SAYS_NOTHING = "val_0"
"""The name of a weight whose name in the file is no author's."""

_LEAST = 8
"""An author counts `conv1` to `conv5` too; fewer layers than this keep their names."""
_MOST = 0.75
"""Where a quarter of the layers has other names, an author gave names."""


def is_by_pytorch(producer: str | None) -> bool:
    """Whether this producer annotates tensors as PyTorch's exporter does."""
    return (producer or "").lower() in ("pytorch", "burnish")


def sorts_nodes(producer: str | None) -> bool:
    """Whether this producer writes the nodes of others in an order of its own."""
    return producer == "onnx.quantize"  # onnxruntime's quantizer


def is_path(name: str) -> bool:
    """Whether it is spelled as an author's path: "scale", "encoder.fc.weight"."""
    return _PATH.fullmatch(name) is not None


def is_exporters(name: str) -> bool:
    """Whether torch's or TensorFlow's exporter counted it: "val_3", "dense:0"."""
    return _EXPORTERS.match(name) is not None or is_tensorflows(name)


def is_torch_exporters(name: str) -> bool:
    """Whether torch's exporter counted it: "onnx::MatMul_12", "val_3"."""
    return _EXPORTERS.match(name) is not None


def is_tensorflows(name: str) -> bool:
    """Whether it is a name such as TensorFlow's exporter counts: "dense/MatMul:0"."""
    return _TENSORFLOW.match(name) is not None


def is_tflites(name: str) -> bool:
    """Whether TFLite joined it of several operators' names: "scale/Const;scale/mul".

    What has a variable among them is a weight: "conv/Conv2D;conv/ReadVariableOp".
    """
    return _TFLITE.fullmatch(name) is not None and "ReadVariableOp" not in name


def is_paddles_parameter(name: str) -> bool:
    """Whether PaddlePaddle names a parameter so: "conv2d_0.w_0", "my_block_3.b_0"."""
    return _PADDLES.fullmatch(name) is not None


def is_paddles_value(name: str) -> bool:
    """Whether PaddlePaddle's exporter counted a value: "p2o.pd_op.reshape.0.0"."""
    return _PADDLES_VALUE.match(name) is not None


def is_paddles_constant(name: str) -> bool:
    """Whether PaddlePaddle's exporter made it of a number in an operator."""
    return _PADDLES_CONSTANT.match(name) is not None


def is_made(name: str) -> bool:
    """Whether torch named so what a function made of a shape: no weight, no buffer."""
    return _MADE.fullmatch(name) is not None


def is_numbered(name: str) -> bool:
    """A name that only counts: "t41", "_12", and "unsqueeze_5", which a tool gave.

    So is "Constant_output_0": an operator and which of its results.
    """
    whole = _OUTPUT.sub("", name)
    base = without_count(whole)
    return (
        _SHORT.match(name) is not None
        or (whole != name and name[0].isupper())
        or (base != name and base in OPERATORS)
    )


def as_given(name: str) -> str:
    """A name without the prefix that a tool added when it inlined a model."""
    return name[found.end() :] if (found := _INLINED.match(name)) else name


def without_count(name: str) -> str:
    """A name without the number that a tool added: "dropout" of "dropout_1"."""
    return _AGAIN.sub("", name)


def is_hint(name: str) -> bool:
    """Whether a person would give a variable the name that the file has for a value."""
    return (
        bool(name)
        and _HINT.fullmatch(name) is None
        and _TRACED.fullmatch(name) is None
        and len(name) <= _LONGEST_HINT
    )


def owner(path: str) -> str:
    """The module that a weight's path says it is of; "" where it is of none."""
    return path.rpartition(".")[0]


def counted_layers(names: Iterable[str]) -> frozenset[str]:
    """Of a file's layers, those that a framework counted: "conv2d_0", "fc_3".

    None of them where there are few, or where others have names that say more.
    """
    known = frozenset(filter(None, names))
    counted = frozenset(filter(_is_layer_count, known))
    many = len(counted) >= max(_LEAST, _MOST * len(known))
    return counted if many else frozenset()


def is_count(name: str) -> bool:
    """Whether it is a word and a number: in a file whose layers count, that is no name.

    So are the factors beside them, "learnable_affine_block_3".
    """
    return _COUNT.fullmatch(name) is not None


def _is_layer_count(name: str) -> bool:
    found = _COUNT.fullmatch(name)
    return found is not None and _LAYER.fullmatch(found[1].replace("_", "")) is not None
