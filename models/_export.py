"""PyTorch's two exporters, as the gallery uses them.

The newer one optimizes what it writes, and folds batch normalization into convolutions
in doing so. The older one is asked to leave the graph as it was traced.
"""

import tempfile
from pathlib import Path

import torch
from torch import Tensor, nn

from burnish.models._originals import write


def export_by_dynamo(
    model: nn.Module,
    inputs: dict[str, Tensor],
    output: str,
    axes: dict[int, str],
    opset: int = 20,
) -> bytes:
    """An ONNX file by torch.export; the named axes of every input are dynamic.

    Stack traces are left out: they hold paths of the machine that exports.
    """
    dims = {axis: torch.export.Dim(name) for axis, name in axes.items()}
    program = torch.onnx.export(
        model,
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
    return program.model_proto.SerializeToString(deterministic=True)


def export_by_torchscript(
    model: nn.Module, inputs: dict[str, Tensor], output: str, axes: dict[int, str]
) -> bytes:
    """An ONNX file by tracing the model in the mode it is in, training or not."""
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch, "traced.onnx")
        torch.onnx.export(
            model,
            tuple(inputs.values()),
            path,
            dynamo=False,
            training=torch.onnx.TrainingMode.PRESERVE,
            do_constant_folding=False,
            opset_version=18,
            input_names=list(inputs),
            output_names=[output],
            dynamic_axes=dict.fromkeys((*inputs, output), axes),
        )
        return path.read_bytes()


def export_classifier(model: nn.Module, name: str, folder: Path) -> list[Path]:
    """Export a classifier of images (batch, 3, 224, 224) by both exporters."""
    model.eval()
    images = torch.randn(2, 3, 224, 224)
    paths = []
    for export, suffix in (
        (export_by_dynamo, "dynamo"),
        (export_by_torchscript, "torchscript"),
    ):
        paths.append(folder / f"{name}_{suffix}.onnx")
        write(paths[-1], export(model, {"images": images}, "logits", {0: "batch"}))
    return paths
