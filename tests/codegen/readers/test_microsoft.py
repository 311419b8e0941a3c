"""onnxruntime's own operators mean what onnxruntime computes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from burnish.codegen.backend import BurnishBackend
from burnish.codegen.errors import UnsupportedError
from burnish.codegen.readers import read
from burnish.codegen.readers.microsoft import DOMAIN

RANDOM = np.random.default_rng(0)
F4, F2, U1, I1, I4, I8 = (
    *(np.float32, np.float16, np.uint8, np.int8, np.int32, np.int64),
)


def x(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(F4)


def half(*shape: int) -> np.ndarray:
    return x(*shape).astype(F2)


def whole(dtype: Any, *shape: int, low: int = 0, high: int = 100) -> np.ndarray:
    return RANDOM.integers(low, high, shape).astype(dtype)


def even(*shape: int) -> np.ndarray:
    """Vectors of length 1."""
    drawn = x(*shape)
    return drawn / np.linalg.norm(drawn, axis=-1, keepdims=True)


class Fixed(np.ndarray):
    """An array that is an initializer of the model."""


def w(*shape: int) -> np.ndarray:
    return fixed(x(*shape))


def fixed(array: Any) -> np.ndarray:
    return np.asarray(array).view(Fixed)


def case(
    kind: str,
    *inputs: np.ndarray | None,
    outputs: str | int = 1,
    domain: str = DOMAIN,
    version: int = 17,
    static: bool = False,
    **attributes: Any,
) -> Any:
    """One node on arguments; outputs: how many, or a mask such as "1001"."""
    asked = "1" * outputs if isinstance(outputs, int) else outputs
    made = [f"y{i}" if wanted == "1" else "" for i, wanted in enumerate(asked)]
    names = ["" if array is None else f"x{i}" for i, array in enumerate(inputs)]
    node = helper.make_node(kind, names, made, domain=domain, name="n", **attributes)
    given, held = [], []
    for name, array in zip(names, inputs, strict=True):
        if isinstance(array, Fixed):
            held.append(numpy_helper.from_array(np.asarray(array), name))
        elif array is not None:
            dtype = helper.np_dtype_to_tensor_dtype(array.dtype)
            named = [f"{name}_{i}" for i in range(array.ndim)]
            shape = array.shape if static else [*named[:-1], *array.shape[-1:]]
            given.append(helper.make_tensor_value_info(name, dtype, shape))
    results = [onnx.ValueInfoProto(name=name) for name in made if name]
    graph = helper.make_graph([node], kind, given, results, held)
    imports = [helper.make_opsetid("", version), helper.make_opsetid(DOMAIN, 1)]
    model = helper.make_model(graph, opset_imports=imports, ir_version=9)
    feeds = [a for a in inputs if a is not None and not isinstance(a, Fixed)]
    return model, feeds


IDS = whole(I4, 2, 5, high=20)
SEGMENTS = whole(I4, 2, 5, high=2)
MASK = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]], I4)
TABLES = (w(20, 8), w(16, 8), w(2, 8))
NORM = (w(8), w(8))
QKV = (w(8, 24), w(24))
REGIONS = F4([[0, 0, 1, 1], [0.2, -0.1, 0.9, 1.1], [0.8, 0.1, 0.3, 0.6]]), I4([1, 0, 1])
COS, SIN = fixed(np.cos(x(16, 2))), fixed(np.sin(x(16, 2)))
WIDE = fixed(np.cos(x(16, 8))), fixed(np.sin(x(16, 8)))
LENGTHS = np.array([4, 4], I4), fixed(np.array(5, I4))
Q8 = (fixed(F4(0.05)), fixed(U1(120)))
R8 = (fixed(F4(0.03)), fixed(U1(100)))
S8 = (fixed(F4(0.02)), fixed(U1(90)))
BLOCKS = fixed(whole(U1, 6, 2, 8, high=256))


LAST = np.array([[1, 1, 1, 1, 1], [0, 0, 1, 1, 1]], I4)


def room(size: int, length: int) -> np.ndarray:
    """Keys or values of two heads; a buffer with a past of this length."""
    whole = x(2, 2, size, 4)
    whole[:, :, length:] = 0
    return whole


def codes(size: int, length: int, bits: int) -> np.ndarray:
    """Keys or values of one head in few bits; a buffer with a past of this length."""
    low, dtype = (-128, I1) if bits == 8 else (0, U1)
    made = whole(dtype, 2, 1, size, 2 * bits, low=low, high=low + 256)
    made[:, :, length:] = 0
    return made


def cache(room: int, *lengths: int) -> np.ndarray:
    """Keys or values of rows that end at these lengths; 0 behind, as onnxruntime has"""
    whole = x(len(lengths), 1, room, 16)
    behind = np.arange(room) >= np.array(lengths)[:, None]
    return np.where(behind[:, None, :, None], F4(0), whole)


def lstm(
    directions: int = 1,
    channels: bool = False,
    dtype: Any = I1,
    extra: tuple[Any, ...] = (None, None, None, None),
    **options: Any,
) -> Any:
    """DynamicQuantizeLSTM of 3 inputs and 4 states; weights of 7 bits.

    Its draws are its own: a case before it moves no value onto a rounding's edge.
    """
    drawn = np.random.default_rng(7)
    shape = (directions, 16) if channels else (directions,)
    middle = 0 if dtype == I1 else 64

    def weight(inputs: int) -> np.ndarray:
        shape = directions, inputs, 16
        codes = drawn.integers(middle - 64, middle + 64, shape)
        return fixed(codes.astype(dtype))

    def real(*shape: int) -> np.ndarray:
        return drawn.standard_normal(shape).astype(F4)

    def scale() -> tuple[np.ndarray, np.ndarray]:
        step = drawn.uniform(0.005, 0.02, shape).astype(F4)
        return fixed(step), fixed(np.full(shape, middle, dtype))

    return case(
        "DynamicQuantizeLSTM",
        *(real(5, 2, 3), weight(3), weight(4), fixed(real(directions, 32)), *extra),
        *(*scale(), *scale()),
        hidden_size=4,
        outputs=3,
        **options,
    )


STATES = x(1, 2, 4), x(1, 2, 4)


def experts(inner: int = 16, gated: bool = False) -> tuple[Any, ...]:
    """4 experts of 8 inputs; gated: two numbers for each that is between."""
    first = inner * 2 if gated else inner
    return w(4, first, 8), w(4, first), w(4, 8, inner), w(4, 8)


def small_experts(bits: int, blocks: int = 1, zeros: bool = False, gated: int = 0):
    """4 experts of 32 inputs and 32 between, with their weights in few bits."""
    given: list[Any] = []
    points: list[Any] = []
    for rows in (32 * (1 + gated), 32):
        shape = (4, rows) if blocks == 1 else (4, rows, blocks)
        given.append(fixed(whole(U1, 4, rows, 4 * bits, high=256)))
        given.append(fixed(RANDOM.uniform(0.001, 0.02, shape).astype(F4)))
        given.append(w(4, rows) if blocks == 1 else None)
        size = -(-blocks * bits // 8)
        points.append(fixed(whole(U1, 4, rows, size, high=256)) if zeros else None)
    return (*given, None, None, None, *points)


OLD: dict[str, Any] = {"domain": "", "version": 9}
EIGHT: dict[str, Any] = {"version": 8}

TEXTS = np.array([["red green", "a-b"], ["", "blue red-1 2"]], object)
COSTS = x(3, 5), x(1, 6, 4), whole(F4, 7, 7, high=3), x(1, 1)
CODES = tuple(fixed(whole(U1, rows, 8)) for rows in (20, 16, 2))
F4S = tuple(fixed(F4(s)) for s in (0.02, 0.03, 0.01, 0.015, 0.02))
U1S = tuple(fixed(U1(z)) for z in (40, 50, 60, 30, 45))

CASES = [
    case("Gelu", x(2, 3)),
    case("BiasGelu", x(2, 3, 4), w(4)),
    case("FastGelu", x(2, 3, 4), w(4)),
    case("FastGelu", x(2, 3)),
    case("QuickGelu", x(2, 3)),
    case("QuickGelu", x(2, 3), alpha=1.0),
    case("SimplifiedLayerNormalization", x(2, 5, 8), w(8), domain=""),
    case("SimplifiedLayerNormalization", x(2, 8), w(8), domain="", version=12),
    case("SkipLayerNormalization", x(2, 5, 8), x(2, 5, 8), *NORM),
    case("SkipLayerNormalization", x(2, 5, 8), x(2, 5, 8), *NORM, w(8), outputs="1001"),
    case("SkipSimplifiedLayerNormalization", x(2, 5, 8), x(2, 5, 8), w(8)),
    case(
        "SkipSimplifiedLayerNormalization",
        *(x(2, 5, 8), x(2, 5, 8), w(8), w(8)),
        outputs="1001",
        epsilon=1e-3,
    ),
    case("EmbedLayerNormalization", IDS, SEGMENTS, *TABLES, *NORM, MASK, outputs=2),
    case("EmbedLayerNormalization", IDS, None, *TABLES[:2], None, *NORM, outputs="101"),
    case(
        "EmbedLayerNormalization",
        *(IDS, SEGMENTS, *TABLES, *NORM, MASK, whole(I4, 2, 5, high=16)),
        outputs=3,
        mask_index_type=1,
    ),
    case("FusedMatMul", x(2, 3, 4), x(2, 5, 4), transB=1, alpha=0.5),
    case("FusedMatMul", x(4, 3), w(4, 5), transA=1),
    case("FusedMatMul", x(3, 2, 4), x(2, 4, 5), transBatchA=1),
    case("FusedMatMul", x(2, 3, 4), x(5, 2, 4), transBatchB=1, transB=1),
    case("TransposeMatMul", x(2, 4, 3), x(2, 4, 5), transA=1),
    case("FusedGemm", x(2, 3), w(4, 3), w(4), transB=1, activation="Relu"),
    case(
        "FusedGemm",
        *(x(2, 3), w(3, 4)),
        activation="LeakyRelu",
        activation_alpha=0.2,
        alpha=0.5,
    ),
    case("FusedConv", x(2, 3, 6, 6), w(4, 3, 3, 3), w(4), activation="Relu"),
    case(
        "FusedConv",
        *(x(1, 2, 6, 6), w(2, 2, 3, 3), w(2), x(1, 2, 6, 6)),
        activation="Relu",
        pads=[1, 1, 1, 1],
    ),
    case(
        "FusedConv",
        *(x(1, 4, 6, 6), w(4, 1, 3, 3)),
        activation="Clip",
        activation_params=[0.0, 1.0],
        group=4,
        strides=[2, 2],
    ),
    case(
        "FusedConv",
        *(x(1, 2, 6), w(2, 2, 3)),
        activation="HardSigmoid",
        activation_params=[0.3, 0.4],
    ),
    *(
        case("MatMulNBits", x(2, 3, 30), BLOCKS, scales, zeros, None, bias, **options)
        for scales, zeros, bias in (
            (w(6, 2), None, None),
            (w(12), fixed(whole(U1, 6, 1, high=256)), w(6)),
        )
        for options in ({"K": 30, "N": 6, "bits": 4, "block_size": 16},)
    ),
    case(
        "MatMulNBits",
        *(x(3, 32), fixed(whole(U1, 6, 2, 16, high=256)), w(6, 2)),
        K=32,
        N=6,
        bits=8,
        block_size=16,
    ),
    case(
        "MatMulNBits",  # onnxruntime takes 8 for every zero point beside g_idx
        *(x(3, 32), fixed(whole(U1, 6, 2, 8, high=256)), w(6, 2), None),
        fixed(RANDOM.permutation(np.repeat([0, 1], 16)).astype(I4)),
        K=32,
        N=6,
        bits=4,
        block_size=16,
    ),
    case(
        "GatherBlockQuantized",
        *(fixed(whole(U1, 7, 16, high=256)), IDS % 7, w(7, 2)),
        bits=4,
        block_size=16,
    ),
    case("Attention", x(2, 5, 8), *QKV, num_heads=2),
    case("Attention", x(2, 5, 8), *QKV, MASK, num_heads=2, unidirectional=1),
    case("Attention", x(2, 5, 8), *QKV, np.array([5, 3], I4), num_heads=2),
    case(
        "Attention",
        *(x(2, 5, 8), *QKV, fixed(np.array([5, 4, 0, 1], I4))),
        num_heads=4,
        scale=0.3,
        static=True,
    ),
    case("Attention", x(2, 2, 8), *QKV, whole(I4, 2, 2, 2, high=2), num_heads=2),
    case(
        "Attention",
        *(x(2, 5, 8), w(8, 20), w(20), None, None, x(2, 2, 5, 5)),
        num_heads=2,
        qkv_hidden_sizes=[8, 8, 4],
    ),
    *(
        case(
            "Attention",
            *(x(2, 2, 8), *QKV, mask, x(2, 2, 2, 3, 4)),
            num_heads=2,
            outputs=2,
            unidirectional=causal,
        )
        for mask, causal in ((MASK, 0), (MASK, 1), (None, 1))
    ),
    *(
        case(
            "MatMulBnb4",
            *(x(2, 3, 30), fixed(whole(U1, 90, high=256)), fixed(abs(x(12)))),
            K=30,
            N=6,
            block_size=16,
            quant_type=kind,
        )
        for kind in (0, 1)
    ),
    case("MultiHeadAttention", *(x(2, 5, 8) for _ in "qkv"), num_heads=2),
    *(
        case(
            "DecoderMaskedMultiHeadAttention",
            *(*(x(2, 1, 8) for _ in "qkv"), LAST, None, room(9, 4), room(9, 4)),
            *(np.array([4], I4), None, None, bias),
            num_heads=2,
            outputs=3,
            past_present_share_buffer=1,
        )
        for bias in (None, w(24))
    ),
    case(
        "DecoderMaskedMultiHeadAttention",  # a decoder's look at what was encoded
        *(x(2, 1, 8), x(2, 2, 7, 4), x(2, 2, 7, 4)),
        num_heads=2,
    ),
    case(
        "MultiHeadAttention",
        *(x(2, 5, 8), x(2, 3, 8), x(2, 3, 12), w(28)),
        num_heads=2,
        scale=0.5,
    ),
    case(
        "MultiHeadAttention",
        *(*(x(2, 5, 8) for _ in "qkv"), w(24), MASK, x(1, 2, 5, 5)),
        num_heads=2,
        unidirectional=1,
    ),
    case(
        "MultiHeadAttention",
        *(*(x(2, 2, 8) for _ in "qkv"), None, None, None),
        *(x(2, 2, 3, 4), x(2, 2, 3, 4)),
        num_heads=2,
        outputs=3,
        unidirectional=1,
    ),
    case("MultiHeadAttention", x(2, 5, 8), x(2, 2, 3, 4), x(2, 2, 3, 4), num_heads=2),
    *(
        case(
            "GroupQueryAttention",
            *(*qkv, x(2, 1, 0, 16), x(2, 1, 0, 16), *LENGTHS, *turned),
            num_heads=2,
            kv_num_heads=1,
            outputs=3,
            **options,
        )
        for qkv, turned, options in (
            ((x(2, 5, 32), x(2, 5, 16), x(2, 5, 16)), (), {}),
            ((x(2, 5, 64), None, None), WIDE, {"do_rotary": 1}),
            ((x(2, 5, 64), None, None), (), {"local_window_size": 2}),
            ((x(2, 5, 64), None, None), (), {"softcap": 0.5, "scale": 0.2}),
        )
    ),
    case(
        "GroupQueryAttention",
        *(x(2, 1, 32), x(2, 1, 16), x(2, 1, 16), x(2, 1, 4, 16), x(2, 1, 4, 16)),
        *(*LENGTHS, *WIDE),
        num_heads=2,
        kv_num_heads=1,
        do_rotary=1,
        rotary_interleaved=1,
        outputs=3,
    ),
    *(  # rows that end at 4 and 2 keys, in a cache that grows or has room
        case(
            "GroupQueryAttention",
            *(x(2, 1, 32), x(2, 1, 16), x(2, 1, 16), cache(room, 4, 2)),
            *(cache(room, 4, 2), np.array([4, 2], I4), total, *more),
            num_heads=2,
            kv_num_heads=1,
            outputs=3,
            **options,
        )
        for room in (4, 9)
        for total, more, options in (
            (fixed(np.array(5, I4)), WIDE, {"do_rotary": 1}),
            (np.array([5], I4), (), {"local_window_size": 2}),
            (fixed(np.array(5, I4)), (None, None, None, x(1, 2, 1, 5)), {}),
        )
    ),
    *(  # softmax with one term more
        case(
            "GroupQueryAttention",
            *(x(2, 5, 64), None, None, x(2, 1, 0, 16), x(2, 1, 0, 16), *LENGTHS),
            *(*WIDE, None, *more),
            num_heads=2,
            kv_num_heads=1,
            do_rotary=1,
            outputs=3,
            **options,
        )
        for more, options in (
            ((), {"smooth_softmax": 1}),
            ((None, fixed(x(2))), {}),
            ((x(1, 2, 5, 5), fixed(x(2))), {"local_window_size": 3, "softcap": 0.5}),
        )
    ),
    case(
        "GroupQueryAttention",  # a sink over a cache
        *(x(2, 1, 32), x(2, 1, 16), x(2, 1, 16), cache(9, 4, 2), cache(9, 4, 2)),
        *(np.array([4, 2], I4), fixed(np.array(5, I4)), *(None,) * 4, fixed(x(2))),
        num_heads=2,
        kv_num_heads=1,
        outputs=3,
    ),
    case(
        "GroupQueryAttention",  # a prompt in a cache with room
        *(x(2, 5, 64), None, None, cache(9, 0, 0), cache(9, 0, 0), *LENGTHS, *WIDE),
        num_heads=2,
        kv_num_heads=1,
        do_rotary=1,
        outputs=3,
    ),
    case("RotaryEmbedding", x(2, 5, 8), whole(I8, 2, 5, high=16), COS, SIN),
    case("RotaryEmbedding", x(2, 3, 5, 4), np.array([2], I8), COS, SIN, interleaved=1),
    case(
        "RotaryEmbedding",
        *(x(2, 5, 12), whole(I8, 2, 5, high=16), COS, SIN),
        num_heads=2,
        rotary_embedding_dim=4,
    ),
    case("QuantizeLinear", x(2, 3), *Q8),
    case("DequantizeLinear", whole(U1, 2, 3), *Q8),
    case("QLinearAdd", whole(U1, 2, 3), *Q8, whole(U1, 3), *R8, *S8),
    case("QLinearMul", whole(U1, 2, 3), *Q8, whole(U1, 2, 3), *R8, *S8),
    case("QLinearSigmoid", whole(U1, 2, 3), *Q8, *R8),
    case("QLinearLeakyRelu", whole(U1, 2, 3), *Q8, *R8, alpha=0.3),
    case("QLinearSoftmax", whole(U1, 2, 5), *Q8, *R8, opset=13),
    case("QLinearConcat", *S8, whole(U1, 2, 3), *Q8, whole(U1, 2, 2), *R8, axis=1),
    case(
        "QLinearWhere",
        *(x(2, 3) > 0, whole(U1, 2, 3), *Q8, whole(U1, 2, 3), *R8, *S8),
    ),
    *(
        case("QLinearGlobalAveragePool", image, *Q8, *R8, channels_last=last)
        for image, last in ((whole(U1, 2, 3, 4, 4), 0), (whole(U1, 2, 4, 4, 3), 1))
    ),
    case(
        "QLinearAveragePool",
        *(whole(U1, 2, 4, 4, 3), *Q8, *R8),
        channels_last=1,
        kernel_shape=[2, 2],
        strides=[2, 2],
    ),
    case(
        "QLinearConv",
        *(whole(U1, 2, 5, 5, 3), *Q8, fixed(whole(U1, 4, 3, 3, 3)), *R8, *S8),
        channels_last=1,
        pads=[1, 1, 1, 1],
    ),
    case(
        "QGemm",
        *(whole(U1, 2, 3), *Q8, fixed(whole(U1, 3, 4)), *R8),
        *(fixed(whole(I4, 4)), *S8),
    ),
    case("QGemm", whole(U1, 2, 3), *Q8, fixed(whole(U1, 4, 3)), *R8, transB=1),
    case(
        "MatMulIntegerToFloat",
        *(whole(U1, 2, 3), fixed(whole(I1, 3, 4)), Q8[0], w(4), Q8[1]),
        *(fixed(whole(I1, 4, high=9)), w(4)),
    ),
    case("DynamicQuantizeMatMul", x(2, 3), fixed(whole(I1, 3, 4)), w(4), None, w(4)),
    *(
        case(
            "QAttention",
            *(whole(U1, 2, 5, 8), fixed(whole(I1, 8, 24)), w(24), Q8[0]),
            *(fixed(F4(0.01)), mask, Q8[1], fixed(I1(3))),
            num_heads=2,
            unidirectional=causal,
        )
        for mask, causal in ((None, 0), (MASK, 1))
    ),
    lstm(),
    lstm(channels=True, dtype=U1),
    lstm(2, direction="bidirectional"),
    lstm(2, True, direction="bidirectional"),
    lstm(direction="reverse", extra=(None, *STATES, None)),
    lstm(extra=(np.array([5, 3], I4), *STATES, None)),
    lstm(extra=(None, *STATES, w(1, 12)), clip=0.5, input_forget=1),
    lstm(activations=["HardSigmoid", "Tanh", "Relu"]),
    *(
        case("MoE", x(3, 8), x(3, 4), *experts(), k=k, activation_type=kind)
        for k, kind in ((1, "gelu"), (2, "relu"), (3, "silu"), (4, "identity"))
    ),
    case(
        "MoE",
        *(x(2, 3, 8), x(6, 4), *experts(gated=True)),
        k=2,
        activation_type="swiglu",
        swiglu_fusion=1,
        activation_alpha=1.702,
        activation_beta=1.0,
        swiglu_limit=0.7,
        normalize_routing_weights=1,
    ),
    *(
        case(
            "QMoE",
            *(x(3, 32), x(3, 4), *small_experts(bits, blocks, zeros)),
            k=2,
            activation_type="silu",
            expert_weight_bits=bits,
            block_size=0 if blocks == 1 else 32 // blocks,
        )
        for bits, blocks, zeros in ((4, 1, False), (8, 1, False), (4, 2, True))
    ),
    case(
        "QMoE",
        *(x(3, 32), x(3, 4), *small_experts(4, gated=1)),
        k=2,
        activation_type="swiglu",
        swiglu_fusion=1,
    ),
    case(
        "QMoE",  # a router that chooses by one table and weighs by another
        *(x(3, 32), x(3, 4), *small_experts(4), None, x(3, 4) ** 2),
        k=2,
        activation_type="relu",
    ),
    case("NhwcMaxPool", whole(U1, 1, 4, 5, 3), kernel_shape=[2, 2], pads=[0, 0, 1, 1]),
    case("Trilu", x(3, 4), fixed(np.array(1, I8)), upper=0),
    case("GatherND", x(3, 4), whole(I8, 2, 1, high=3)),
    case("Range", fixed(F4(1)), fixed(F4(5)), fixed(F4(0.5))),
    case("SampleOp", x(2, 3)),
    case("ExpandDims", x(2, 3), fixed(np.array(1, I4))),
    case("Pad", x(2, 3), fixed(np.array([0, 1, 0, 2], I8)), mode="reflect"),
    case("GridSample", x(1, 2, 4, 4), x(1, 3, 3, 2) * F4(0.4), mode="bicubic"),
    case("CDist", x(3, 4), w(5, 4)),
    case("CDist", x(3, 4), x(5, 4), metric="euclidean"),
    *(
        case(
            "GroupQueryAttention",  # a cache of few bits: new keys are rounded too
            *(x(2, time, 32), x(2, time, 16), x(2, time, 16)),
            *(codes(9, 5 - time, bits), codes(9, 5 - time, bits), *LENGTHS),
            *(*(None,) * 5, scale, scale),
            num_heads=2,
            kv_num_heads=1,
            k_quant_type=kind,
            v_quant_type=kind,
            kv_cache_bit_width=bits,
            outputs=3,
        )
        for time in (1, 5)
        for bits in (8, 4)
        for kind, scale in (
            ("PER_TENSOR", fixed([F4(0.32 / bits)])),
            ("PER_CHANNEL", fixed(abs(x(16)) / 5 + F4(0.08))),
        )
    ),
    *(
        case(
            "QEmbedLayerNormalization",
            *(IDS, *given, fixed(whole(U1, 8)), fixed(whole(U1, 8)), mask),
            *(F4S[:2] if given[0] is None else F4S[:3]),
            *([None] if given[0] is None else []),
            *F4S[3:],
            *(U1S[:2] if given[0] is None else U1S[:3]),
            *([None] if given[0] is None else []),
            *U1S[3:],
            outputs=2,
        )
        for given, mask in (
            ((SEGMENTS, *CODES), MASK),
            ((None, *CODES[:2], None), None),
        )
    ),
    *(
        case(
            "LinearAttention",
            *(x(2, time, heads * 4), x(2, time, 8), x(2, time, 12), state),
            *(-abs(x(2, time, width)) if "gated" in rule else None for width in [2]),
            *(abs(x(2, time, 2)) / 3 if "delta" in rule else None for _ in [0]),
            q_num_heads=heads,
            kv_num_heads=2,
            update_rule=rule,
            outputs=2,
        )
        for time, state in ((1, x(2, 2, 4, 6)), (5, None))
        for rule in ("linear", "gated", "delta", "gated_delta")
        for heads in (1, 2, 4)
    ),
    case("LinearAttentionGate", x(2, 5, 3), w(3), w(3), x(2, 5, 3), outputs=2),
    case("LinearAttentionGate", x(2, 5, 3), w(3), w(3)),
    *(
        case(
            "CausalConvWithState",
            *(x(2, 6, 5), w(6, 1, 3), *more),
            outputs=2,
            activation=kind,
        )
        for more, kind in (((), "none"), ((w(6), x(2, 6, 2)), "silu"))
    ),
    case(
        "CausalConvWithState",
        *(x(2, 5, 6), w(6, 1, 3), w(6), x(2, 4, 6)),
        outputs=2,
        channels_last=1,
        dilation=2,
    ),
    case("GatedRMSNorm", x(2, 5, 12), w(4), x(2, 5, 12)),
    case("GatedRMSNorm", x(2, 5, 4), w(4), x(2, 5, 4), activation="sigmoid"),
    case("BranchwiseRMSNorm", x(2, 5, 12), w(12), num_branches=3),
    case("BranchwiseRMSNorm", x(2, 5, 3, 4), w(3, 4)),
    case("BranchwiseRMSNorm", x(2, 5, 3, 4)),
    case("BranchwiseRMSNorm", x(2, 5, 12), w(4), num_branches=3),
    case("GatedAdd", x(2, 5, 4), x(2, 5, 4), x(2, 5, 1)),
    case("ScaledSiLU", x(2, 5), alpha=1.5),
    case("ScaledSiLU", x(2, 5), fixed(F4(0.5))),
    *(
        case(
            "MoEGroupRouter",
            *(x(5, 8), w(8)),
            top_k=3,
            n_group=groups,
            topk_group=kept,
        )
        for groups, kept in ((1, 1), (4, 2))
    ),
    *(
        case(
            "MRotaryEmbedding",
            *(given, whole(I8, 3, 2, 5, high=16), *WIDE),
            mrope_section=[4, 2, 2],
            mrope_layout=layout,
            num_heads=2,
            interleaved=turn,
        )
        for given, layout, turn in (
            (x(2, 5, 32), 0, 0),
            (x(2, 2, 5, 16), 1, 0),
            (x(2, 5, 32), 1, 1),
        )
    ),
    case("Unique", fixed(F4([2, 1, 1, 3, 4, 3])), outputs=3),
    *(
        case("Tokenizer", TEXTS, mincharnum=least, pad_value="#", mark=mark, **given)
        for least, mark, given in (
            (1, 0, {"tokenexp": "[a-z0-9_]+"}),
            (2, 1, {"tokenexp": "[a-z0-9_]+"}),
            (1, 0, {"separators": [" ", "-"]}),
            (1, 0, {"separators": ["eq", "se", "(,| )"]}),
            (1, 0, {"tokenexp": r"\w+"}),
            (1, 1, {"separators": [""]}),
        )
    ),
    *(case("DynamicTimeWarping", each) for each in COSTS),
    *(
        case("BifurcationDetector", *map(I8, given), outputs=2, **sizes)
        for given, sizes in (
            (([1, 5, 3, 4, 2, 5, 4], [9], [0]), {}),
            (([1, 5, 3, 4, 2], [2, 3], [0]), {"min_ngram_size": 2}),
            (([1, 2, 3, 1, 2, 4], [7, 1, 2], [0]), {"max_ngram_size": 4}),
            (([1, 2, 3, 1, 2, 4], [3, 1, 2], [0]), {"max_ngram_size": 4}),
            (([1, 2, 3], [0, 1, 2, 3], [0]), {"min_ngram_size": 3}),
            (([1, 5, 3, 4, 2], [1, 5], [2], [3, 4, 9, 8]), {}),
            (([1, 5, 3, 4, 2], [1, 5], [2], [3, 4, 2, 8]), {}),
            (([1, 5, 3, 4, 2], [1], [5], [7]), {"min_ngram_size": 2}),
            (([2], [2, 2], [0]), {"max_ngram_size": 5}),
        )
    ),
    *(
        case(
            "MaxpoolWithMask",
            *(x(*shape), hidden),
            static=True,
            kernel_shape=kernel,
            **given,
        )
        for drawn in [np.random.default_rng(21)]
        for shape, kernel, given in (
            ((2, 3, 9), [3], {"strides": [2], "pads": [1, 1]}),
            ((1, 2, 5, 7), [2, 3], {"strides": [1, 2], "pads": [0, 1, 1, 0]}),
            ((1, 2, 3, 4, 5), [2, 2, 2], {}),
        )
        for hidden in [drawn.integers(0, 2, (1, 1, *shape[2:])).astype(I4)]
    ),
    *(
        case(
            "MatMulFpQ4",
            *(x(2, 3, 70), fixed(stored.reshape(-1)), fixed(I8([70, 5]))),
            blk_quant_type=kind,
        )
        for drawn in [np.random.default_rng(22)]
        for kind in (0, 1)
        for stored in [drawn.integers(0, 256, (5, 3, 20 + kind), dtype=U1)]
        for steps in [drawn.uniform(0.01, 0.1, (5, 3, 1)).astype(F4)]
        if stored.__setitem__(np.s_[..., :4], steps.view(U1)) is None
        and (not kind or stored.__setitem__(np.s_[..., 4], stored[..., 4] % 16) is None)
    ),
    *(
        case(
            "VarlenCausalConvWithState",
            *(x(6, 4), w(4, 1, 3), I4([0, 1, 4, 6]), bias, x(3, 4, 2 * dilation)),
            *((counts,) if counts is not None else ()),
            outputs=2 if counts is None else 3,
            dilation=dilation,
            **given,
        )
        for dilation, bias, counts, given in (
            (1, None, None, {}),
            (2, w(4), None, {"activation": "silu"}),
            (1, w(4), I4([1, 0, 5]), {"state_update_capacity": 2}),
        )
    ),
    case(  # nothing is behind the last sequence, which is empty
        "VarlenCausalConvWithState",
        *(x(5, 4), w(4, 1, 1), I4([0, 2, 5, 5]), None, x(3, 4, 0), I4([1, 3, 2])),
        outputs=3,
        state_update_capacity=2,
    ),
    case("MurmurHash3", TEXTS, positive=0, seed=3),
    *(case("MurmurHash3", whole(t, 2, 3)) for t in (I4, I8, F4, np.float64)),
    case("Inverse", x(2, 3, 3)),
    # real zero points, by blocks and by column; two bits; keys that heads share
    *(
        case(
            "MatMulNBits",
            *(drawn.standard_normal((2, 3, 50)).astype(F4), codes_, steps, points),
            *(columns, fixed(drawn.standard_normal(6).astype(F4))),
            **{"K": 50, "N": 6, "bits": bits, "block_size": 16},
        )
        for drawn in [np.random.default_rng(19)]
        for bits in (2, 4, 8)
        for codes_ in [fixed(drawn.integers(0, 256, (6, 4, 2 * bits), dtype=U1))]
        for steps in [fixed(drawn.uniform(0.01, 0.05, (6, 4)).astype(F4))]
        for points, columns in (
            (None, None),
            (fixed(drawn.integers(0, 256, (6, -(-bits // 2)), dtype=U1)), None),
            (fixed(drawn.uniform(0, 9, (6, 4)).astype(F4)), None),
        )
        if bits < 8 or points is None or points.dtype == U1
    ),
    *(
        case(
            "LinearAttention",
            *(drawn.standard_normal((2, 5, 8)).astype(F4) / 2 for _ in range(2)),
            drawn.standard_normal((2, 5, 12)).astype(F4),
            *(None, decay.astype(F4) if "gated" in rule else None),
            rate.astype(F4) if "delta" in rule else None,
            **{"q_num_heads": 2, "kv_num_heads": 4, "update_rule": rule, "outputs": 2},
        )
        for drawn in [np.random.default_rng(20)]
        for decay, rate in [(-drawn.random((2, 5, 4)), drawn.random((2, 5, 4)))]
        for rule in ("linear", "gated", "delta", "gated_delta")
    ),
    case(
        "BranchwiseRMSNorm", np.full((2, 3, 4), 0.5, F4), fixed(np.arange(12, dtype=F4))
    ),
    *(
        case("CropAndResize", x(2, 3, 7, 6), *REGIONS, fixed(I4(size)), **given)
        for size in ([4, 5], [1, 3])
        for given in ({}, {"mode": "nearest"}, {"extrapolation_value": 2.5})
    ),
    case("MatMulInteger16", whole("i2", 2, 3), whole("i2", 3, 4, low=-50)),
    case("UnfoldTensor", x(2, 7, 3), dim=1, size=3, step=2),
    case("UnfoldTensor", x(2, 7), size=2),
    *(
        case("NGramRepeatBlock", whole(I8, 3, 12, high=3), x(3, 5), ngram_size=n)
        for n in (1, 2, 3)
    ),
    case("NGramRepeatBlock", whole(I8, 3, 2, high=3), x(3, 5), ngram_size=4),
    case(
        "ConvTransposeWithDynamicPads",
        *(x(1, 2, 5, 5), w(2, 3, 3, 3), fixed(np.array([1, 0, 1, 0], I8)), w(3)),
        strides=[2, 2],
    ),
    *(
        case("MeanVarianceNormalization", x(2, 3, 4, 5), **options, **(OLD | EIGHT))
        for options in (
            {},
            {"across_channels": 1},
            {"normalize_variance": 0},
            {"across_channels": 1, "normalize_variance": 0},
        )
    ),
    *(
        case(
            "WordConvEmbedding",
            np.array([[1, 2, 3, 4], [5, 1, 0, 0], [6, 0, 0, 0]], I4),
            *(w(5, 1, window, 3), w(5), w(9, 3)),
        )
        for window in (1, 2, 4)
    ),
    *(
        case(
            "NGramHashMapping",
            *(whole(I8, 2, 6, high=6), fixed(whole(I8, 3, low=-(2**40), high=2**40))),
            *(fixed(whole(I8, 4, low=2)), *others),
            max_ngram_size=3,
            n_head_per_ngram=2,
            pad_id=5,
            reset_on_eos=1,
            outputs=2,
        )
        for others in (
            (),
            (whole(I8, 2, 2, high=6), fixed(whole(I8, 4))),
            (whole(I8, 2, 2, high=6), None, fixed(np.array(3, I8))),
            (None, None, fixed(np.array(3, I8)), whole(I4, 2, 6, high=2)),
        )
    ),
    case("Affine", x(6), alpha=2.0, beta=0.5, **OLD),
    case("Crop", x(1, 2, 6, 7), border=[1, 2, 3, 1], **OLD),
    case("Crop", x(1, 2, 6, 7), border=[1, 2, 0, 0], scale=[3, 4], **OLD),
    case("DynamicSlice", x(4, 5), I8([1, -3]), I8([3, 99]), fixed(I8([0, 1])), **OLD),
    case("ImageScaler", x(2, 3, 4, 5), scale=0.5, bias=[1.0, -1.0, 0.2], **OLD),
    case("ParametricSoftplus", x(6), alpha=2.0, beta=0.5, **OLD),
    case("Scale", x(2, 6), scale=0.3, **OLD),
    case("ScaledTanh", x(6), alpha=2.0, beta=0.5, **OLD),
    *(
        case(
            "GatedDeltaNet",
            *(even(2, 5, 2, 8), even(2, 5, 2, 8), x(2, 5, 4, 6), None),
            -abs(x(2, 5, 4)) if rule.startswith("gated") else None,
            abs(even(2, 5, 4)) if rule.endswith("delta") else None,
            x(2, 4, 6, 8),
            outputs=2,
            static=True,
            update_rule=rule,
        )
        for rule in ("linear", "gated", "delta", "gated_delta")
    ),
    case(
        "GatedDeltaNet",
        *(x(10, 2, 8), x(10, 2, 8), x(10, 4, 6), None, x(10, 4), x(10, 4)),
        *(x(2, 4, 6, 8), w(4), w(4)),
        beta_activation="sigmoid",
        gate_activation="softplus",
        outputs=2,
        qk_l2_norm=1,
        static=True,
    ),
    case(
        "GatedDeltaNet",
        *(x(2, 5, 4, 8), x(2, 5, 4, 8), x(2, 5, 4, 6), None, x(2, 5, 4), x(2, 5, 4)),
        *(None, w(4), w(4)),
        beta_activation="sigmoid",
        gate_activation="sigmoid",
        qk_l2_norm=1,
        scale=0.3,
        static=True,
    ),
    *(
        case("HyperConnectionPreMix", x(2, 5, 3, 4), gates, reduction_scale=0.5)
        for gates in (x(2, 5, 3), x(2, 5, 3, 1), x(2, 5, 3, 4))
    ),
    *(
        case("HyperConnectionPreMix", x(2, 5, 12), gates, num_branches=3)
        for gates in (x(2, 5, 3), x(2, 5, 3, 1), x(2, 5, 12))
    ),
    case("HyperConnectionPostMix", x(2, 3, 4), x(2, 4), x(2, 3), x(2, 3, 3)),
    case("HyperConnectionPostMix", x(2, 12), x(2, 4), x(2, 3, 4), num_branches=3),
    case(
        "EngramGate",
        *(x(2, 5, 3, 4), x(2, 5, 3, 4), x(2, 5, 4), w(3, 4), w(3, 4), w(3, 4)),
        outputs=2,
    ),
    case("Gelu", half(2, 3, 4)),
    case("BiasGelu", half(2, 3, 4), half(4)),
    case("FastGelu", half(2, 3, 4), half(4)),
    case("QuickGelu", half(2, 3, 4)),
    case("ScaledSiLU", half(2, 3, 4), alpha=0.7),
    case("SkipLayerNormalization", half(2, 5, 8), half(5, 8), fixed(half(8))),
    case("SkipSimplifiedLayerNormalization", half(2, 5, 8), half(2, 5, 8), half(8)),
    case("GatedRMSNorm", half(2, 3, 8), fixed(half(8)), half(2, 3, 8)),
    case("BranchwiseRMSNorm", half(3, 2, 6), fixed(half(2, 6))),
    case("GatedAdd", half(2, 3, 4), half(2, 3, 4), half(2, 3, 1)),
    case("CausalConvWithState", half(2, 3, 7), fixed(half(3, 1, 4)), outputs=2),
    *(
        case(
            *("MatMulNBits", half(2, 3, 32)),
            *(
                fixed(whole(U1, 6, 2, 8, high=256)),
                fixed(half(6, 2) / F2(40)),
                fixed(half(6, 2)),
            ),
            **{"K": 32, "N": 6, "bits": 4, "block_size": 16, "version": version},
        )
        for version in (17, 21)
    ),
    case(
        "CropAndResize",
        *(half(1, 2, 6, 7), fixed(np.array([[0.1, 0.2, 0.9, 0.8]], F2))),
        *(fixed(np.array([0], I4)), fixed(np.array([3, 4], I4))),
    ),
    case("Attention", half(2, 5, 8), half(8, 24) / F2(4), half(24), num_heads=2),
    case(
        "MatMulNBits",
        *(
            half(2, 3, 32),
            fixed(whole(U1, 6, 2, 8, high=256)),
            fixed(half(6, 2) / F2(40)),
        ),
        **{"K": 32, "N": 6, "bits": 4, "block_size": 16},
    ),
    case(
        "GroupQueryAttention",
        *(half(2, 5, 64), None, None, half(2, 1, 0, 16), half(2, 1, 0, 16)),
        *(np.array([4, 4], I4), fixed(np.array(5, I4))),
        num_heads=2,
        kv_num_heads=1,
        outputs=3,
    ),
]


@pytest.mark.oracle("onnxruntime")
@pytest.mark.parametrize(("model", "feeds"), CASES, ids=lambda m: _name(m))
def test_like_onnxruntime(model: Any, feeds: list[np.ndarray]) -> None:
    runtime = pytest.importorskip("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1  # threads share a batch, and so its range
    session = runtime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    names = [value.name for value in session.get_inputs()]
    expected = session.run(None, dict(zip(names, feeds, strict=True)))
    results = BurnishBackend.prepare(model).run(feeds)
    for y, wanted in zip(results, expected, strict=True):
        assert y.dtype == wanted.dtype
        if wanted.dtype == object:
            np.testing.assert_array_equal(y, wanted)
            continue
        tolerance = 0.0
        if np.issubdtype(wanted.dtype, np.floating):
            tolerance = max(3e-4, 4 * float(np.finfo(wanted.dtype).eps))
        np.testing.assert_allclose(
            *(y.astype(float), wanted.astype(float)), tolerance, tolerance
        )


def sparse(**attributes: Any) -> Any:
    """A model whose first input is sparse; onnxruntime wants both of one size."""
    kind, domain = "SparseToDenseMatMul", DOMAIN
    node = helper.make_node(kind, ["a", "b"], ["y"], domain=domain, **attributes)
    real = onnx.TensorProto.FLOAT
    inputs = [
        helper.make_sparse_tensor_value_info("a", real, [4, 4]),
        helper.make_tensor_value_info("b", real, [4, 4]),
    ]
    outputs = [helper.make_tensor_value_info("y", real, None)]
    graph = helper.make_graph([node], kind, inputs, outputs)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(DOMAIN, 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    matrix = np.zeros((4, 4), F4)
    matrix[[0, 1, 2], [1, 2, 3]] = 2, -1, 3
    return model, [matrix, x(4, 4)]


SPARSE = [
    sparse(),
    sparse(transA=1, alpha=0.5),
    sparse(transB=1),
    sparse(transA=1, transB=1),
]


@pytest.mark.oracle("onnxruntime")
@pytest.mark.parametrize(("model", "feeds"), SPARSE)
def test_sparse_inputs_are_dense_ones(model: Any, feeds: list[np.ndarray]) -> None:
    runtime = pytest.importorskip("onnxruntime")
    a, b = feeds
    places = np.nonzero(a)
    session = runtime.InferenceSession(model.SerializeToString())
    device = runtime.OrtDevice.make("cpu", 0)
    matrix = runtime.SparseTensor.sparse_coo_from_numpy(
        I8(a.shape), a[places], np.stack(places, -1).reshape(-1), device
    )
    values = {
        "a": runtime.OrtValue.ort_value_from_sparse_tensor(matrix),
        "b": runtime.OrtValue.ortvalue_from_numpy(b),
    }
    (expected,) = session.run_with_ort_values(["y"], values)
    (y,) = BurnishBackend.run_model(model, feeds)
    np.testing.assert_allclose(y, expected.numpy(), 1e-6, 1e-6)


def test_halves_are_inverted() -> None:
    matrices = np.random.default_rng(3).random((2, 3, 3)) + 2 * np.eye(3)
    model, feeds = case("Inverse", matrices.astype(np.float16))
    (y,) = BurnishBackend.prepare(model).run(feeds)
    assert y.dtype == np.float16
    expected = np.linalg.inv(feeds[0].astype(float))
    np.testing.assert_allclose(y.astype(float), expected, rtol=2e-3, atol=2e-3)


@pytest.mark.oracle("onnxruntime")
@pytest.mark.parametrize("room", [0, 5, 9])
def test_rows_of_a_prompt_may_end_in_padding(room: int) -> None:
    runtime = pytest.importorskip("onnxruntime")
    model, feeds = case(
        "GroupQueryAttention",
        *(x(2, 5, 64), None, None, cache(room, 0, 0), cache(room, 0, 0)),
        *(np.array([4, 1], I4), fixed(np.array(5, I4)), *WIDE),
        num_heads=2,
        kv_num_heads=1,
        do_rotary=1,
    )
    session = runtime.InferenceSession(model.SerializeToString())
    names = [value.name for value in session.get_inputs()]
    (expected,) = session.run(None, dict(zip(names, feeds, strict=True)))
    (y,) = BurnishBackend.prepare(model).run(feeds)
    np.testing.assert_allclose(y[0], expected[0], 3e-4, 3e-4)
    np.testing.assert_allclose(y[1, :2], expected[1, :2], 3e-4, 3e-4)


def _name(given: Any) -> str | None:
    return given.graph.name if isinstance(given, onnx.ModelProto) else ""


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (case("GreedySearch", IDS)[0], "before its optimisation"),
        (case("Attention", x(2, 5, 8), *QKV, num_heads=2, do_rotary=1)[0], "rotary"),
        (case("Gelu", x(2), beta=1.0)[0], "no attribute beta"),
        (case("Conv", x(2), domain=f"{DOMAIN}.nchwc")[0], "ORT_ENABLE_EXTENDED"),
    ],
)
def test_what_cannot_be_read_is_named(model: Any, reason: str) -> None:
    with pytest.raises(UnsupportedError, match=rf"{reason}(?s:.)*'n'"):
        BurnishBackend.prepare(model)


def test_nodes_inherit_name_and_metadata(tmp_path: Path) -> None:
    model, _ = case("SkipLayerNormalization", x(2, 5, 8), x(2, 5, 8), *NORM)
    model.graph.node[0].metadata_props.add(key="scope", value="a.b")
    onnx.save(model, tmp_path / "m.onnx")
    source = read(tmp_path / "m.onnx")
    assert [n.op_type for n in source.model.graph] == ["Add", "LayerNormalization"]
    assert {n.metadata_props["scope"] for n in source.model.graph} == {"a.b"}
    assert "SkipLayerNormalization" in source.notes[-1]


def test_channels_last_convolutions_in_a_row_need_no_shapes() -> None:
    """Ranks come from the weights, however many convolutions there are."""
    scale, point = numpy_helper.from_array(F4(0.1), "s"), U1(3)
    held = [scale, numpy_helper.from_array(point, "p")]
    held.append(numpy_helper.from_array(whole(U1, 2, 2, 1, 1), "w"))
    nodes = [
        helper.make_node(
            "QLinearConv",
            [f"v{i}", "s", "p", "w", "s", "p", "s", "p"],
            [f"v{i + 1}"],
            domain=DOMAIN,
            channels_last=1,
        )
        for i in range(20)
    ]
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "g",
        [info("v0", onnx.TensorProto.UINT8, [1, 4, 4, 2])],
        [info("v20", onnx.TensorProto.UINT8, None)],
        held,
    )
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid(DOMAIN, 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    (y,) = BurnishBackend.run_model(model, [whole(U1, 1, 4, 4, 2)])
    assert y.shape == (1, 4, 4, 2)
