"""How generated source compares with what its author wrote, model by model.

    python benchmarks/structure.py [NAME ...] [--exporter dynamo] [--keep DIR]

Exports PyTorch models (torchvision's, transformers' with tiny random configurations),
takes the gallery's originals, generates, and prints a table in Markdown: nodes of the
file, lines and classes of the generated source, lines of the original's own classes,
and the largest difference from onnxruntime, relative to the output's largest number.
Lines are those with code on them: blank lines, comments and docstrings do not count,
and every statement is laid out in the same way first.

Every model has a process of its own: torchvision beside a CPU build of torch does not
go together with transformers. Needs torch, onnxscript, onnxruntime, transformers and
torchvision (see `burnish.models._torchvision`); onnxsim for the simplified file.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import json
import re
import subprocess
import sys
import tempfile
import textwrap
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

BATCH, SEQUENCE = 2, 11
CLASSIFIERS = (
    "resnet18",
    "resnet50",
    "mobilenet_v3_large",
    "vit_b_16",
    "swin_t",
    "convnext_tiny",
    "densenet121",
)
TRANSFORMERS = ("bert", "gpt2", "llama", "t5", "whisper", "vit", "clip", "wav2vec2")
ORIGINALS = ("minilm", "silero_vad", "open_nsfw", "resnet18 simplified")
SMALL = {
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 48,
}


@dataclass
class Row:
    """One line of the table."""

    name: str
    exporter: str
    nodes: int
    lines: int
    classes: int
    original: int | None
    difference: float


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", default=[])
    parser.add_argument("--exporter", choices=("dynamo", "torchscript"))
    parser.add_argument("--keep", type=Path, help="keep files and sources here")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        warnings.simplefilter("ignore")
        row = measured(options.names[0], options.exporter, options.keep)
        print(json.dumps(vars(row)))
        return
    print("| model | file | nodes | lines | classes | original | difference |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: |")
    for name in options.names or (*CLASSIFIERS, *TRANSFORMERS, *ORIGINALS):
        every = ("given",) if name in ORIGINALS else ("dynamo", "torchscript")
        for exporter in every:
            if options.exporter in (None, exporter) or exporter == "given":
                show(name, exporter, options.keep)


def show(name: str, exporter: str, keep: Path | None) -> None:
    """Measure one model in a process of its own and print its row."""
    command = [sys.executable, __file__, name, "--one"]
    command += [] if exporter == "given" else ["--exporter", exporter]
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) if keep is None else keep / f"{name}_{exporter}"
        folder.mkdir(parents=True, exist_ok=True)
        command += ["--keep", str(folder)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        reason = done.stderr.strip().splitlines()[-1:] or ["no reason given"]
        print(f"| {name} | {exporter} | failed: {reason[0][:120]} | | | | |")
        return
    row = Row(**json.loads(done.stdout.splitlines()[-1]))
    original = "" if row.original is None else f"{row.original}"
    print(
        f"| {row.name} | {row.exporter} | {row.nodes:,} | {row.lines} | {row.classes} "
        f"| {original} | {row.difference:.0e} |",
        flush=True,
    )


def measured(name: str, exporter: str | None, folder: Path) -> Row:
    """Make or find the file, generate, compare."""
    import onnx

    from burnish.codegen import ModelGen
    from burnish.codegen.verify import verify

    path = folder / f"{name.replace(' ', '_')}.onnx"
    original, inputs = None, {}
    if name in ORIGINALS:
        exporter = given(name, path)
        inputs = speech() if name == "silero_vad" else {}
    else:
        model, inputs, axes = (
            classifier(name) if name in CLASSIFIERS else transformer(name)
        )
        original = lines_of_classes(model)
        export(model, inputs, axes, path, str(exporter))
    graph = onnx.load(path, load_external_data=False).graph
    ModelGen(out_dir=folder).input(path).run()
    text = path.with_suffix(".py").read_text("utf-8")
    arrays = {key: Path(f"{path}.{key}.npy") for key in inputs}
    for key, file in arrays.items():
        np.save(file, np.asarray(inputs[key]))
    report = verify(path, path.with_suffix(".py"), inputs=arrays)
    return Row(
        name,
        str(exporter),
        len(graph.node),
        code_lines(text),
        sum(isinstance(n, ast.ClassDef) for n in ast.walk(ast.parse(text))),
        original,
        max(output.max_rel for output in report.outputs),
    )


def code_lines(text: str) -> int:
    """Lines with code, every statement laid out by `ast.unparse`."""
    tree = ast.parse(textwrap.dedent(text))
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            kept = [each for each in body if not is_docstring(each)]
            node.body = kept or [ast.Pass()]  # type: ignore[attr-defined]
    return sum(bool(line.strip()) for line in ast.unparse(tree).splitlines())


def is_docstring(node: ast.AST) -> bool:
    """A statement that is only a string."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def lines_of_classes(model: Any) -> int:
    """The lines of every class that a model is made of, but for torch's own layers.

    Functions beside them that they name count too, and what those name.
    """
    import torch

    found: dict[Any, str] = {
        base: inspect.getsource(base)
        for module in model.modules()
        for base in type(module).__mro__
        if issubclass(base, torch.nn.Module)
        and not base.__module__.startswith(("torch.", "__main__"))
        and base.__name__ != "PreTrainedModel"
    }
    waiting = list(found)
    while waiting:
        user = waiting.pop()
        beside = vars(sys.modules[user.__module__])
        for name in set(re.findall(r"\w+", found[user])):
            named = beside.get(name)
            own = inspect.isfunction(named) and named.__module__ == user.__module__
            if own and named not in found:
                found[named] = inspect.getsource(named)
                waiting.append(named)
    return sum(map(code_lines, found.values()))


def classifier(name: str) -> tuple[Any, dict[str, Any], dict[str, dict[int, str]]]:
    """One of torchvision's, with random weights and running statistics of some data."""
    import torch

    from burnish.models._torchvision import models

    torch.manual_seed(0)
    model = getattr(models, name)(weights=None)
    for parameter in model.parameters():  # no two equal, as after training
        parameter.data += 0.01 * torch.randn_like(parameter)
    model.eval()
    images = torch.randn(BATCH, 3, 224, 224)
    return model, {"images": images}, {"images": {0: "batch"}}


def transformer(name: str) -> tuple[Any, dict[str, Any], dict[str, dict[int, str]]]:
    """One of transformers', tiny and random; batch and sequence are dynamic."""
    import torch
    import transformers as t

    torch.manual_seed(0)
    ids = torch.randint(1, 90, (BATCH, SEQUENCE))
    mask = torch.ones_like(ids)
    mask[0, -3:] = 0
    tokens = {"input_ids": ids, "attention_mask": mask}
    both = {key: {0: "batch", 1: "sequence"} for key in tokens}
    images = {"pixel_values": torch.randn(BATCH, 3, 32, 32)}
    batch = {"pixel_values": {0: "batch"}}
    vision = SMALL | {"image_size": 32, "patch_size": 8}
    words = SMALL | {"vocab_size": 99}
    encoder_decoder = {
        "d_model": 32,
        "encoder_layers": 2,
        "decoder_layers": 2,
        "encoder_attention_heads": 4,
        "decoder_attention_heads": 4,
    }
    made: dict[str, Callable[[], tuple[Any, dict[str, Any], Any]]] = {
        "bert": lambda: (t.BertModel(t.BertConfig(**words)), tokens, both),
        "gpt2": lambda: (
            t.GPT2LMHeadModel(
                t.GPT2Config(n_embd=32, n_layer=3, n_head=4, vocab_size=99)
            ),
            tokens,
            both,
        ),
        "llama": lambda: (
            t.LlamaForCausalLM(t.LlamaConfig(**words, num_key_value_heads=2)),
            tokens,
            both,
        ),
        "t5": lambda: (
            t.T5ForConditionalGeneration(
                t.T5Config(
                    d_model=32,
                    d_ff=48,
                    d_kv=8,
                    num_layers=2,
                    num_heads=4,
                    vocab_size=99,
                    attn_implementation="eager",
                )
            ),
            tokens | {"decoder_input_ids": ids[:, :7]},
            both | {"decoder_input_ids": {0: "batch", 1: "target"}},
        ),
        "whisper": lambda: (
            t.WhisperModel(
                t.WhisperConfig(
                    **encoder_decoder,
                    vocab_size=99,
                    num_mel_bins=8,
                    max_source_positions=20,
                    max_target_positions=24,
                    pad_token_id=0,
                    bos_token_id=1,
                    eos_token_id=2,
                    decoder_start_token_id=3,
                    encoder_ffn_dim=48,
                    decoder_ffn_dim=48,
                )
            ),
            {"input_features": torch.randn(BATCH, 8, 40), "decoder_input_ids": ids},
            {
                "input_features": {0: "batch"},
                "decoder_input_ids": {0: "batch", 1: "sequence"},
            },
        ),
        "vit": lambda: (t.ViTModel(t.ViTConfig(**vision)), images, batch),
        "clip": lambda: (
            t.CLIPModel(
                t.CLIPConfig(
                    text_config=words | {"eos_token_id": 98, "bos_token_id": 97},
                    vision_config=vision,
                    projection_dim=16,
                )
            ),
            {"input_ids": ids} | images | {"attention_mask": mask},
            {
                "input_ids": {0: "texts", 1: "sequence"},
                "pixel_values": {0: "images"},
                "attention_mask": {0: "texts", 1: "sequence"},
            },
        ),
        "wav2vec2": lambda: (
            t.Wav2Vec2ForCTC(
                t.Wav2Vec2Config(
                    **words,
                    conv_dim=(16, 16),
                    conv_stride=(5, 2),
                    conv_kernel=(10, 3),
                    num_conv_pos_embeddings=4,
                    num_conv_pos_embedding_groups=2,
                    num_feat_extract_layers=2,
                )
            ),
            {"input_values": torch.randn(BATCH, 400)},
            {"input_values": {0: "batch", 1: "samples"}},
        ),
    }
    model, inputs, axes = made[name]()
    model.config.use_cache = False
    kind, names = type(model), list(inputs)

    def forward(self: Any, first: Any, second: Any = None, third: Any = None) -> Any:
        values = (first, second, third)[: len(names)]
        found = kind.forward(self, **dict(zip(names, values, strict=True)))
        for output in ("logits", "logits_per_image", "last_hidden_state"):
            if hasattr(found, output):
                return getattr(found, output)
        raise AttributeError(f"{kind.__name__} gives {list(found)}")

    # exporters hand inputs over by position; the file has one output
    model.__class__ = type(kind.__name__, (kind,), {"forward": forward})
    return model.eval(), inputs, axes


def export(
    model: Any,
    inputs: dict[str, Any],
    axes: dict[str, dict[int, str]],
    path: Path,
    exporter: str,
) -> None:
    """Write the file by one of PyTorch's two exporters."""
    import torch

    if exporter == "torchscript":
        torch.onnx.export(
            model,
            tuple(inputs.values()),
            path,
            dynamo=False,
            opset_version=18,
            input_names=list(inputs),
            dynamic_axes=axes,
        )
        return
    arguments = list(inspect.signature(model.forward).parameters)
    dims = {
        argument: dict.fromkeys(axes[key], torch.export.Dim.DYNAMIC)
        for argument, key in zip(arguments, inputs, strict=False)
    }
    torch.onnx.export(
        model,
        tuple(inputs.values()),
        path,
        dynamo=True,
        opset_version=20,
        input_names=list(inputs),
        dynamic_shapes=dims,
        external_data=False,
        verbose=False,
    )


def speech() -> dict[str, np.ndarray]:
    """A window of noise at 16 kHz, as the voice detector takes it."""
    noise = np.random.default_rng(0).normal(size=(BATCH, 576)) / 8
    return {
        "input": noise.astype(np.float32),
        "sr": np.array(16000),
        "state": np.zeros((2, BATCH, 128), np.float32),
    }


def given(name: str, path: Path) -> str:
    """The gallery's original of that name; where it comes from."""
    from burnish.models._originals import cache_folder

    files = {
        "minilm": ("minilm/minilm.onnx", "dynamo"),
        "silero_vad": ("silero_vad/silero_vad_op18_ifless.onnx", "dynamo"),
        "open_nsfw": ("open_nsfw/open_nsfw.onnx", "TensorFlow"),
        "resnet18 simplified": ("resnet18/resnet18_torchscript.onnx", "onnxsim"),
    }
    file, origin = files[name]
    data = (cache_folder("").parent / "models" / file).read_bytes()
    if origin == "onnxsim":
        import onnx
        import onnxsim

        model, _ = onnxsim.simplify(onnx.load_from_string(data))
        for node in model.graph.node:
            node.ClearField("name")
        data = model.SerializeToString()
    path.write_bytes(data)
    return origin


if __name__ == "__main__":
    main()
