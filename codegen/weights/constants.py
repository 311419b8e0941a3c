"""Classify initializers: constants of the graph, or weights that training changes.

Both are initializers once Constant nodes are lifted, so the reader marks those that
were Constant nodes; values computed from constants alone are constants too. Names and
uses identify further ones.
"""

from __future__ import annotations

import re

import numpy as np
import onnx_ir as ir

from burnish.codegen.names import authorship

BUDGET = "burnish._files.budget"
"""Where a model that was read keeps how much may be made of it (`meta`)."""

_MARK = "burnish.constant"
_TRAINS = "burnish.weight"
_COPY = "burnish.copy"
_NUMBERED = re.compile(r"[a-z]?_?\d+$")
_CONSTANT = re.compile(r"/(.+/)?Constant(_\d+)?_output_\d+")
"""Names of torch's older exporter for Constants that tools store as weights."""
_PICKED = re.compile(r"/(.+/)?(Gather|Slice|Squeeze)(_\d+)?_output_\d+")
"""Names of single elements that a tool folded: the stride of a detector's level."""
_BUFFERS = re.compile(r"(.*\.)?((original_)?inv_freq|position_ids|\w+_buffer)$")
_OF_LAYERS = re.compile(
    r"weight|bias|running_(mean|var)|in_proj_(weight|bias)|bias_[kv]"
    r"|(weight|bias)_(ih|hh)(_l\d+(_reverse)?)?"
)
KIND = "pkg.torch.export.graph_signature.InputSpec.kind"
PERSISTENT = "pkg.torch.export.graph_signature.InputSpec.persistent"
FOLDED_FROM = "pkg.onnxscript.optimizer.folded_from"
"""Where torch's newer exporter says what a constant was made of."""
_LONGEST = 4096
_ARITHMETIC = frozenset(("Add", "Div", "Max", "Min", "Mul", "Pow", "Sub", "Where"))
_SUMS = _ARITHMETIC | {"FakeQuantize", "QuantizeLinear"}
"""What reads a Constant as it is: arithmetic, and what rounds it before."""
_COMPARISONS = frozenset(("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"))
_BOUNDS = frozenset(("Max", "Min"))
_PRODUCTS = frozenset(("Gemm", "Linear", "MatMul"))
_PLACING = frozenset(("ScatterElements", "ScatterND", "Where"))
_NORMS = frozenset(
    f"{kind}Normalization" for kind in ("Batch", "Group", "Instance", "Layer")
)


def mark(value: ir.Value) -> None:
    """Mark the value as a constant of the graph."""
    value.metadata_props[_MARK] = "yes"


def is_marked(value: ir.Value) -> bool:
    """Whether the value came from a Constant node, or from such values alone."""
    return _MARK in value.metadata_props


def mark_weight(node: ir.Node) -> None:
    """Mark a Constant that a pass computed from weights as a weight."""
    node.metadata_props[_TRAINS] = "yes"


def makes_weight(node: ir.Node) -> bool:
    """Whether a Constant is a weight."""
    return _TRAINS in node.metadata_props


def is_parameter(value: ir.Value) -> bool:
    """Whether the value is an `nn.Parameter` outside of PyTorch's layers.

    The newer exporter says so. The older one gives nodes names with a slash in front,
    and with them what they make: what has none is a parameter.
    """
    name = value.name or ""
    if not authorship.is_path(name) or authorship.is_exporters(name):
        return False
    if _OF_LAYERS.fullmatch(name.rpartition(".")[2]):
        return False
    if KIND in value.metadata_props:
        return True
    nodes = [node for node, _ in value.uses()]
    if any(key.startswith("pkg.torch") for n in nodes for key in n.metadata_props):
        return False
    return "." in name or any("/" in (node.name or "") for node in nodes)


def is_transposed(value: ir.Value) -> bool:
    """Whether it is an author's matrix (in, out), as GPT-2's Conv1D has it.

    All that reads it are products that take it as it is. The (out, in) of
    torch.nn.Linear is transposed in the graph, or by the exporter under another name.
    """
    name = value.name or ""
    if not name.endswith(".weight") or not authorship.is_path(name):
        return False
    return _COPY not in value.metadata_props and all(
        node.op_type in _PRODUCTS
        and place == 1
        and not node.attributes.get_int("transB", 0)
        for node, place in value.uses()
    )


def is_buffer(value: ir.Value) -> bool:
    """Whether the exporter says that it is one of the author's, which never trains."""
    return value.metadata_props.get(KIND) == "BUFFER"


def mark_buffer(value: ir.Value) -> None:
    """Say that it is one of the author's, which never trains."""
    value.metadata_props[KIND] = "BUFFER"


def is_saved(value: ir.Value) -> bool:
    """Whether the author's model saves it: a weight, or a persistent buffer.

    The newer exporter says so of each buffer; in files of the older one a buffer that
    is not persistent is a Constant. Other constants have names that are counted.
    """
    if value.metadata_props.get(PERSISTENT) == "False" or is_marked(value):
        return False
    name = value.name or ""
    return not authorship.is_exporters(name) and not authorship.is_made(name)


def mark_parameter(value: ir.Value) -> None:
    """Say that its name is that of a parameter of the author's."""
    value.metadata_props[KIND] = "PARAMETER"


def mark_copy(value: ir.Value) -> None:
    """Say that an exporter made it of the parameter that it is named after."""
    value.metadata_props[_COPY] = "yes"


def trains(value: ir.Value | None) -> bool:
    """Whether the value is a floating-point weight of the file."""
    return (
        value is not None
        and value.const_value is not None
        and value.const_value.dtype.is_floating_point()
        and not is_marked(value)
        and not _is_compared(value)
        and not _is_bound(value)
        and not _is_angles(value)
        and not _is_exporters(value, value.const_value)
    )


def _is_compared(value: ir.Value) -> bool:
    """Whether it is a threshold: no gradient comes back through a comparison."""
    uses = value.uses()
    return bool(uses) and all(node.op_type in _COMPARISONS for node, _ in uses)


def _is_bound(value: ir.Value) -> bool:
    """Whether it is one number that others are clipped by, and no author named it."""
    uses, name = value.uses(), value.name or ""
    one = value.const_value is not None and value.const_value.size == 1
    named = authorship.is_path(name) and not authorship.is_exporters(name)
    clips = bool(uses) and all(node.op_type in _BOUNDS for node, _ in uses)
    return one and clips and not named


def _is_angles(value: ir.Value) -> bool:
    """Whether it is a table of cosines or sines for positions."""
    uses = value.uses()
    return bool(uses) and all(
        node.op_type == "RotaryEmbedding" and node.domain == "" and place in (1, 2)
        for node, place in uses
    )


def _is_paddles_factor(value: ir.Value) -> bool:
    """Whether a number is what PaddlePaddle's operator says, cast to its input's type.

    A weight of float16 is cast too: a factor alone is none.
    """
    name = value.name or ""
    scales = all(node.op_type in ("Div", "Mul") for node, _ in value.uses())
    cast = authorship.is_paddles_value(name) and "cast" in name
    return authorship.is_paddles_constant(name) or (cast and scales)


def _is_exporters(value: ir.Value, tensor: ir.TensorProtocol) -> bool:
    """Whether torch's exporter made the tensor: a counted name, no weight's use.

    A factor written as an array ([0.5]), a norm's ones or zeros, a mask's parts; what
    a function made that has no parameters, and what authors keep as buffers that are
    not saved.
    """
    if value.metadata_props.get(PERSISTENT) == "False":
        return True
    if authorship.is_made(value.name or "") or _BUFFERS.match(value.name or ""):
        return True
    if _CONSTANT.fullmatch(value.name or ""):
        users = {node.op_type for node, _ in value.uses()}
        if tensor.size == 1 or (users and users <= _SUMS):
            return True
    if len(tensor.shape) == 0 and _PICKED.fullmatch(value.name or ""):
        return True
    if tensor.size == 1 and _is_paddles_factor(value):
        return True
    counted = _NUMBERED.match(value.name or "") is not None
    if len(tensor.shape) == 0 and (
        counted
        or authorship.is_tensorflows(value.name or "")
        or authorship.is_tflites(value.name or "")
    ):
        return True
    if authorship.is_tensorflows(value.name or "") and _is_round(tensor):
        uses = value.uses()
        return bool(uses) and all(node.op_type in _ARITHMETIC for node, _ in uses)
    if not authorship.is_torch_exporters(value.name or ""):
        return False
    if len(tensor.shape) == 0:
        return True
    users = {node.op_type for node, _ in value.uses()}
    if not users or users <= _PLACING:
        return bool(users)
    if len(tensor.shape) != 1 or tensor.size > _LONGEST:
        return False
    if users <= _ARITHMETIC:
        return tensor.size == 1
    return users <= _NORMS and np.unique(tensor.numpy()).tolist() in ([0.0], [1.0])


def _is_round(tensor: ir.TensorProtocol) -> bool:
    """Whether it is one number of few digits, as a person writes and no training finds.

    tf2onnx gives an epsilon or a 1 as many axes as the tensor that it is added to.
    """
    if tensor.size != 1 or not tensor.dtype.is_floating_point():
        return False
    array = tensor.numpy().ravel()
    number = float(array[0])
    return bool(number != 0 and array.dtype.type(float(f"{number:.3g}")) == array[0])
