"""Quantization of models: weights, activations, and quantization-aware training.

from burnish.quantization import Calibration, Level, Quantizer, QuantScheme

scheme = QuantScheme("q8s", level=Level.channel(0))
quantizer = Quantizer(Calibration.min_max(), scheme)
model.quantize_weights(quantizer)
print(quantizer.report)
model.save_file("small.safetensors")
"""

from burnish.lowbit import (
    VALUES,
    Calibration,
    Level,
    QParams,
    QuantizedTensor,
    QuantScheme,
)
from burnish.quantization.activations import quantize_dynamic, quantize_static
from burnish.quantization.mapper import Dequantize
from burnish.quantization.observer import Observer
from burnish.quantization.quantizer import Quantizer
from burnish.quantization.report import Loss, Report
from burnish.quantization.training import convert_qat, prepare_qat

__all__ = [
    "VALUES",
    "Calibration",
    "Dequantize",
    "Level",
    "Loss",
    "Observer",
    "QParams",
    "QuantScheme",
    "QuantizedTensor",
    "Quantizer",
    "Report",
    "convert_qat",
    "prepare_qat",
    "quantize_dynamic",
    "quantize_static",
]
