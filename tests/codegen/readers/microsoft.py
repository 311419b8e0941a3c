"""Models of one of onnxruntime's own operators, and what is drawn for them."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

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
