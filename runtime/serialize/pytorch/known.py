"""The names that a pickle may use, and what each of them makes.

Every constructor is a function of ours; the libraries that the names belong to are not
imported. A dtype or a device is a string ("torch.float32", "cuda:0"), torch.Size a
tuple, an OrderedDict a dict.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from burnish.serialize.pytorch import makers, plain
from burnish.serialize.pytorch.dtypes import (
    ALIASES,
    DTYPES,
    STORAGES,
    UNTYPED,
    Element,
)
from burnish.serialize.pytorch.records import Constructor, Refused


class StorageType(Constructor):
    """`torch.FloatStorage` and the like; only persistent ids use them."""

    __slots__ = ("kind",)

    def __init__(self, name: str, kind: Element):
        super().__init__(name, _not_called)
        self.kind = kind


def _not_called(machine: Any, *args: Any) -> Any:
    raise Refused("called, which no PyTorch file does")


def find(name: str) -> Any:
    """The constructor or value of the qualified `name`, or None."""
    if (made := _KNOWN.get(name)) is not None:
        return made
    module, _, last = name.rpartition(".")
    if module.partition(".")[0] != "torch":
        return None
    for end in ("Storage", "Tensor"):
        if last.endswith(end) and (kind := STORAGES.get(last.removesuffix(end))):
            return StorageType(name, DTYPES[kind])
    if last in ("UntypedStorage", "_UntypedStorage"):
        return StorageType(name, UNTYPED)
    if module == "torch" and (last in DTYPES or last in ALIASES):
        return f"torch.{makers.element(last).name}"
    return None


_UTILS: dict[str, Callable[..., Any]] = {
    "_rebuild_tensor": makers.tensor,
    "_rebuild_tensor_v2": makers.tensor,
    "_rebuild_tensor_v3": makers.tensor_of_bytes,
    "_rebuild_parameter": makers.first_tensor,
    "_rebuild_parameter_with_state": makers.first_tensor,
    "_rebuild_qtensor": makers.quantized,
    "_rebuild_sparse_tensor": makers.sparse,
    "_rebuild_sparse_csr_tensor": makers.sparse,
    "_rebuild_meta_tensor_no_storage": makers.meta,
    "_rebuild_device_tensor_from_numpy": makers.from_array,
    "_rebuild_device_tensor_from_cpu_tensor": makers.from_array,
    "_rebuild_xla_tensor": makers.from_array,
}
_PLAIN: dict[str, Callable[..., Any]] = {
    "dict": plain.dict_,
    "set": plain.set_,
    "frozenset": plain.frozen,
    "list": plain.list_,
    "tuple": plain.tuple_,
    "complex": plain.complex_,
    "bytearray": plain.bytearray_,
    "bytes": plain.bytes_,
    "slice": plain.slice_,
    "range": plain.range_,
    "xrange": plain.range_,
    "int": _not_called,  # the types themselves, as a defaultdict names them
    "float": _not_called,
    "bool": _not_called,
    "str": _not_called,
    "object": _not_called,
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    f"torch._utils.{name}": make for name, make in _UTILS.items()
} | {
    "torch._tensor._rebuild_from_type_v2": makers.from_type,
    "torch._tensor._rebuild_from_type": makers.from_type,
    "torch.serialization._get_layout": makers.layout,
    "torch.Size": makers.size,
    "torch.device": makers.device,
    "torch.Tensor": makers.first_tensor,
    "torch.nn.parameter.Parameter": makers.first_tensor,
    "torch.nn.parameter.Buffer": makers.first_tensor,
    "torch.nn.Parameter": makers.first_tensor,
    "torch.storage.TypedStorage": makers.first_tensor,
    "collections.OrderedDict": plain.dict_,
    "collections.Counter": plain.dict_,
    "collections.defaultdict": plain.default_dict,
    "_codecs.encode": plain.encode,
    "numpy.dtype": plain.numpy_type,
    "numpy.ndarray": plain.array,
}
_FUNCTIONS |= {
    f"torch.jit._pickle.{name}": makers.torchscript
    for name in (
        "build_intlist",
        "build_tensorlist",
        "build_doublelist",
        "build_boollist",
        "restore_type_tag",
    )
}
for _module in ("numpy.core", "numpy._core"):
    _FUNCTIONS |= {
        f"{_module}.multiarray._reconstruct": plain.array,
        f"{_module}.multiarray.scalar": plain.scalar,
        f"{_module}.numeric._frombuffer": plain.array_of_bytes,
    }
for _module in ("builtins", "__builtin__"):
    _FUNCTIONS |= {f"{_module}.{name}": make for name, make in _PLAIN.items()}

_KNOWN: dict[str, Any] = {
    name: Constructor(name, make) for name, make in _FUNCTIONS.items()
}
_KNOWN |= {
    f"torch.{name}": f"torch.{name}"
    for name in (
        "per_tensor_affine",
        "per_channel_affine",
        "per_channel_affine_float_qparams",
        "strided",
        "sparse_coo",
        "sparse_csr",
        "contiguous_format",
        "channels_last",
        "preserve_format",
    )
}
