"""onnxruntime's operators that it has no kernel for on a CPU, against NumPy.

SparseAttention has one, which wants one buffer for the past and the present.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from burnish.codegen.backend import BurnishBackend
from burnish.codegen.readers.microsoft import CHANGED, DOMAIN, bodies
from burnish.codegen.readers.microsoft.shared.bodies import attributes_of, inputs_of
from tests.codegen.readers.attention_formulas import (
    ATTENTION,
    COLUMNS,
    ROWS,
    sigmoid,
    softmax,
)
from tests.codegen.readers.microsoft import (
    F4,
    I1,
    I4,
    U1,
    WIDE,
    case,
    fixed,
    w,
    whole,
    x,
)
from tests.codegen.readers.test_microsoft import CASES, SPARSE

ONES = np.ones((2, 3), F4)


# --- convolution ---


def nhwc_conv() -> Any:
    image, kernel, bias = x(2, 5, 6, 4), w(6, 3, 2, 2), w(6)
    windows = np.lib.stride_tricks.sliding_window_view(image, (3, 2), (1, 2))
    halves = [
        np.einsum("nhwcij,mijc->nhwm", windows[..., c, :, :], kernel[m])
        for c, m in ((slice(2), slice(3)), (slice(2, 4), slice(3, 6)))
    ]
    model = case("NhwcConv", image, kernel, bias, group=2)
    return model, [np.concatenate(halves, -1) + np.asarray(bias)]


def nhwc_fused_conv() -> Any:
    image, kernel, other = x(2, 5, 6, 4), w(3, 1, 1, 4), x(2, 5, 6, 3)
    model = case("NhwcFusedConv", image, kernel, None, other, activation="Relu")
    return model, [np.maximum(image @ np.asarray(kernel)[:, 0, 0].T + other, 0)]


# --- images ---


def normed(image: np.ndarray, gamma: np.ndarray, beta: np.ndarray) -> np.ndarray:
    """Two groups of the channels, which are last."""
    groups = image.reshape(len(image), -1, 2, image.shape[-1] // 2)
    mean, var = (f(groups, (1, 3), keepdims=True) for f in (np.mean, np.var))
    y: np.ndarray = ((groups - mean) / np.sqrt(var + 1e-5)).reshape(image.shape)
    return y * gamma + beta


def group_norm() -> Any:
    image, gamma, beta = x(2, 3, 5, 4), w(4), w(4)
    model = case("GroupNorm", image, gamma, beta, groups=2, activation=1)
    y = normed(image, gamma, beta)
    return model, [y * sigmoid(y)]


def skip_group_norm() -> Any:
    image, gamma, beta, skip, bias = x(2, 3, 5, 4), w(4), w(4), x(2, 4), w(4)
    model = case(
        *("SkipGroupNorm", image, gamma, beta, skip, bias),
        **{"groups": 2, "activation": 0, "outputs": 2},
    )
    total = image + skip[:, None, None] + np.asarray(bias)
    return model, [normed(total, gamma, beta), total]


def bias_add() -> Any:
    image, bias, skip = x(2, 6, 4), w(4), x(2, 6, 4)
    return case("BiasAdd", image, bias, skip), [image + np.asarray(bias) + skip]


def bias_split_gelu() -> Any:
    image, bias = x(2, 6, 8), w(8)
    a, b = np.split(image + np.asarray(bias), 2, axis=-1)
    erf = np.vectorize(math.erf)(b / np.sqrt(2))
    return case("BiasSplitGelu", image, bias), [(a * b * (1 + erf) / 2).astype(F4)]


# --- experts ---


def moe_with_three_matrices() -> Any:
    tokens, router = x(5, 8), x(5, 4)
    one, two, three = w(4, 6, 8), w(4, 8, 6), w(4, 6, 8)
    chances = softmax(router)
    expected = np.zeros_like(tokens)
    for t, token in enumerate(tokens):
        for e in np.argsort(-chances[t])[:2]:
            inner = one[e] @ token
            gated = inner / (1 + np.exp(-inner)) * (three[e] @ token)
            expected[t] += chances[t, e] * (two[e] @ gated)
    given = (tokens, router, one, None, two, None, three)
    return case("MoE", *given, k=2, activation_type="silu"), [expected]


# --- sums before an activation ---


def clamped_swiglu() -> Any:
    both = x(2, 3, 8)
    gate, up = np.minimum(both[..., :4], 0.5), np.clip(both[..., 4:], -0.5, 0.5)
    model = case("SwiGLU", both, activation_alpha=1.7, activation_beta=1.0, limit=0.5)
    return model, [gate * sigmoid(1.7 * gate) * (up + 1)]


def swiglu_of_two() -> Any:
    gate, up = x(2, 3), x(2, 3)
    return case("SwiGLU", gate, up), [gate * sigmoid(gate) * up]


def softmax_of_a_sum(axis: int) -> Any:
    data, bias = x(2, 3, 4, 5), x(2, 1, 1, 5)
    total = (data + bias).reshape(*data.shape[:axis], -1)
    model = case("BiasSoftmax", data, bias, axis=axis, is_inner_broadcast=1)
    return model, [softmax(total).reshape(data.shape)]


def dropout_of_a_sum(kind: str) -> Any:
    data, bias, residual = x(2, 3, 4), w(4), x(2, 3, 4)
    return case(kind, data, bias, residual), [data + np.asarray(bias) + residual]


def gelu_of_a_product() -> Any:
    data, weight, bias = x(2, 3), w(3, 4), w(4)
    y = data @ np.asarray(weight) + np.asarray(bias)
    inner = math.sqrt(2 / math.pi) * (y + 0.044715 * y**3)
    return case("GemmFastGelu", data, weight, bias), [0.5 * y * (1 + np.tanh(inner))]


def product_and_softmax() -> Any:
    a, b = x(2, 3, 4), x(2, 5, 4)
    model = case("FusedMatMulActivation", a, b, transB=1, activation="Softmax")
    return model, [softmax(a @ b.swapaxes(1, 2)).astype(F4)]


# --- several products with weights of 4 bits ---


def four_bits(rows: int) -> tuple[list[np.ndarray], np.ndarray]:
    """Codes and scales of a weight, and the weight."""
    codes = np.random.default_rng(rows).integers(0, 16, (rows, 64))
    scales = x(rows, 2) / 32
    real = (codes - 8.0).reshape(rows, 2, 32) * scales[..., None]
    pairs = codes.reshape(rows, 2, 16, 2).astype(np.uint8)
    stored = pairs[..., 0] | pairs[..., 1] << 4
    return [fixed(stored), fixed(scales)], real.reshape(rows, 64).astype(F4)


def mlp_of_four_bits() -> Any:
    (gate, w1), (up, w2) = four_bits(6), four_bits(6)
    a, skip, scale, bias = x(2, 3, 64), x(2, 3, 64), w(64), w(6)
    total = a + skip
    even = total / np.sqrt((total**2).mean(-1, keepdims=True) + 1e-5)
    y = even * np.asarray(scale)
    g = y @ w1.T + np.asarray(bias)
    options = {"K": 64, "N": 6, "block_size": 32, "activation": "silu"}
    model = case(
        "MatMulNBitsMlp", a, skip, scale, *gate, bias, *up, outputs=2, **options
    )
    return model, [g * sigmoid(g) * (y @ w2.T), total]


def heads_of_four_bits() -> Any:
    (q, w1), (k, w2), (v, w3) = four_bits(8), four_bits(4), four_bits(4)
    a, scale = x(2, 3, 64), w(64)
    y = a / np.sqrt((a**2).mean(-1, keepdims=True) + 1e-6) * np.asarray(scale)
    model = case(
        *("MatMulNBitsQkv", a, None, scale, *q, None, *k, None, *v),
        outputs=3,
        K=64,
        Nq=8,
        Nkv=4,
        block_size=32,
    )
    return model, [y @ each.T for each in (w1, w2, w3)]


# --- spectra ---


def halves(spectrum: np.ndarray) -> np.ndarray:
    """Real and imaginary parts in a last axis."""
    return np.stack([spectrum.real, spectrum.imag], -1).astype(F4)


def spectrum_of(axes: int) -> Any:
    signal = x(2, 3, 4, 6)
    wanted = np.fft.rfftn(signal, axes=(-2, -1)[-axes:])
    return case("Rfft", signal, signal_ndim=axes, version=20), [halves(wanted)]


def signal_of(axes: int) -> Any:
    signal = x(2, 3, 4, 6)
    half = halves(np.fft.rfftn(signal, axes=(-2, -1)[-axes:]))
    return case("Irfft", half, signal_ndim=axes, version=20, static=True), [signal]


def complex_product(kind: str) -> Any:
    a, b = (x(3, 4) + 1j * x(3, 4) for _ in "ab")
    given = (halves(a), halves(b))
    return case(kind, *given), [halves(a * (b.conj() if "Conj" in kind else b))]


# --- short ones ---


def gemma_positions() -> Any:
    angles, (q, turned_q, k, turned_k) = x(2, 3, 4), (x(2, 2, 3, 4) for _ in "qrks")
    cos, sin = np.cos(angles)[:, None], np.sin(angles)[:, None]
    model = case("GemmaRotaryEmbedding", angles, q, turned_q, k, turned_k, outputs=2)
    return model, [q * cos + turned_q * sin, k * cos + turned_k * sin]


def all_finite(odd: float, finite: bool, **options: int) -> Any:
    last = np.array([1, odd], F4)
    return case("IsAllFinite", x(2, 3), last, **options), [np.array(finite)]


def embedding_of_torch() -> Any:
    table, ids = w(5, 3), np.array([[0, 4], [2, 2]])
    padding = fixed(np.array(2))
    return case("TorchEmbedding", table, ids, padding), [np.asarray(table)[ids]]


def product_of_codes() -> Any:
    a, b = whole(I1, 2, 3, low=-128, high=128), whole(I1, 3, low=-128, high=128)
    model = case("MulInteger", a, fixed(I1(-7)), b, fixed(I1(5)))
    return model, [(a.astype(I4) + 7) * (b.astype(I4) - 5)]


def sum_of_codes(axes: list[int], keepdims: int) -> Any:
    a = whole(U1, 2, 3, 4, high=256)
    total = a.sum(tuple(axes) or None, I4, keepdims=bool(keepdims))
    model = case("ReduceSumInteger", a, axes=axes, keepdims=keepdims)
    return model, [np.asarray(total)]


def mean_of_codes() -> Any:
    a, zero, new = whole(U1, 2, 3, 4, high=256), U1(120), U1(100)
    real = (a.astype(F4) - 120) * F4(0.05)
    codes = np.rint(real.mean((1, 2), keepdims=True) / F4(0.03)) + 100
    scales = fixed(F4(0.05)), fixed(F4(0.03))
    model = case(
        *("QLinearReduceMean", a, scales[0], fixed(zero), scales[1], fixed(new)),
        **{"axes": [1, 2], "keepdims": 1},
    )
    return model, [np.clip(codes, 0, 255).astype(U1)]


def router_and_expert() -> Any:
    tokens, weight = x(2, 3, 4), w(4, 3 + 2 * 5)
    y = tokens @ np.asarray(weight)
    gate, up = np.minimum(y[..., 3:8], 0.9), np.clip(y[..., 8:], -0.9, 0.9)
    model = case(
        *("RouterGateUpProj", tokens, weight),
        **{"router_size": 3, "activation_alpha": 1.7, "activation_beta": 1.0},
        **{"limit": 0.9, "outputs": 2},
    )
    return model, [y[..., :3], gate * sigmoid(1.7 * gate) * (up + 1)]


def product_with_adapters(empty: bool) -> Any:
    a, (base, weight) = x(2, 3, 64), four_bits(6)
    (down, first), (up, second) = four_bits(64), four_bits(6)
    total = a @ weight.T
    if empty:
        up = [fixed(np.asarray(up[0])[:0]), up[1]]
    else:
        total = total + a @ first.T @ second.T
    sizes = {"K": 64, "N": 6, "lora_bits": 4}
    return case("MatMulNBitsQLoRA", a, *base, *down, *up, **sizes), [total]


FORMULAS = {
    **ATTENTION,
    "NhwcConv": nhwc_conv(),
    "NhwcFusedConv": nhwc_fused_conv(),
    "GroupNorm": group_norm(),
    "SkipGroupNorm": skip_group_norm(),
    "BiasAdd": bias_add(),
    "BiasSplitGelu": bias_split_gelu(),
    "MoE with fc3": moe_with_three_matrices(),
    "BiasDropout": dropout_of_a_sum("BiasDropout"),
    "BitmaskBiasDropout": dropout_of_a_sum("BitmaskBiasDropout"),
    "BitmaskDropout": (case("BitmaskDropout", ONES), [ONES]),
    "BiasSoftmax": softmax_of_a_sum(3),
    "BiasSoftmax of several axes": softmax_of_a_sum(2),
    "ComplexMul": complex_product("ComplexMul"),
    "ComplexMulConj": complex_product("ComplexMulConj"),
    "FusedMatMulActivation": product_and_softmax(),
    "GemmFastGelu": gelu_of_a_product(),
    "GemmaRotaryEmbedding": gemma_positions(),
    "IsAllFinite": all_finite(2, True),
    "IsAllFinite of an infinity": all_finite(-np.inf, False),
    "IsAllFinite of nan": all_finite(np.nan, False),
    "IsAllFinite of nan, for infinities": all_finite(np.nan, True, isinf_only=1),
    "IsAllFinite of an infinity, for nan": all_finite(np.inf, True, isnan_only=1),
    "Irfft": signal_of(1),
    "Irfft of two axes": signal_of(2),
    "MatMulNBitsMlp": mlp_of_four_bits(),
    "MatMulNBitsQkv": heads_of_four_bits(),
    "MatMulNBitsQLoRA": product_with_adapters(empty=False),
    "MatMulNBitsQLoRA without rows": product_with_adapters(empty=True),
    "MulInteger": product_of_codes(),
    "QLinearReduceMean": mean_of_codes(),
    "ReduceSumInteger": sum_of_codes([1, -1], 0),
    "ReduceSumInteger, kept": sum_of_codes([0], 1),
    "RouterGateUpProj": router_and_expert(),
    "Rfft": spectrum_of(1),
    "Rfft of two axes": spectrum_of(2),
    "TorchEmbedding": embedding_of_torch(),
    "SwiGLU": swiglu_of_two(),
    "SwiGLU of both halves, clamped": clamped_swiglu(),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_like_numpy(name: str) -> None:
    (model, feeds), expected = FORMULAS[name]
    results = BurnishBackend.prepare(model).run(feeds)
    for y, wanted in zip(results, expected, strict=True):
        assert y.dtype == wanted.dtype
        np.testing.assert_allclose(y, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.oracle("onnxruntime")
@pytest.mark.parametrize("together", [False, True])
def test_sparse_attention_of_a_prompt_is_that_of_onnxruntime(together: bool) -> None:
    runtime = pytest.importorskip("onnxruntime")
    qkv = (x(2, 5, 64), x(2, 5, 32), x(2, 5, 32))
    model, feeds = case(
        "SparseAttention",
        *((np.concatenate(qkv, -1), None, None) if together else qkv),
        *(np.zeros((2, 2, 8, 16), F4) for _ in "kv"),
        *(fixed(ROWS), fixed(COLUMNS), fixed(np.array([5], I4))),
        *(np.array([5, 5], I4), *WIDE),
        num_heads=4,
        kv_num_heads=2,
        sparse_block_size=2,
        do_rotary=1,
        outputs=3,
    )
    session = runtime.InferenceSession(model.SerializeToString())
    binding, given = session.io_binding(), [feed.copy() for feed in feeds]
    held = {}
    for value, array in zip(session.get_inputs(), given, strict=True):
        held[value.name] = runtime.OrtValue.ortvalue_from_numpy(array)
        binding.bind_ortvalue_input(value.name, held[value.name])
    binding.bind_output("y0")
    binding.bind_ortvalue_output("y1", held["x3"])
    binding.bind_ortvalue_output("y2", held["x4"])
    session.run_with_iobinding(binding)
    expected = [value.numpy() for value in binding.get_outputs()]
    results = BurnishBackend.prepare(model).run(feeds)
    for y, wanted in zip(results, expected, strict=True):
        np.testing.assert_allclose(y, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.oracle("onnxruntime")
def test_every_body_states_its_schema() -> None:
    pytest.importorskip("onnxruntime")
    from onnxruntime.capi import onnxruntime_pybind11_state as state

    alone = {model.graph.name for (model, _), _ in FORMULAS.values()}
    compared = {model.graph.name for model, _ in (*CASES, *SPARSE)}
    assert compared | alone == bodies.keys()
    every = state.get_all_operator_schema()
    listed = [s for s in every if s.since_version < CHANGED.get(s.name, 99)]
    schemas = {s.name: s for s in listed if s.domain in ("", DOMAIN)}
    schemas |= {s.name: s for s in listed if s.domain == DOMAIN}
    for name, body in bodies.items():
        inputs = [each.rstrip("_").lower() for each in inputs_of(body)]
        options = attributes_of(body)
        schema = schemas[name]
        known = [value.name.lower() for value in schema.inputs]
        assert inputs == known[: len(inputs)], name
        assert options <= schema.attributes.keys(), name
