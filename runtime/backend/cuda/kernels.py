"""CUDA kernels from the templates in `templates/kernels/`, compiled when first used."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from burnish.errors import DeviceError

ELEMENTS = {
    "float16": "float16",
    "bfloat16": "bfloat16",
    "float32": "float",
    "float64": "double",
    "bool": "bool",
}
"""The CUDA types of the dtypes that kernels load and store."""

LONG = 1 << 31
"""Kernels count blocks in 32 bits."""


def wide(*dtypes: np.dtype[Any]) -> str:
    """The type that a kernel computes in: double where an array is, else float."""
    return "double" if any(dtype.char == "d" for dtype in dtypes) else "float"


@functools.cache
def named(dtype: np.dtype[Any]) -> str:
    """A dtype's name, which NumPy works out anew in every call."""
    return dtype.name


@functools.cache
def kernel(template: str, chip: str = "", **values: Any) -> Any:
    """The kernel of a template, which has its name, for these values of its names.

    chip: "sm_90a" for instructions of compute capability 9.0 and no other.
    """
    import cupy

    code = render(template, **values)
    options = ("--std=c++17", *([f"-arch={chip}"] if chip else []))
    return cupy.RawKernel(code, template, options=options)


def bound(template: str, **values: Any) -> Any:
    """The same for the current GPU alone, which a launch does not look for.

    It is compiled at once: for what `calls` remembers, which is of one GPU.
    """
    return kernel(template, **values).kernel


def is_hopper() -> bool:
    """Whether the current GPU takes kernels for "sm_90a"."""
    return _capability() == "90"


def has_fast_tf32() -> bool:
    """Whether the current GPU multiplies matrices of TF32 at 8 times float32's rate.

    Those of data centers do (A100, H100, B200); others have as much as float32's.
    """
    return _capability() in ("80", "90", "100")


def _capability() -> str:
    import cupy

    return str(cupy.cuda.Device().compute_capability)


def render(template: str, **values: Any) -> str:
    """The source of a kernel. Raises DeviceError where Jinja is not installed."""
    try:
        return str(_environment().get_template(f"{template}.cu.jinja").render(values))
    except ImportError:
        raise DeviceError(
            "device cuda: kernels are made from Jinja templates, and Jinja is not "
            "installed; pip install 'burnish[cuda13]'"
        ) from None


@functools.cache
def _environment() -> Any:
    import jinja2

    return jinja2.Environment(
        loader=jinja2.PackageLoader("burnish.templates", "kernels"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,
    )


def passed(*numbers: Any) -> tuple[Any, ...]:
    """Numbers as arguments of launches, each of which would convert others anew.

    Python's are 64 bits wide, and booleans one byte.
    """
    from cupy.cuda.function import CNumpyArray

    return tuple(CNumpyArray(np.asarray(number)) for number in numbers)


def by_value(array: np.ndarray[Any, Any]) -> Any:
    """A contiguous array as an argument of launches: one structure, by value."""
    return passed(structure(array))[0]


def structure(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A contiguous array as one structure."""
    return array.reshape(-1).view(_structure(array.nbytes))


@functools.cache
def _structure(size: int) -> np.dtype[Any]:
    return np.dtype((np.void, size))
