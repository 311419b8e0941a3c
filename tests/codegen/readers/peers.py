"""A file's numbers here and in onnxruntime, and how they are compared."""

import numpy as np
import pytest

from burnish.codegen.backend import BurnishBackend


def onnxruntime_on(made, feeds):
    runtime = pytest.importorskip("onnxruntime")
    options = runtime.SessionOptions()
    options.log_severity_level = 4
    session = runtime.InferenceSession(made.SerializeToString(), options)
    return session.run(None, {i.name: feeds[i.name] for i in session.get_inputs()})


def ours(made, feeds):
    return BurnishBackend.run_model(made, list(feeds.values()))


def check(got, expected):
    for one, wanted in zip(got, expected, strict=True):
        assert one.dtype == wanted.dtype
        assert one.shape == wanted.shape
        wanted = np.where(wanted == np.finfo(np.float32).min, -np.inf, wanted)
        np.testing.assert_allclose(one, wanted, rtol=1e-4, atol=1e-5)
