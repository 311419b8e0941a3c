"""Shared by tests of records: recorders, objects, and their comparison."""

import ml_dtypes
import numpy as np

import burnish
from burnish import nn, optim
from burnish.record import (
    BinGzRecorder,
    BinRecorder,
    CompactRecorder,
    JsonGzRecorder,
    NamedMpkGzRecorder,
    NamedMpkRecorder,
    NpzRecorder,
    PrettyJsonRecorder,
    SafetensorsRecorder,
)

RECORDERS = [
    SafetensorsRecorder,
    NamedMpkRecorder,
    NamedMpkGzRecorder,
    BinRecorder,
    BinGzRecorder,
    PrettyJsonRecorder,
    JsonGzRecorder,
    NpzRecorder,
    CompactRecorder,
]
RNG = np.random.default_rng(0)
MIXED = {
    "half": RNG.standard_normal((2, 3)).astype("float16"),
    "brain": RNG.standard_normal(4).astype(ml_dtypes.bfloat16),
    "eight": RNG.standard_normal((2, 2)).astype(ml_dtypes.float8_e4m3fn),
    "single": RNG.standard_normal((2, 1, 3)).astype("float32"),
    "double": np.array(0.1),
    "complex": np.array([1 + 2j, -3.5j], "complex64"),
    "long": np.array([3, -40_000, 2**40]),
    "short": np.array([[1], [-2]], "int8"),
    "unsigned": np.array(2**64 - 1, "uint64"),
    "truth": np.array([True, False]),
    "empty": np.zeros((0, 3), "float32"),
    "none": np.zeros((2, 0)),
    "swapped": np.arange(3, dtype=">f4"),
    "turned": np.arange(6.0).reshape(2, 3).T,
}


class Network(nn.Module):
    """(N, 4) -> (N, 2), with a buffer that counts and a shared weight."""

    def __init__(self):
        self.fc = [nn.Linear(4, 4) for _ in range(2)]
        self.norm = nn.BatchNorm1d(4)
        self.head = nn.Linear(4, 2)
        self.fc[1].weight = self.fc[0].weight

    def forward(self, x):
        for layer in self.fc:
            x = layer(x).relu()
        return self.head(self.norm(x))


def trained():
    """A model after a step, and the optimizer and the schedule of that step."""
    burnish.seed(0)
    model = Network().to("cpu:autodiff")
    adam, schedule = optim.Adam(), optim.Cosine(0.1, 10)
    for _ in range(3):
        x = burnish.Tensor(RNG.standard_normal((8, 4)).astype("float32"))
        loss = (model(x.to("cpu:autodiff")) ** 2).mean()
        adam.step(schedule.step(), model, loss.backward())
    return model, adam, schedule


def same(got, expected, rtol=0.0):
    """Whether values, types and containers are alike; rtol for floating point."""
    if isinstance(expected, dict):
        assert list(got) == list(expected) or set(got) == set(expected)
        for key, value in expected.items():
            same(got[key], value, rtol)
    elif isinstance(expected, list | tuple):
        assert len(got) == len(expected)
        for one, other in zip(got, expected, strict=True):
            same(one, other, rtol)
    elif isinstance(expected, np.ndarray | np.generic):
        assert got.dtype == expected.dtype.newbyteorder("=")
        assert got.shape == expected.shape
        if rtol and expected.dtype.name not in ("bool", "int64", "int8", "uint64"):
            wide = "complex128" if expected.dtype.kind == "c" else "float64"
            np.testing.assert_allclose(
                got.astype(wide), expected.astype(wide), rtol, 1e-6
            )
        else:
            own = expected.astype(expected.dtype.newbyteorder("="))
            assert got.tobytes() == own.tobytes()
    else:
        assert type(got) is type(expected)
        assert got == expected or (got != got and expected != expected)
