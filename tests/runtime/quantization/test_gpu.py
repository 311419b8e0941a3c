"""Small numbers on a GPU are those of the CPU."""

import numpy as np
import pytest

from burnish import Tensor, nn, optim, seed
from burnish.quantization import (
    VALUES,
    Calibration,
    Level,
    Quantizer,
    QuantScheme,
    convert_qat,
    prepare_qat,
    quantize_dynamic,
    quantize_static,
)
from tests.harness.operators import gpu_missing

pytestmark = pytest.mark.skipif(gpu_missing() is not None, reason="there is no GPU")
X = np.random.default_rng(0).normal(0.3, 1, (20, 12)).astype(np.float32)
LEVELS = [Level.tensor(), Level.channel(1), Level.row(), Level.block(5)]


def network():
    seed(0)
    net = nn.Sequential(nn.Linear(12, 9), nn.ReLU(), nn.Linear(9, 4))
    return net.valid()  # has drawn its values, on the CPU


@pytest.mark.parametrize("store", ["native", "packed_u8", "packed_u32"])
@pytest.mark.parametrize("level", LEVELS, ids=str)
@pytest.mark.parametrize("value", VALUES)
def test_tensors(value, level, store):
    for mode in ("symmetric", "affine")[: 2 if value.startswith("q") else 1]:
        scheme = QuantScheme(value, mode, level, store)
        cpu = Tensor(X).quantize(scheme)
        gpu = Tensor(X, device="cuda").quantize(scheme)
        for name, part in gpu.packed.parts().items():
            np.testing.assert_array_equal(part.get(), cpu.packed.parts()[name])
        np.testing.assert_array_equal(gpu.numpy(), cpu.numpy())


@pytest.mark.parametrize("method", ["min_max", "percentile", "mse", "entropy"])
def test_calibrations(method):
    scheme, calibration = QuantScheme("q4f", "affine"), Calibration(method)
    cpu = scheme.calibrated(X, calibration)
    gpu = scheme.calibrated(Tensor(X, device="cuda").data, calibration)
    np.testing.assert_allclose(gpu.scales.get(), cpu.scales, 1e-5)


@pytest.mark.parametrize(
    "quantize",
    [
        lambda net: net.quantize_weights(Quantizer()),
        quantize_dynamic,
        lambda net: quantize_static(net, [Tensor(X, device=net.device)]),
    ],
)
def test_models(quantize, tmp_path):
    here, there = quantize(network()), quantize(network().to("cuda"))
    x = Tensor(X, device="cuda")
    np.testing.assert_allclose(there(x).numpy(), here(X).numpy(), atol=0.02)
    there.save_file(tmp_path / "net.safetensors")
    again = network().to("cuda").load_file(tmp_path / "net.safetensors")
    np.testing.assert_array_equal(again(x).numpy(), there(x).numpy())
    np.testing.assert_allclose(again.to("cpu")(X).numpy(), there(x).numpy(), 1e-4, 1e-4)


def test_training():
    inputs = Quantizer(scheme=QuantScheme("q8f", "affine"))
    net = prepare_qat(network(), inputs=inputs, learned=True).to("cuda:autodiff")
    x, optimizer = Tensor(X, device="cuda"), optim.Adam()
    for _ in range(5):
        optimizer.step(1e-2, net, (net(x) ** 2).mean().backward())
    expected = net.valid()(x).numpy()
    np.testing.assert_allclose(
        convert_qat(net.valid())(x).numpy(), expected, 1e-5, 1e-6
    )
