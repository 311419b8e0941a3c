"""Cases of onnxruntime's own operators: layers, attention, quantized operators."""

from __future__ import annotations

import numpy as np

from tests.codegen.readers.microsoft import (
    BLOCKS,
    CODES,
    COS,
    F4,
    F4S,
    I1,
    I4,
    I8,
    IDS,
    LAST,
    LENGTHS,
    MASK,
    NORM,
    Q8,
    QKV,
    R8,
    RANDOM,
    S8,
    SEGMENTS,
    SIN,
    STATES,
    TABLES,
    U1,
    U1S,
    WIDE,
    cache,
    case,
    codes,
    experts,
    fixed,
    lstm,
    room,
    small_experts,
    w,
    whole,
    x,
)

#: Words behind padding, so that the first queries have no earlier key that counts.
_BEFORE = np.array([[0, 0, 1, 1, 1], [0, 0, 0, 0, 0]], I4)
_LEAST = float(np.finfo(F4).min)
#: Inputs between the mask and the bias that is added to the scores.
_NONE = {"Attention": (None,), "MultiHeadAttention": ()}


def _hiding(low: float) -> np.ndarray:
    """A bias that is added to the scores, with what is before the words as `low`."""
    seen = np.arange(5) >= np.array([2, 1])[:, None, None, None]
    return np.where(seen, x(2, 1, 5, 5), F4(low))


LAYERS = [
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
        case(kind, *given, *inputs, num_heads=2, unidirectional=1, **more)
        for kind, given in (
            ("Attention", (x(2, 5, 8), *QKV)),
            ("MultiHeadAttention", (*(x(2, 5, 8) for _ in "qkv"), None)),
        )
        for inputs, more in (
            ((_BEFORE,), {}),
            ((_BEFORE,), {"mask_filter_value": _LEAST}),
            ((None, *_NONE[kind], _hiding(-1e30)), {}),
            ((None, *_NONE[kind], _hiding(-np.inf)), {}),
            ((_BEFORE, *_NONE[kind], _hiding(-1e9)), {"mask_filter_value": _LEAST}),
        )
    ),
]
