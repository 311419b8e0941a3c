"""Attention with its scores as a result, and masks of every type."""

import itertools

import numpy as np
import onnx
import pytest
from onnx import TensorProto as T
from onnx import helper as h

from tests.codegen.readers.hostile import N, info, model
from tests.codegen.readers.peers import check, onnxruntime_on, ours


def attention(mode, mask, past, softcap, causal, opset):
    random = np.random.default_rng(3)

    def normal(*shape):
        return random.normal(size=shape).astype(np.float32)

    keys = 9 if past else 4
    feeds = {"q": normal(2, 6, 4, 8), "k": normal(2, 3, 4, 8), "v": normal(2, 3, 4, 8)}
    if mask is not None:
        chosen = random.integers(0, 2, (4, keys))
        chosen[:, 0] = 1
        feeds["mask"] = chosen.astype(mask)
    inputs = [*"qkv", "mask" if mask is not None else ""]
    if past:
        feeds |= {"pk": normal(2, 3, 5, 8), "pv": normal(2, 3, 5, 8)}
        inputs += ["pk", "pv"]
    outputs = ["y", *(["all_k", "all_v"] if past else ["", ""]), "scores"]
    node = N(
        *("Attention", inputs, outputs),
        **{"qk_matmul_output_mode": mode, "softcap": softcap, "is_causal": causal},
    )
    dtype_of = h.np_dtype_to_tensor_dtype
    ports = [info(n, v.shape, dtype_of(v.dtype)) for n, v in feeds.items()]
    return model([node], ports, [n for n in outputs if n], opset=opset), feeds


INTEGERS = [np.int64, np.int32, np.uint8]
MASKS = [None, np.float32, np.bool_, *INTEGERS]


@pytest.mark.oracle
@pytest.mark.parametrize("opset", [23, 24])
@pytest.mark.parametrize("past", [True, False], ids=["past", "no past"])
@pytest.mark.parametrize("mode", [0, 1, 2, 3])
@pytest.mark.parametrize("mask", MASKS, ids=str)
def test_attention_with_its_scores(mask, mode, past, opset):
    for softcap, causal in itertools.product((0.0, 2.0), (0, 1)):
        if causal and mask in INTEGERS:
            continue  # onnxruntime adds -inf as an integer
        made, feeds = attention(mode, mask, past, softcap, causal, opset)
        check(ours(made, feeds), onnxruntime_on(made, feeds))


@pytest.mark.parametrize("plain", [True, False], ids=["plain", "scores"])
@pytest.mark.parametrize("past", [True, False], ids=["past", "no past"])
@pytest.mark.parametrize("mask", INTEGERS, ids=str)
def test_attention_adds_a_mask_of_integers(mask, past, plain):
    made, feeds = attention(2, mask, past, 2.0, 1, 23)
    if plain:
        del made.graph.node[0].output[1:], made.graph.output[1:]
    twin = onnx.ModelProto.FromString(made.SerializeToString())
    twin.graph.input[3].type.tensor_type.elem_type = T.FLOAT
    wide = {**feeds, "mask": feeds["mask"].astype(np.float32)}
    check(ours(made, feeds), ours(twin, wide))
