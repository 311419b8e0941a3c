"""The names that a pickle may use, and what each of them makes.

Every constructor is a function of ours; the libraries that the names belong to are not
imported. A dtype or a device is a string ("torch.float32", "cuda:0"), torch.Size a
tuple, an OrderedDict a dict.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from burnish.serialize.inert import Inert
from burnish.serialize.lazy import LazyTensor
from burnish.serialize.pytorch.dtypes import (
    ALIASES,
    DTYPES,
    STORAGES,
    UNTYPED,
    Element,
)
from burnish.serialize.pytorch.records import Constructor, Refused
from burnish.serialize.pytorch.special import (
    MetaTensor,
    PickledArray,
    PickledType,
    QuantizedTensor,
    SparseTensor,
)
from burnish.serialize.pytorch.storage import StoredTensor, TypedStorage, sizes


class StorageType(Constructor):
    """`torch.FloatStorage` and the like; only persistent ids use them."""

    __slots__ = ("kind",)

    def __init__(self, name: str, kind: Element):
        super().__init__(name, _not_called)
        self.kind = kind


def _not_called(machine: Any, *args: Any) -> Any:
    raise Refused("called, which no PyTorch file does")


def find(name: str) -> Any:
    """The constructor or value that `name` stands for, or None."""
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
        return f"torch.{_element(last).name}"
    return None


def _element(dtype: Any) -> Element:
    name = dtype.removeprefix("torch.") if isinstance(dtype, str) else ""
    kind = DTYPES.get(name) or ALIASES.get(name)
    if kind is None:
        raise Refused("something that is no dtype of torch")
    return kind


# --- tensors ---


def _tensor(
    machine: Any, storage: Any, offset: Any, shape: Any, strides: Any, *rest: Any
) -> StoredTensor:
    """_rebuild_tensor(_v2): then requires_grad, hooks, metadata."""
    if not isinstance(storage, TypedStorage):
        raise Refused("a tensor without a storage")
    made = StoredTensor(
        storage.storage,
        storage.kind,
        offset,
        sizes(shape, "a shape"),
        sizes(strides, "strides"),
    )
    return _marked(made, rest[2] if len(rest) > 2 else None)


def _marked(made: StoredTensor, metadata: Any) -> StoredTensor:
    if isinstance(metadata, dict):
        made.conj = metadata.get("conj") is True
        made.neg = metadata.get("neg") is True
    return made


def _tensor_of_bytes(
    machine: Any,
    storage: Any,
    offset: Any,
    shape: Any,
    strides: Any,
    requires_grad: Any,
    hooks: Any,
    dtype: Any,
    metadata: Any = None,
) -> StoredTensor:
    """_rebuild_tensor_v3: the storage has no type, the tensor has."""
    if not isinstance(storage, TypedStorage):
        raise Refused("a tensor without a storage")
    typed = TypedStorage(storage.storage, _element(dtype))
    return _tensor(machine, typed, offset, shape, strides, False, {}, metadata)


def _first_tensor(machine: Any, *args: Any) -> Any:
    """A parameter, or a subclass of Tensor: the tensor inside is what counts."""
    if not args or not isinstance(args[0], LazyTensor | TypedStorage):
        raise Refused("a parameter without a tensor")
    return args[0]


def _from_type(
    machine: Any, maker: Any, kind: Any, args: Any, state: Any = None
) -> Any:
    """_rebuild_from_type_v2: what `maker(*args)` makes, whatever class it gets."""
    if not isinstance(args, tuple):
        raise Refused("arguments that are no tuple")
    if isinstance(maker, Constructor):
        return machine.made(maker, args)
    machine.unknown[getattr(maker, "name", "?")] = None
    return Inert(getattr(maker, "name", "?"), args)


def _quantized(
    machine: Any, storage: Any, offset: Any, shape: Any, strides: Any, how: Any, *_: Any
) -> QuantizedTensor:
    values = _tensor(machine, storage, offset, shape, strides)
    scheme, scale, zero_point, *axis = how
    if scheme == "torch.per_tensor_affine":
        if not isinstance(scale, int | float) or not isinstance(zero_point, int):
            raise Refused("a scale or zero point that is no number")
        return QuantizedTensor(values, scale, zero_point, None)
    if not str(scheme).startswith("torch.per_channel_affine"):
        raise Refused(f"a quantization scheme {str(scheme)[:40]}")
    if type(axis[0]) is not int or not 0 <= axis[0] < values.ndim:
        raise Refused(f"an axis {str(axis[0])[:20]} of {values.ndim}")
    for part in (scale, zero_point):
        count = part.shape if isinstance(part, LazyTensor) else (len(part),)
        if count != (values.shape[axis[0]],):
            raise Refused("not one scale and zero point for each slice")
    return QuantizedTensor(values, scale, zero_point, axis[0])


def _sparse(machine: Any, layout: Any, data: Any) -> SparseTensor:
    name = str(layout).removeprefix("torch.sparse_")
    count = 1 if name == "coo" else 2
    if name not in ("coo", "csr", "csc", "bsr", "bsc"):
        raise Refused(f"a sparse layout {str(layout)[:40]}")
    *index, values = data[: count + 1]
    if not all(isinstance(part, LazyTensor) for part in (*index, values)):
        raise Refused("a sparse tensor without indices and values")
    shape = sizes(data[count + 1], "a shape")
    return SparseTensor(name, tuple(index), values, shape, machine.budget.limit)


def _meta(
    machine: Any, dtype: Any, shape: Any, strides: Any, requires_grad: Any
) -> MetaTensor:
    kind = _element(dtype)
    return MetaTensor(kind.name, kind.bits, sizes(shape, "a shape"))


def _from_array(machine: Any, data: Any, *_: Any) -> LazyTensor:
    if not isinstance(data, LazyTensor):
        raise Refused("a tensor without an array")
    return data


def _size(machine: Any, items: Any = ()) -> tuple[int, ...]:
    return sizes(items, "a torch.Size")


def _device(machine: Any, kind: Any, index: Any = None) -> str:
    if not isinstance(kind, str) or not isinstance(index, int | None):
        raise Refused("something that is no device")
    return kind if index is None else f"{kind}:{index}"


# --- numpy ---


def _array(machine: Any, *_: Any) -> PickledArray:
    return PickledArray()


def _array_of_bytes(
    machine: Any, data: Any, kind: Any, shape: Any, order: Any = "C", axes: Any = None
) -> PickledArray:
    made = PickledArray()
    shape = sizes((shape,) if isinstance(shape, int) else shape, "a shape")
    made.fill(shape, kind, data, order == "F")
    return made


def _numpy_type(machine: Any, kind: Any, *_: Any) -> PickledType:
    return PickledType(kind)


def _scalar(machine: Any, kind: Any, data: Any = b"") -> Any:
    made = PickledArray()
    made.fill((), kind, data)
    return made.read()[()]


def _encode(machine: Any, text: Any, encoding: Any = "utf-8") -> bytes:
    """_codecs.encode: how protocol 2 writes bytes."""
    if not isinstance(text, str) or encoding not in ("latin1", "latin-1", "utf-8"):
        raise Refused("something else than text in Latin-1")
    machine.budget.take(len(text))
    return text.encode(encoding)


# --- plain Python ---


def _items(machine: Any, value: Any) -> Any:
    if not isinstance(value, list | tuple | set | frozenset | dict | bytes | bytearray):
        raise Refused("items that are no list")
    machine.budget.take(64 + 100 * len(value))
    return value


def _dict(machine: Any, items: Any = ()) -> dict[Any, Any]:
    items = _items(machine, items)
    if isinstance(items, dict):
        return dict(items)
    return {machine.key(key): value for key, value in items}


def _default_dict(machine: Any, factory: Any = None, items: Any = ()) -> dict[Any, Any]:
    return _dict(machine, items)


def _set(machine: Any, items: Any = ()) -> set[Any]:
    return {machine.key(item) for item in _items(machine, items)}


def _frozen(machine: Any, items: Any = ()) -> frozenset[Any]:
    return frozenset(_set(machine, items))


def _list(machine: Any, items: Any = ()) -> list[Any]:
    return list(_items(machine, items))


def _tuple(machine: Any, items: Any = ()) -> tuple[Any, ...]:
    return tuple(_items(machine, items))


def _complex(machine: Any, real: Any = 0, imag: Any = 0) -> complex:
    if not isinstance(real, int | float) or not isinstance(imag, int | float):
        raise Refused("parts that are no numbers")
    return complex(real, imag)


def _bytearray(machine: Any, data: Any = b"", encoding: Any = "latin-1") -> bytearray:
    if isinstance(data, str):
        data = _encode(machine, data, encoding)
    if not isinstance(data, bytes | bytearray):
        raise Refused("something else than bytes")
    machine.budget.take(len(data))
    return bytearray(data)


def _bytes(machine: Any, data: Any = b"") -> bytes:
    return bytes(_bytearray(machine, data))


def _slice(machine: Any, *ends: Any) -> slice:
    return slice(*ends)


def _range(machine: Any, *ends: Any) -> range:
    return range(*ends)


def _layout(machine: Any, name: Any) -> str:
    if not isinstance(name, str):
        raise Refused("a layout that is not text")
    return name


def _torchscript(machine: Any, value: Any, *_: Any) -> Any:
    """torch.jit._pickle: lists that say their type."""
    return value


_UTILS: dict[str, Callable[..., Any]] = {
    "_rebuild_tensor": _tensor,
    "_rebuild_tensor_v2": _tensor,
    "_rebuild_tensor_v3": _tensor_of_bytes,
    "_rebuild_parameter": _first_tensor,
    "_rebuild_parameter_with_state": _first_tensor,
    "_rebuild_qtensor": _quantized,
    "_rebuild_sparse_tensor": _sparse,
    "_rebuild_sparse_csr_tensor": _sparse,
    "_rebuild_meta_tensor_no_storage": _meta,
    "_rebuild_device_tensor_from_numpy": _from_array,
    "_rebuild_device_tensor_from_cpu_tensor": _from_array,
    "_rebuild_xla_tensor": _from_array,
}
_PLAIN: dict[str, Callable[..., Any]] = {
    "dict": _dict,
    "set": _set,
    "frozenset": _frozen,
    "list": _list,
    "tuple": _tuple,
    "complex": _complex,
    "bytearray": _bytearray,
    "bytes": _bytes,
    "slice": _slice,
    "range": _range,
    "xrange": _range,
    "int": _not_called,  # the types themselves, as a defaultdict names them
    "float": _not_called,
    "bool": _not_called,
    "str": _not_called,
    "object": _not_called,
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    f"torch._utils.{name}": make for name, make in _UTILS.items()
} | {
    "torch._tensor._rebuild_from_type_v2": _from_type,
    "torch._tensor._rebuild_from_type": _from_type,
    "torch.serialization._get_layout": _layout,
    "torch.Size": _size,
    "torch.device": _device,
    "torch.Tensor": _first_tensor,
    "torch.nn.parameter.Parameter": _first_tensor,
    "torch.nn.parameter.Buffer": _first_tensor,
    "torch.nn.Parameter": _first_tensor,
    "torch.storage.TypedStorage": _first_tensor,
    "collections.OrderedDict": _dict,
    "collections.Counter": _dict,
    "collections.defaultdict": _default_dict,
    "_codecs.encode": _encode,
    "numpy.dtype": _numpy_type,
    "numpy.ndarray": _array,
}
_FUNCTIONS |= {
    f"torch.jit._pickle.{name}": _torchscript
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
        f"{_module}.multiarray._reconstruct": _array,
        f"{_module}.multiarray.scalar": _scalar,
        f"{_module}.numeric._frombuffer": _array_of_bytes,
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
