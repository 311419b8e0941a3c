"""Cases of onnxruntime's own operators: states, experts, texts, decoding, old ones."""

from __future__ import annotations

import numpy as np

from tests.codegen.readers.microsoft import (
    COSTS,
    EIGHT,
    F2,
    F4,
    I4,
    I8,
    OLD,
    REGIONS,
    TEXTS,
    U1,
    WIDE,
    case,
    even,
    fixed,
    half,
    w,
    whole,
    x,
)

OTHERS = [
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
