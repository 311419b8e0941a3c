"""PyTorch's element types by the names that its files give them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from burnish.serialize.elements import elements


class Element(NamedTuple):
    """A torch dtype: its name, its bits, and the dtype its values are read in.

    None is read as: such bytes are packed in a way that only their own kernels know.
    """

    name: str
    bits: int
    read_as: str | None


def _element(name: str, bits: int, read_as: str | None = "") -> Element:
    return Element(name, bits, name if read_as == "" else read_as)


DTYPES = {
    element.name: element
    for element in (
        _element("bool", 8),
        *(_element(f"uint{bits}", bits) for bits in (8, 16, 32, 64)),
        *(_element(f"int{bits}", bits) for bits in (8, 16, 32, 64)),
        *(_element(f"float{bits}", bits) for bits in (16, 32, 64)),
        _element("bfloat16", 16),
        _element("float8_e4m3fn", 8),
        _element("float8_e5m2", 8),
        _element("float8_e4m3fnuz", 8),
        _element("float8_e5m2fnuz", 8),
        _element("float8_e8m0fnu", 8),
        _element("float4_e2m1fn_x2", 8, "uint8"),
        _element("complex32", 32, "complex64"),
        _element("complex64", 64),
        _element("complex128", 128),
        _element("qint8", 8, "int8"),
        _element("quint8", 8, "uint8"),
        _element("qint32", 32, "int32"),
        _element("quint4x2", 8, None),
        _element("quint2x4", 8, None),
    )
}
"""By torch's name of the dtype; numpy's and ml_dtypes' are the same words."""

_OLD = {"half": "float16", "float": "float32", "double": "float64"}
_OLD |= {"short": "int16", "int": "int32", "long": "int64"}
_OLD |= {"chalf": "complex32", "cfloat": "complex64", "cdouble": "complex128"}
ALIASES = {old: DTYPES[new] for old, new in _OLD.items()}

UNTYPED = Element("uint8", 8, "uint8")
STORAGES = {
    "Double": "float64",
    "Float": "float32",
    "Half": "float16",
    "BFloat16": "bfloat16",
    "Long": "int64",
    "Int": "int32",
    "Short": "int16",
    "Char": "int8",
    "Byte": "uint8",
    "Bool": "bool",
    "ComplexDouble": "complex128",
    "ComplexFloat": "complex64",
    "QInt8": "qint8",
    "QUInt8": "quint8",
    "QInt32": "qint32",
    "QUInt4x2": "quint4x2",
    "QUInt2x4": "quint2x4",
}
"""`torch.FloatStorage` and `torch.FloatTensor`: the word before, and the dtype."""


def decoded(raw: np.ndarray, kind: Element, where: str, swap: bool) -> np.ndarray:
    """Bytes as an array of one axis; a view where the layout allows."""
    if kind.name == "complex32":
        with np.errstate(all="ignore"):
            wide = elements(raw, "float16", where, swap).astype(np.float32)
        return wide.view("c8")
    return elements(raw, str(kind.read_as), where, swap)
