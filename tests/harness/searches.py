"""Tiny language models whose search is an operator of onnxruntime.

As its converter writes them: decoders and encoders are graphs in attributes, and their
weights initializers of the graph around them, or of their own.
"""

from __future__ import annotations

import io
import warnings
from typing import Any

import onnx
import torch
from onnx import TensorProto, helper
from torch import nn

VOCAB, WIDTH, HEADS, LAYERS = 40, 32, 2, 2
SIZE = WIDTH // HEADS
PAD, EOS = 38, 39


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(WIDTH, WIDTH) for _ in range(4))

    def forward(self, x, mask, past=None, cross=None):
        """x (B, T, W); mask is added to scores; past, cross: keys and values"""
        q = self.heads(self.q(x))
        k, v = cross or (self.heads(self.k(x)), self.heads(self.v(x)))
        if past is not None:
            k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
        y = torch.softmax(q @ k.transpose(2, 3) * SIZE**-0.5 + mask, -1) @ v
        return self.o(y.transpose(1, 2).reshape(x.shape)), (k, v)

    def heads(self, x):
        return x.reshape(x.shape[0], x.shape[1], HEADS, SIZE).transpose(1, 2)


class Block(nn.Module):
    def __init__(self, is_crossed=False):
        super().__init__()
        self.ln_1, self.attn = nn.LayerNorm(WIDTH), Attention()
        if is_crossed:
            self.ln_c, self.cross = nn.LayerNorm(WIDTH), Attention()
        self.ln_2 = nn.LayerNorm(WIDTH)
        self.mlp = nn.Sequential(
            nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH)
        )

    def forward(self, x, mask, past=None, cross=None, cross_mask=None):
        y, present = self.attn(self.ln_1(x), mask, past)
        x = x + y
        if cross is not None:
            x = x + self.cross(self.ln_c(x), cross_mask, cross=cross)[0]
        return x + self.mlp(self.ln_2(x)), present


def hidden(mask):
    """Scores of places that a mask (B, L) hides: (B, 1, 1, L)"""
    return (1.0 - mask[:, None, None, :].float()) * -10000.0


class Decoder(nn.Module):
    """GPT-2's interface: ids, positions, mask, past (2, B, H, L, D) of each layer."""

    def __init__(self):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(VOCAB, WIDTH), nn.Embedding(64, WIDTH)
        self.h = nn.ModuleList(Block() for _ in range(LAYERS))
        self.ln_f = nn.LayerNorm(WIDTH)

    def forward(self, ids, positions, mask, *past):
        x = self.wte(ids) + self.wpe(positions)
        length = mask.shape[1]
        places = torch.arange(length)
        ahead = places[None, :] > places[length - ids.shape[1] :, None]
        scores = hidden(mask) + ahead.float() * -10000.0
        presents = []
        for block, held in zip(self.h, past, strict=True):
            x, present = block(x, scores, (held[0], held[1]))
            presents.append(torch.stack(present))
        return self.ln_f(x) @ self.wte.weight.T, *presents


class Encoder(nn.Module):
    """T5's first call: what the encoder gives, and the decoder of the start token."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, ids, mask, start=None):
        return self.model.begin(ids, mask, start)


class Seq2Seq(nn.Module):
    """An encoder and a decoder; `forward` is a step of the decoder."""

    def __init__(self, takes_states):
        super().__init__()
        self.takes_states = takes_states
        self.shared = nn.Embedding(VOCAB, WIDTH)
        self.encoder = nn.ModuleList(Block() for _ in range(LAYERS))
        self.decoder = nn.ModuleList(Block(is_crossed=True) for _ in range(LAYERS))
        self.head = nn.Linear(WIDTH, VOCAB, bias=False)

    def begin(self, ids, mask, start):
        x = self.shared(ids)
        for block in self.encoder:
            x, _ = block(x, hidden(mask))
        cross = []
        for block in self.decoder:
            cross += [block.cross.heads(p(x)) for p in (block.cross.k, block.cross.v)]
        if start is None:
            return tuple(cross)
        logits, *present = self.step(start, mask, None, cross)
        return logits, x, *present, *cross

    def step(self, ids, mask, past, cross):
        x, present = self.shared(ids), []
        for i, block in enumerate(self.decoder):
            held = None if past is None else (past[2 * i], past[2 * i + 1])
            pair = cross[2 * i], cross[2 * i + 1]
            scores = torch.zeros(1)
            x, made = block(x, scores, held, pair, hidden(mask))
            present += made
        return self.head(x), *present

    def forward(self, ids, mask, *rest):
        rest = rest[1:] if self.takes_states else rest
        return self.step(ids, mask, rest[: 2 * LAYERS], rest[2 * LAYERS :])


def randomized(module: nn.Module, seed: int) -> nn.Module:
    torch.manual_seed(seed)
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.4)
    return module.eval()


def exported(
    module: nn.Module,
    given: tuple[Any, ...],
    names: list[str],
    results: list[str],
    axes: dict[str, dict[int, str]],
) -> onnx.GraphProto:
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            module, given, file, input_names=names, output_names=results,
            dynamic_axes=axes, opset_version=17, dynamo=False,
        )  # fmt: skip
    return onnx.load_from_string(file.getvalue()).graph


def _ids(*shape: int) -> torch.Tensor:
    return torch.zeros(shape, dtype=torch.int32)


def gpt2(seed: int = 0) -> dict[str, onnx.GraphProto]:
    """The graphs of a decoder alone."""
    past = [f"past_{i}" for i in range(LAYERS)]
    present = [f"present_{i}" for i in range(LAYERS)]
    given = (_ids(2, 3), _ids(2, 3), torch.ones(2, 5, dtype=torch.int32))
    held = tuple(torch.zeros(2, 2, HEADS, 2, SIZE) for _ in past)
    axes = {
        "input_ids": {0: "batch_size", 1: "seq_len"},
        "position_ids": {0: "batch_size", 1: "seq_len"},
        "attention_mask": {0: "batch_size", 1: "total_seq_len"},
        "logits": {0: "batch_size", 1: "seq_len"},
        **{name: {1: "batch_size", 3: "past_seq_len"} for name in past},
        **{name: {1: "batch_size", 3: "total_seq_len"} for name in present},
    }
    names = ["input_ids", "position_ids", "attention_mask", *past]
    decoder = randomized(Decoder(), seed)
    return {
        "decoder": exported(decoder, given + held, names, ["logits", *present], axes)
    }


def t5(
    seed: int = 0, *, starts: bool = True, takes_states: bool = False
) -> dict[str, onnx.GraphProto]:
    """The graphs of an encoder and a decoder.

    starts: the encoder runs the decoder of the start token too.
    """
    model = randomized(Seq2Seq(takes_states), seed)
    sides = [f"{x}_{{}}_{i}" for i in range(LAYERS) for x in ("key", "value")]
    own, cross = ([s.format(kind) for s in sides] for kind in ("self", "cross"))
    batch, source = {0: "batch_size"}, {0: "batch_size", 1: "encode_sequence_length"}
    axes = {"encoder_input_ids": source, "encoder_attention_mask": source}
    axes |= {"decoder_input_ids": batch, "logits": batch, "input_ids": batch}
    axes["encoder_hidden_states"] = source
    for name in cross:
        long = {0: "batch_size", 2: "encode_sequence_length"}
        axes |= {f"present_{name}": long, f"past_{name}": long}
    for name in own:
        axes[f"past_{name}"] = {0: "batch_size", 2: "past_decode_sequence_length"}
        axes[f"present_{name}"] = {0: "batch_size", 2: "present_length"}
    ids, mask = _ids(2, 4), torch.ones(2, 4, dtype=torch.int32)
    names = ["encoder_input_ids", "encoder_attention_mask"]
    results = [f"present_{name}" for name in cross]
    given: tuple[Any, ...] = (ids, mask)
    if starts:
        names, given = [*names, "decoder_input_ids"], (ids, mask, _ids(2, 1))
        states = [f"present_{name}" for name in own]
        results = ["logits", "encoder_hidden_states", *states, *results]
    encoder = exported(Encoder(model), given, names, results, axes)
    held = [torch.zeros(2, HEADS, 3, SIZE) for _ in own]
    far = [torch.zeros(2, HEADS, 4, SIZE) for _ in cross]
    hidden_states = (torch.zeros(2, 4, WIDTH),) if takes_states else ()
    names = [
        *("input_ids", "encoder_attention_mask"),
        *(("encoder_hidden_states",) if takes_states else ()),
        *(f"past_{name}" for name in (*own, *cross)),
    ]
    given = (_ids(2, 1), mask, *hidden_states, *held, *far)
    results = ["logits", *(f"present_{name}" for name in own)]
    return {"encoder": encoder, "decoder": exported(model, given, names, results, axes)}


def _moved(tensor: Any, part: str, tensors: dict[str, Any]) -> str:
    """The name of a weight in the graph around its own: another one's is not taken."""
    name = tensor.name
    if name in tensors and tensors[name].raw_data != tensor.raw_data:
        name = f"s_{part[0]}_{name}"
    tensors[name] = tensor
    tensor.name = name
    return name


_INPUTS = {
    "GreedySearch": "input_ids max_length min_length repetition_penalty vocab_mask "
    "prefix_vocab_mask attention_mask",
    "BeamSearch": "input_ids max_length min_length num_beams num_return_sequences "
    "length_penalty repetition_penalty vocab_mask prefix_vocab_mask attention_mask",
    "Sampling": "input_ids max_length min_length repetition_penalty vocab_mask "
    "prefix_vocab_mask attention_mask presence_mask seed",
}
_FLOATS = ("length_penalty", "repetition_penalty")
_SHAPES = {"vocab_mask": [VOCAB], "prefix_vocab_mask": ["batch_size", VOCAB]}
_SHAPES["presence_mask"] = ["batch_size", VOCAB]


def search(
    op: str,
    graphs: dict[str, onnx.GraphProto],
    given: list[str],
    *,
    moved: bool = True,
    outputs: int = 1,
    **attributes: Any,
) -> onnx.ModelProto:
    """A model of one search; given: the inputs that it has.

    moved: initializers are those of the graph around the decoder.
    """
    tensors: dict[str, Any] = {}
    held = {}
    for name, graph in graphs.items():
        copy = onnx.GraphProto()
        copy.CopyFrom(graph)
        copy.name = f"{name} graph"
        if moved:
            renamed = {}
            for tensor in copy.initializer:
                old = tensor.name
                renamed[old] = _moved(tensor, name, tensors)
            for node in copy.node:
                node.input[:] = [renamed.get(each, each) for each in node.input]
            del copy.initializer[:]
        held[name] = copy
    slots = _INPUTS[op].split()
    inputs = []
    for name in slots:
        if name in given:
            kind = TensorProto.FLOAT if name in _FLOATS else TensorProto.INT32
            ids = name in ("input_ids", "attention_mask")
            shape = ["batch_size", "sequence"] if ids else _SHAPES.get(name, [1])
            inputs.append(helper.make_tensor_value_info(name, kind, shape))
    names = ["sequences", "sequences_scores", "scores"][:outputs]
    ranks = {"sequences": 3 if op == "BeamSearch" else 2, "sequences_scores": 2}
    results = [
        helper.make_tensor_value_info(
            name,
            TensorProto.INT32 if name == "sequences" else TensorProto.FLOAT,
            [f"{name}_{i}" for i in range(ranks.get(name, 4))],
        )
        for name in names
    ]
    options = {"eos_token_id": EOS, "pad_token_id": PAD, **held, **attributes}
    node = helper.make_node(
        op, [n if n in given else "" for n in slots], names,
        name=op, domain="com.microsoft", **options,
    )  # fmt: skip
    graph = helper.make_graph([node], "search", inputs, results, [*tensors.values()])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)
