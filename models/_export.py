"""PyTorch's two exporters, as the gallery uses them.

The newer one optimizes what it writes, and folds batch normalization into convolutions
in doing so. The older one is asked to leave the graph as it was traced.
"""

import io
from pathlib import Path

import torch
from torch import Tensor, nn

from burnish.models._originals import write


def export_by_dynamo(
    model: nn.Module,
    inputs: dict[str, Tensor],
    output: str,
    axes: dict[int, str],
    path: Path,
    opset: int = 20,
) -> Path:
    """Export with torch.export; the named axes of every input are dynamic.

    Stack traces are left out: they hold paths of the machine that exports.
    """
    dims = {axis: torch.export.Dim(name) for axis, name in axes.items()}
    program = torch.onnx.export(
        model.eval(),
        tuple(inputs.values()),
        dynamo=True,
        opset_version=opset,
        input_names=list(inputs),
        output_names=[output],
        dynamic_shapes=(dims,) * len(inputs),
        verbose=False,
    )
    assert program is not None
    for node in program.model.graph.all_nodes():
        node.metadata_props.pop("pkg.torch.onnx.stack_trace", None)
    write(path, program.model_proto.SerializeToString(deterministic=True))
    return path


def export_by_torchscript(
    model: nn.Module,
    inputs: dict[str, Tensor],
    output: str,
    axes: dict[int, str],
    path: Path,
) -> Path:
    """Export by tracing; batch normalization stays, in inference mode."""
    exported = io.BytesIO()
    torch.onnx.export(
        model.eval(),
        tuple(inputs.values()),
        exported,
        dynamo=False,
        training=torch.onnx.TrainingMode.PRESERVE,
        do_constant_folding=False,
        opset_version=18,
        input_names=list(inputs),
        output_names=[output],
        dynamic_axes=dict.fromkeys((*inputs, output), axes),
    )
    write(path, exported.getvalue())
    return path


def export_classifier(model: nn.Module, name: str, folder: Path) -> list[Path]:
    """Export a classifier of images (batch, 3, 224, 224) by both exporters."""
    inputs = {"images": torch.randn(2, 3, 224, 224)}
    common = model, inputs, "logits", {0: "batch"}
    return [
        export_by_dynamo(*common, folder / f"{name}_dynamo.onnx"),
        export_by_torchscript(*common, folder / f"{name}_torchscript.onnx"),
    ]
