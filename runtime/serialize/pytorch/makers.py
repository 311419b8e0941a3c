"""PyTorch's constructors that a pickle calls: tensors, sizes, devices.

Each function takes the machine and the arguments from the file.
"""

from __future__ import annotations

from typing import Any

from burnish._files.shown import shown
from burnish.serialize.inert import Inert
from burnish.serialize.lazy import LazyTensor
from burnish.serialize.pytorch.dtypes import ALIASES, DTYPES, Element
from burnish.serialize.pytorch.records import Constructor, Refused
from burnish.serialize.pytorch.special import MetaTensor, QuantizedTensor, SparseTensor
from burnish.serialize.pytorch.storage import StoredTensor, TypedStorage, sizes

_LONGEST = 64  # characters of a dtype's or device's name


def element(dtype: Any) -> Element:
    named = isinstance(dtype, str) and len(dtype) < _LONGEST
    name = dtype.removeprefix("torch.") if named else ""
    kind = DTYPES.get(name) or ALIASES.get(name)
    if kind is None:
        raise Refused("something that is no dtype of torch")
    return kind


def tensor(
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
    return marked(made, rest[2] if len(rest) > 2 else None)


def marked(made: StoredTensor, metadata: Any) -> StoredTensor:
    if isinstance(metadata, dict):
        made.conj = metadata.get("conj") is True
        made.neg = metadata.get("neg") is True
    return made


def tensor_of_bytes(
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
    typed = TypedStorage(storage.storage, element(dtype))
    return tensor(machine, typed, offset, shape, strides, False, {}, metadata)


def first_tensor(machine: Any, *args: Any) -> Any:
    """A parameter, or a subclass of Tensor: the tensor inside is what counts."""
    if not args or not isinstance(args[0], LazyTensor | TypedStorage):
        raise Refused("a parameter without a tensor")
    return args[0]


def from_type(machine: Any, maker: Any, kind: Any, args: Any, state: Any = None) -> Any:
    """_rebuild_from_type_v2: what `maker(*args)` makes, whatever class it gets."""
    if not isinstance(args, tuple):
        raise Refused("arguments that are no tuple")
    if isinstance(maker, Constructor):
        if maker.make is from_type:
            raise Refused("a tensor of a type within a tensor of a type")
        return machine.made(maker, args)
    machine.unknown[getattr(maker, "name", "?")] = None
    return Inert(getattr(maker, "name", "?"), args)


def quantized(
    machine: Any, storage: Any, offset: Any, shape: Any, strides: Any, how: Any, *_: Any
) -> QuantizedTensor:
    values = tensor(machine, storage, offset, shape, strides)
    scheme, scale, zero_point, *axis = how
    if scheme == "torch.per_tensor_affine":
        if not isinstance(scale, int | float) or not isinstance(zero_point, int):
            raise Refused("a scale or zero point that is not a number")
        return QuantizedTensor(values, scale, zero_point, None)
    if not isinstance(scheme, str) or not scheme.startswith("torch.per_channel_affine"):
        raise Refused(f"a quantization scheme {shown(scheme, 40)}")
    if type(axis[0]) is not int or not 0 <= axis[0] < values.ndim:
        raise Refused(f"an axis {shown(axis[0], 20)} of {values.ndim}")
    for part in (scale, zero_point):
        if _count(machine, part) != (values.shape[axis[0]],):
            raise Refused("not one scale and zero point for each slice")
    return QuantizedTensor(values, scale, zero_point, axis[0])


def _count(machine: Any, part: Any) -> tuple[int, ...]:
    """The shape of a tensor, or of a list of numbers."""
    if isinstance(part, LazyTensor):
        return part.shape
    if not isinstance(part, list | tuple):
        raise Refused("scales or zero points that are no list")
    machine.budget.step(len(part))
    if not all(type(number) in (int, float) for number in part):
        raise Refused("a scale or zero point that is not a number")
    return (len(part),)


def sparse(machine: Any, layout: Any, data: Any) -> SparseTensor:
    name = layout.removeprefix("torch.sparse_") if isinstance(layout, str) else ""
    count = 1 if name == "coo" else 2
    if name not in ("coo", "csr", "csc", "bsr", "bsc"):
        raise Refused(f"a sparse layout {shown(layout, 40)}")
    *index, values = data[: count + 1]
    if not all(isinstance(part, LazyTensor) for part in (*index, values)):
        raise Refused("a sparse tensor without indices and values")
    shape = sizes(data[count + 1], "a shape")
    return SparseTensor(name, tuple(index), values, shape, machine.budget)


def meta(
    machine: Any, dtype: Any, shape: Any, strides: Any, requires_grad: Any
) -> MetaTensor:
    kind = element(dtype)
    return MetaTensor(kind.name, kind.bits, sizes(shape, "a shape"))


def from_array(machine: Any, data: Any, *_: Any) -> LazyTensor:
    if not isinstance(data, LazyTensor):
        raise Refused("a tensor without an array")
    return data


def size(machine: Any, items: Any = ()) -> tuple[int, ...]:
    return sizes(items, "a torch.Size")


def device(machine: Any, kind: Any, index: Any = None) -> str:
    named = isinstance(kind, str) and len(kind) < _LONGEST
    if not named or not isinstance(index, int | None):
        raise Refused("something that is no device")
    return kind if index is None else f"{kind}:{index}"


def layout(machine: Any, name: Any) -> str:
    if not isinstance(name, str):
        raise Refused("a layout that is not text")
    return name


def torchscript(machine: Any, value: Any, *_: Any) -> Any:
    """torch.jit._pickle: lists that say their type."""
    return value
