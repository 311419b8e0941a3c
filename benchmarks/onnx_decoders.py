"""Language models as ONNX files in onnxruntime's own fused operators, and their steps.

Attention with its cache and rotation, the sum of a residual and its norm, and products
with weights of 8 and 4 bits are one node each. Keys and values are written in place:
past and present are one buffer. Weights are those of a model of ours, by the names of
its template; T new positions.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

BLOCK = 32  # inputs that share a scale
OURS = "com.microsoft"
INT8 = 4  # accuracy_level: inputs of products with small weights are rounded to int8
FLOAT, INT, LONG = "float32", "int32", "int64"


def write(file: Path, model: Any, sizes: dict[str, int], bits: int, room: int) -> int:
    """Write a "gpt2" or "llama" of ours; the bytes of weights that a token reads.

    bits: 8 or 4, or 0 for floats. The model's matrices become the numbers that the
    file holds. sizes: dim, depth, heads, kv_heads, vocab.
    """
    with open(file.with_suffix(".data"), "wb") as data:
        made = _Writer(data, file.with_suffix(".data").name, bits)
        kind = _gpt2 if hasattr(model, "transformer") else _llama
        kind(made, model, sizes, room)
    made.save(file, sizes, room)
    return made.read


def stepper(file: Path, threads: int, sizes: dict[str, int], room: int) -> Any:
    """A function of ids (1, T) that gives logits (1, T, vocab) behind those before."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(file, options, ["CPUExecutionProvider"])
    binding, length = session.io_binding(), 0
    for index in range(2 * sizes["depth"]):
        buffer = onnxruntime.OrtValue.ortvalue_from_numpy(
            np.zeros(_cache_shape(sizes, room), np.float32)
        )
        binding.bind_ortvalue_input(f"past_{index}", buffer)
        binding.bind_ortvalue_output(f"present_{index}", buffer)
    named = {given.name for given in session.get_inputs()}

    def step(ids: Any) -> Any:
        nonlocal length
        total = length + ids.shape[1]
        given = {
            "ids": ids,
            "positions": np.arange(length, total)[None],
            "last": np.array([total - 1], np.int32),
            "total": np.array(total, np.int32),
        }
        for name in named & given.keys():
            binding.bind_cpu_input(name, given[name])
        binding.bind_output("logits", "cpu")  # anew: it has the shape of its last use
        session.run_with_iobinding(binding)
        length = total
        return binding.get_outputs()[-1].numpy()

    return step


def _cache_shape(sizes: dict[str, int], room: int) -> tuple[int, ...]:
    heads = sizes.get("kv_heads", sizes["heads"])
    return 1, heads, room, sizes["dim"] // sizes["heads"]


def _gpt2(to: _Writer, model: Any, sizes: dict[str, int], room: int) -> None:
    body = model.transformer
    head, rows = to.tied(body.wte.weight)
    places = to.node("Gather", to.weight(body.wpe.weight.numpy(), 0), "positions")
    x, norm = to.node("Add", rows("ids"), places), body.h[0].ln_1
    y = to.node(
        "LayerNormalization", x, *to.vectors(norm.weight, norm.bias), epsilon=norm.eps
    )
    for index, block in enumerate(body.h):
        after = body.h[index + 1].ln_1 if index + 1 < len(body.h) else body.ln_f
        y = to.product(y, [block.attn.c_attn.weight], block.attn.c_attn.bias, True)
        y = to.attention(index, [y, "", ""], sizes)
        y = to.product(y, [block.attn.c_proj.weight], None, True)
        y, x = to.norm(y, x, block.ln_2, block.attn.c_proj.bias)
        y = to.product(y, [block.mlp.c_fc.weight], None, True)
        y = to.node("FastGelu", y, *to.vectors(block.mlp.c_fc.bias), domain=OURS)
        y = to.product(y, [block.mlp.c_proj.weight], None, True)
        y, x = to.norm(y, x, after, block.mlp.c_proj.bias)
    head(y)


def _llama(to: _Writer, model: Any, sizes: dict[str, int], room: int) -> None:
    body = model.model
    half = sizes["dim"] // sizes["heads"] // 2
    rates = 10000.0 ** -(np.arange(half) / half)
    angles = np.arange(room)[:, None] * rates
    turns = [to.weight(part(angles).astype(np.float32), 0) for part in (np.cos, np.sin)]
    x, norm = to.rows(body.embed_tokens.weight)("ids"), body.layers[0].input_layernorm
    y = to.node(
        *("SimplifiedLayerNormalization", x, *to.vectors(norm.weight)), epsilon=norm.eps
    )
    for index, layer in enumerate(body.layers):
        last = index + 1 == len(body.layers)
        after = body.norm if last else body.layers[index + 1].input_layernorm
        own = layer.self_attn
        y = to.product(y, [own.q_proj.weight, own.k_proj.weight, own.v_proj.weight])
        y = to.attention(index, [y, "", ""], sizes, turns)
        y = to.product(y, [own.o_proj.weight])
        y, x = to.norm(y, x, layer.post_attention_layernorm)
        gate = to.product(y, [layer.mlp.gate_proj.weight])
        up = to.product(y, [layer.mlp.up_proj.weight])
        gate = to.node("QuickGelu", gate, domain=OURS, alpha=1.0)
        y = to.product(to.node("Mul", gate, up), [layer.mlp.down_proj.weight])
        y, x = to.norm(y, x, after)
    to.product(y, [model.lm_head.weight], name="logits")


class _Writer:
    """Nodes of a graph, whose weights go to a file beside it."""

    def __init__(self, data: Any, location: str, bits: int):
        self.data, self.location, self.bits = data, location, bits
        self.nodes: list[Any] = []
        self.weights: list[Any] = []
        self.read = 0  # bytes that a token reads

    def node(
        self,
        kind: str,
        *inputs: str,
        domain: str = "",
        names: tuple[str, ...] = (),
        **attributes: Any,
    ) -> str:
        """The name of a new node's first output."""
        from onnx import helper

        outputs = names or (f"value_{len(self.nodes)}",)
        self.nodes.append(
            helper.make_node(kind, inputs, outputs, domain=domain, **attributes)
        )
        return outputs[0]

    def weight(self, array: Any, share: float = 1) -> str:
        """The name of a new initializer, of which a token reads that share."""
        from onnx import TensorProto, helper

        made = TensorProto(name=f"weight_{len(self.weights)}", dims=array.shape)
        made.data_type = helper.np_dtype_to_tensor_dtype(array.dtype)
        made.data_location = TensorProto.EXTERNAL
        self.data.write(bytes(-self.data.tell() % 4096))
        for key, value in {
            "location": self.location,
            "offset": self.data.tell(),
            "length": array.nbytes,
        }.items():
            made.external_data.add(key=key, value=str(value))
        self.data.write(np.ascontiguousarray(array))
        self.weights.append(made)
        self.read += int(array.nbytes * share)
        return made.name

    def vectors(self, *parameters: Any) -> list[str]:
        return [self.weight(parameter.numpy()) for parameter in parameters]

    def product(
        self,
        x: str,
        parameters: list[Any],
        bias: Any = None,
        is_transposed: bool = False,
        name: str = "",
    ) -> str:
        """x @ weights.T + bias; weights (outs, ins) side by side, or (ins, outs)."""
        names = (name,) if name else ()
        added = [] if bias is None else self.vectors(bias)
        if not self.bits:
            arrays = [parameter.numpy() for parameter in parameters]
            wide = [array if is_transposed else array.T for array in arrays]
            y = self.weight(np.concatenate(wide, axis=1))
            y = self.node("MatMul", x, y, names=names)
            return self.node("Add", y, *added) if added else y
        pairs = [self._rounded(parameter, is_transposed) for parameter in parameters]
        codes, scales = (np.concatenate(parts) for parts in zip(*pairs, strict=True))
        return self._small_product(x, codes, scales, added, names)

    def _small_product(
        self, x: str, codes: Any, scales: Any, bias: list[str], names: tuple[str, ...]
    ) -> str:
        stored = self._stored(codes).reshape(*scales.shape, -1)
        last = ["", "", *bias] if bias else []
        return self.node(
            *("MatMulNBits", x, self.weight(stored), self.weight(scales), *last),
            domain=OURS,
            names=names,
            K=codes.shape[1],
            N=codes.shape[0],
            bits=self.bits,
            block_size=BLOCK,
            accuracy_level=INT8,
        )

    def _rounded(self, parameter: Any, is_transposed: bool = False) -> tuple[Any, Any]:
        """Codes (outs, ins) and scales (outs, ins / BLOCK); the parameter is theirs."""
        from burnish import Tensor
        from burnish.lowbit import Level, QuantScheme

        scheme = QuantScheme(f"q{self.bits}s", level=Level.block(BLOCK), store="native")
        weight = parameter.numpy()
        packed = scheme.pack(weight.T.copy() if is_transposed else weight)
        held = packed.unpack()
        parameter.assign(Tensor(held.T.copy() if is_transposed else held))
        return packed.codes, packed.scales.reshape(len(held), -1)

    def _stored(self, codes: Any) -> Any:
        """Codes from zero up, those of 4 bits two a byte."""
        codes = (codes.astype(np.int16) + 2 ** (self.bits - 1)).astype(np.uint8)
        return codes if self.bits == 8 else codes[:, ::2] | codes[:, 1::2] << 4

    def rows(self, parameter: Any) -> Callable[[str], str]:
        """A function of the name of ids that gives the name of their rows."""
        if not self.bits:
            table = self.weight(parameter.numpy(), 0)
            return lambda ids: self.node("Gather", table, ids)
        return self._small_rows(*self._rounded(parameter))

    def _small_rows(self, codes: Any, scales: Any) -> Callable[[str], str]:
        held = self.weight(self._stored(codes), 0), self.weight(scales, 0)
        return lambda ids: self.node(
            *("GatherBlockQuantized", held[0], ids, held[1]),
            domain=OURS,
            bits=self.bits,
            block_size=BLOCK,
            gather_axis=0,
            quantize_axis=1,
        )

    def tied(self, parameter: Any) -> tuple[Callable[[str], str], Callable[[str], str]]:
        """The logits of rows, and the rows of ids, by one table."""
        names = ("logits",)
        if self.bits:
            pair = self._rounded(parameter)
            rows = self._small_rows(*pair)
            return lambda x: self._small_product(x, *pair, [], names), rows
        table = self.weight(parameter.numpy())
        return (
            lambda x: self.node(
                "FusedMatMul", x, table, domain=OURS, names=names, transB=1
            ),
            lambda ids: self.node("Gather", table, ids),
        )

    def norm(self, x: str, skip: str, norm: Any, bias: Any = None) -> tuple[str, str]:
        """norm(x + skip + bias), and the sum."""
        given = [norm.weight] if bias is None else [norm.weight, norm.bias, bias]
        simple = "Simplified" if bias is None else ""
        names = tuple(f"value_{len(self.nodes)}_{end}" for end in ("norm", "sum"))
        y = self.node(
            *(f"Skip{simple}LayerNormalization", x, skip, *self.vectors(*given)),
            domain=OURS,
            names=(names[0], "", "", names[1]),
            epsilon=norm.eps,
        )
        return y, names[1]

    def attention(
        self,
        index: int,
        queries_keys_values: list[str],
        sizes: dict[str, int],
        turns: list[str] | None = None,
    ) -> str:
        places = 2 * index, 2 * index + 1
        return self.node(
            *("GroupQueryAttention", *queries_keys_values),
            *(f"past_{place}" for place in places),
            *("last", "total", *(turns or ())),
            domain=OURS,
            names=(f"attended_{index}", *(f"present_{place}" for place in places)),
            num_heads=sizes["heads"],
            kv_num_heads=sizes.get("kv_heads", sizes["heads"]),
            do_rotary=int(turns is not None),
        )

    def save(self, file: Path, sizes: dict[str, int], room: int) -> None:
        from onnx import helper, save

        def info(name: str, dtype: str, shape: Any) -> Any:
            kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
            return helper.make_tensor_value_info(name, kind, shape)

        used = {name for node in self.nodes for name in node.input}
        inputs = [info("ids", LONG, (1, "time")), info("positions", LONG, (1, "time"))]
        inputs += [info("last", INT, (1,)), info("total", INT, ())]
        shape, count = _cache_shape(sizes, room), range(2 * sizes["depth"])
        inputs += [info(f"past_{place}", FLOAT, shape) for place in count]
        outputs = [info(f"present_{place}", FLOAT, shape) for place in count]
        outputs += [info("logits", FLOAT, (1, "time", sizes["vocab"]))]
        graph = helper.make_graph(
            *(self.nodes, file.stem, [i for i in inputs if i.name in used], outputs),
            self.weights,
        )
        opsets = [helper.make_opsetid("", 21), helper.make_opsetid(OURS, 1)]
        save(helper.make_model(graph, opset_imports=opsets, ir_version=10), file)
