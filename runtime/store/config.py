"""Hyper-parameters that were saved with the weights."""

from __future__ import annotations

from typing import Any, TypeVar, overload

from burnish.config import Config
from burnish.errors import RecordError
from burnish.serialize import Inert, LazyTensor, read_pickle_data
from burnish.serialize.files import Source

_C = TypeVar("_C")


@overload
def config_from_file(
    source: Source,
    kind: type[_C],
    top_level_key: str | None = None,
    inert: bool = False,
) -> _C: ...


@overload
def config_from_file(
    source: Source,
    kind: None = None,
    top_level_key: str | None = None,
    inert: bool = False,
) -> dict[str, Any]: ...


def config_from_file(
    source: Source,
    kind: Any = None,
    top_level_key: str | None = None,
    inert: bool = False,
) -> Any:
    """The numbers, texts and containers in a PyTorch file, without its tensors.

    kind: a class to make of them: a Config, which checks them, or `kind(**values)`.
    top_level_key: where in the file they are. inert: also out of records of unknown
    classes, such as argparse.Namespace.

    Raises RecordError when there is no dict, or when its keys do not fit `kind`.
    """
    tree = read_pickle_data(source, top_level_key, inert)
    values = _plain(tree)
    at = f"below {top_level_key!r}" if top_level_key else "in the file"
    if not isinstance(values, dict):
        raise RecordError(f"config: expected a dict {at}, got {type(tree).__name__}")
    if kind is None:
        return values
    if isinstance(kind, type) and issubclass(kind, Config):
        return kind.from_dict(values)
    try:
        return kind(**values)
    except TypeError as error:
        raise RecordError(
            f"config: {kind.__name__} does not take what is {at} "
            f"({', '.join(map(str, values))}): {error}"
        ) from None


_NOTHING = object()


def _plain(value: Any, depth: int = 0) -> Any:
    """`value` without tensors; an inert record is the dict of its attributes."""
    if depth > 64:
        raise RecordError("config: expected containers 64 deep at most, got more")
    if isinstance(value, Inert):
        state = value.state if isinstance(value.state, dict) else value.items
        return _NOTHING if state is None else _plain(state, depth + 1)
    if isinstance(value, LazyTensor):
        return _NOTHING
    if isinstance(value, dict):
        items = {key: _plain(item, depth + 1) for key, item in value.items()}
        return {key: item for key, item in items.items() if item is not _NOTHING}
    if isinstance(value, list | tuple):
        inside = [_plain(item, depth + 1) for item in value]
        made = [item for item in inside if item is not _NOTHING]
        return made if isinstance(value, list) else tuple(made)
    return value
