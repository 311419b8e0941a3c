"""Find the model's tensors in a checkpoint that also holds other state."""

from __future__ import annotations

from dataclasses import dataclass, field

from burnish.codegen.errors import UnsupportedError
from burnish.codegen.names.identifier import plain
from burnish.serialize import LazyTensor, Weights

_HOLDERS = (
    "state_dict",
    "model_state_dict",
    "model",
    "module",
    "net",
    "network",
    "params",
    "weights",
    "model_ema",
    "ema",
)
"""Where training scripts keep the model, beside an optimizer and numbers."""

_WRAPPERS = ("module.", "_orig_mod.")
"""The prefixes that DataParallel and torch.compile give every name."""

_SHOWN = 5


@dataclass(frozen=True)
class Checkpoint:
    """A model's tensors by name, in the file's order.

    tied: names whose tensor is another's, which comes first. sorted_: the file has its
    names in the alphabet's order, not in that of the modules.
    """

    tensors: dict[str, LazyTensor]
    tied: dict[str, str]
    sorted_: bool
    notes: list[str] = field(default_factory=list)


def checkpoint(weights: Weights) -> Checkpoint:
    """The model in a file. Raises UnsupportedError where there is none to write."""
    notes: list[str] = []
    inner = _model(weights, notes)
    tensors = dict(inner)
    for wrapper in _WRAPPERS:
        if tensors and all(name.startswith(wrapper) for name in tensors):
            tensors = {n.removeprefix(wrapper): t for n, t in tensors.items()}
            notes.append(f"{wrapper!r} before every name is left out")
    if not tensors:
        raise UnsupportedError(
            f"{weights.where}: expected tensors, the file holds none"
        )
    _refuse_quantized(weights.where, tensors)
    return Checkpoint(tensors, _tied(tensors), _is_sorted(tensors), notes)


def _is_sorted(tensors: dict[str, LazyTensor]) -> bool:
    """Whether the names of each dtype are sorted: safetensors sorts by dtype first."""
    names: dict[str, list[str]] = {}
    for name, tensor in tensors.items():
        names.setdefault(tensor.dtype, []).append(name)
    return all(of_dtype == sorted(of_dtype) for of_dtype in names.values())


def _model(weights: Weights, notes: list[str]) -> Weights:
    """The subtree of a checkpoint that holds the model."""
    found = weights
    while holder := _holder(found):
        found = found.under(holder)
        notes.append(f"the model is what {plain(holder)!r} holds")
    return found


def _holder(weights: Weights) -> str | None:
    tree = weights.tree
    if not isinstance(tree, dict):
        return None
    tops = {
        str(key): sum(name.startswith(f"{key}.") for name in weights)
        for key, value in tree.items()
        if isinstance(value, dict)
    }
    full = [key for key, count in tops.items() if count]
    if not full or any(isinstance(value, LazyTensor) for value in tree.values()):
        return None
    known = [key for key in _HOLDERS if key in full]
    if known:
        return known[0]
    return full[0] if len(full) == 1 else None


def _refuse_quantized(where: str, tensors: dict[str, LazyTensor]) -> None:
    found = [
        name
        for name, tensor in tensors.items()
        if tensor.is_quantized or name.endswith("_packed_params")
    ]
    if found:
        names = ", ".join(map(repr, map(plain, found[:_SHOWN])))
        raise UnsupportedError(
            f"{where}: expected plain numbers, got quantized tensors: {names}"
            f"{', ...' if len(found) > _SHOWN else ''}; save the model before it is "
            f"quantized"
        )


def _tied(tensors: dict[str, LazyTensor]) -> dict[str, str]:
    """Names of tensors that are the very values of one before them."""
    first: dict[int, list[str]] = {}
    tied: dict[str, str] = {}
    for name, tensor in tensors.items():
        for other in first.setdefault(id(tensor.memory), []):
            if _same(tensor, tensors[other]):
                tied[name] = other
                break
        else:
            first[id(tensor.memory)].append(name)
    return tied


def _same(one: LazyTensor, other: LazyTensor) -> bool:
    """Whether both are one view of one storage: LSTM's flat weights are several."""
    if (one.shape, one.dtype) != (other.shape, other.dtype) or not one.size:
        return False
    a, b = one.read(), other.read()
    places = [(array.__array_interface__["data"], array.strides) for array in (a, b)]
    return places[0] == places[1]
