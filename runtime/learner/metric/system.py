"""Metrics of the machine: psutil and NVIDIA's management library, when asked for.

A value that a machine does not give is not-a-number.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from burnish.errors import InputError
from burnish.learner.metric.base import Metric, Moment, Statistics, ratio


class _Reading(Metric):
    """The mean of the readings at every batch."""

    higher_is_better = None

    def read(self) -> float:
        """The value now; nan where there is none."""
        raise TypeError(f"{type(self).__name__} does not say what it reads")

    def statistics(self, item: Any, moment: Moment) -> Statistics:
        value = self.read()
        known = not np.isnan(value)
        return {"sum": value if known else 0.0, "count": int(known)}

    def value(self, statistics: Statistics) -> float:
        return ratio(statistics["sum"], statistics["count"])


class CpuUse(_Reading):
    """How busy all cores are since the last batch."""

    unit = "%"

    def read(self) -> float:
        return float(_library("psutil").cpu_percent(interval=None))


class CpuMemory(_Reading):
    """Memory in use on the machine."""

    unit = "GiB"

    def read(self) -> float:
        return float(_library("psutil").virtual_memory().used / 2**30)


class CpuTemperature(_Reading):
    """The mean of the CPU's sensors."""

    unit = "°C"

    def read(self) -> float:
        sensors: Any = getattr(_library("psutil"), "sensors_temperatures", dict)()
        found = [s.current for name in _CPU for s in sensors.get(name, ())]
        return float(np.mean(found)) if found else float("nan")


_CPU = ("coretemp", "k10temp", "zenpower", "cpu_thermal", "cpu-thermal")


class _Gpu(_Reading):
    def __init__(self, index: int = 0):
        self.index = index

    @property
    def name(self) -> str:
        return super().name + (f" {self.index}" if self.index else "")

    def read(self) -> float:
        library = _library("pynvml")
        try:
            library.nvmlInit()
            return self.ask(library, library.nvmlDeviceGetHandleByIndex(self.index))
        except library.NVMLError:
            return float("nan")

    def ask(self, library: Any, device: Any) -> float:
        """The value of one device."""
        raise TypeError(f"{type(self).__name__} does not say what it asks")


class GpuUse(_Gpu):
    """How busy a GPU is."""

    unit = "%"

    def ask(self, library: Any, device: Any) -> float:
        return float(library.nvmlDeviceGetUtilizationRates(device).gpu)


class GpuMemory(_Gpu):
    """Memory in use on a GPU."""

    unit = "GiB"

    def ask(self, library: Any, device: Any) -> float:
        return float(library.nvmlDeviceGetMemoryInfo(device).used / 2**30)


class GpuTemperature(_Gpu):
    """The temperature of a GPU."""

    unit = "°C"

    def ask(self, library: Any, device: Any) -> float:
        sensor = library.NVML_TEMPERATURE_GPU
        return float(library.nvmlDeviceGetTemperature(device, sensor))


def _library(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise InputError(
            f"metrics of the machine need {name}: pip install 'burnish[train]'"
        ) from None
