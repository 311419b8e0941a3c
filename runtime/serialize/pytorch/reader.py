"""PyTorch files of every kind: their content, with tensors not yet read.

torch.save writes a ZIP archive since 1.6, before that a run of pickles with the values
behind them, and before 0.1.10 a TAR archive.
"""

from __future__ import annotations

from typing import Any

from burnish._files.budget import Budget
from burnish.errors import RecordError
from burnish.serialize.pytorch import legacy, tar, zipped

_SHOWN = 8


def read(data: memoryview, budget: Budget, inert: bool = False) -> tuple[Any, str]:
    """The result of torch.load, tensors as LazyTensor, and the file's kind.

    inert: read objects of unknown classes as Inert records. Raises RecordError when the
    file is damaged, and, without `inert`, when it holds such objects.
    """
    where = budget.where
    if bytes(data[:2]) == b"PK":
        tree, unknown, kind = zipped.read(data, where, budget)
    elif is_tar(data):
        tree, unknown, kind = tar.read(data, where, budget)
    else:
        tree, unknown, kind = legacy.read(data, where, budget)
    if unknown and not inert:
        raise RecordError(_refusal(where, list(unknown)))
    return tree, kind


def is_tar(data: memoryview) -> bool:
    """Whether these are the bytes of a TAR archive."""
    return bytes(data[257:262]) == b"ustar"


def _refusal(where: str, names: list[str]) -> str:
    more = len(names) - _SHOWN
    shown = ", ".join(name[:80] for name in names[:_SHOWN])
    shown += f" and {more} more" if more > 0 else ""
    return (
        f"{where}: expected tensors, containers, numbers and text, got objects of "
        f"{shown}; nothing of them was run. Save the state_dict alone, or read them "
        f"as records that do nothing: open_weights(..., inert=True)"
    ).replace("\n", " ")
