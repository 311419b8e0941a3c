"""Plan a generated module's calls ahead of time: a plan file and the kernels beside it.

    from burnish.codegen.compiled import calls, compiled
    compiled("my_app/models/resnet18.py", calls("resnet18.onnx"))

`burnish generate --compiled` does so with what it has written.
"""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from burnish import Tensor
from burnish._engine.pytree import leaves
from burnish._files.atomic import atomic_write
from burnish.codegen import feeds
from burnish.codegen.errors import OwnershipError, UsageError, spelled
from burnish.codegen.loaded import imported, model_of
from burnish.codegen.output.ownership import MODULE, weights_reason
from burnish.codegen.readers import read
from burnish.codegen.verify import compare
from burnish.kernels import library
from burnish.plan import store
from burnish.planned.model import LIBRARY, PLAN

Call = tuple[np.ndarray, ...]
"""The arguments of a call, in their order."""


@dataclass(frozen=True)
class Planned:
    """The outcome of planning one module.

    files: the plan file and the library, none where the calls cannot be planned.
    plans: the arguments of each, in words. reasons: why there are none. notes: what
    runs eagerly between the kernels.
    """

    files: tuple[Path, ...]
    plans: tuple[str, ...]
    reasons: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def calls(
    model: str | Path,
    *,
    dims: Mapping[str, Sequence[int]] | None = None,
    inputs: Mapping[str, Path] | None = None,
) -> list[Call]:
    """Arguments of the calls to plan, one for each combination of sizes.

    model: a file with a graph. dims: sizes of open dimensions by name; one that counts
    a batch is 1 by default. inputs: .npy files by input name. Raises
    UsageError where a size is missing.
    """
    graph = read(Path(model)).model
    sizes = {name: (1,) for name, batch in feeds.dimensions(graph).items() if batch}
    chosen: dict[str, Sequence[int]] = {**sizes, **(dims or {})}
    given = dict(inputs or {})
    known = {
        name
        for value in graph.graph.inputs
        if value.name in given
        for name in feeds.names_of(value)
    }
    missing = feeds.dimensions(graph).keys() - chosen.keys() - known
    if missing:
        raise UsageError(
            f"{spelled('compiled', '--compiled')}: expected a size for each open "
            f"dimension of {model}, got none for {', '.join(sorted(missing))}; say "
            f"{spelled('dims={name: [size]}', '--dim NAME=SIZE')}"
        )
    made = []
    for combined in itertools.product(*chosen.values()):
        fed = feeds.make(
            graph,
            size=1,
            given=given,
            dims=dict(zip(chosen, combined, strict=True)),
            seed=0,
        )
        made.append(tuple(fed.values()))
    return made


def check_owned(source: Path, existing: str = "keep") -> list[Path]:
    """The files of others that would be replaced, where `existing` is "force".

    Raises OwnershipError for them elsewhere.
    """
    plan, kernels = _files(source)
    reason = weights_reason(plan, source.stem)
    taken = {plan: reason} if reason else {}
    if kernels.exists() and (reason or not plan.exists()):
        taken[kernels] = "was not written by Burnish"
    if taken and existing != "force":
        raise OwnershipError(taken, mergeable=False, diff=False)
    return list(taken)


def compiled(source: str | Path, planned: Sequence[Call]) -> Planned:
    """Plan calls of a generated module, and write the plans and the kernels beside it.

    source: the module, with its weights file beside it. The plans' numbers are compared
    with the module's own before they are kept.
    """
    source = Path(source)
    plan, kernels = _files(source)
    weights = source.with_suffix(".safetensors")
    kinds = tuple(", ".join(map(_kind, call)) for call in planned)
    if not weights.is_file():
        reason = "there is no weights file that Model.from_file() would read"
        return Planned((), kinds, (reason,))
    with imported(source) as module:
        plain = model_of(module, source, weights)
        given = [[Tensor(array) for array in call] for call in planned]
        try:
            unplanned = store.write(plan, plain, given, weights, {MODULE: source.stem})
        except store.Unstorable as error:
            return Planned((), kinds, tuple(error.reasons))
        try:
            _put_library(kernels)
            reasons = _differences(module.Model, plain, given)
        except BaseException:
            plan.unlink(missing_ok=True)
            raise
    if reasons:
        plan.unlink()
        kernels.unlink()
        return Planned((), kinds, reasons)
    notes = [f"{label}: runs eagerly: {why}" for label, why in unplanned]
    return Planned((plan, kernels), kinds, (), tuple(dict.fromkeys(notes)))


def _files(source: Path) -> tuple[Path, Path]:
    return source.with_suffix(PLAN), source.with_suffix(LIBRARY)


def _put_library(target: Path) -> None:
    known = library()
    assert known is not None
    with known.file.open("rb") as held, atomic_write(target) as file:
        shutil.copyfileobj(held, file)


def _differences(kind: Any, plain: Any, calls: Sequence[Sequence[Tensor]]) -> Any:
    """Why the plans of the files do not give the module's own numbers; () if they do.

    Calls that draw have no plan: what a plan gives, it gives again.
    """
    model = kind.from_file()
    found = []
    for args in calls:
        for ours, theirs in zip(
            leaves(model(*args)), leaves(plain(*args)), strict=True
        ):
            if not isinstance(theirs, Tensor):
                continue
            compared = compare("", ours.numpy(), theirs.numpy())
            if not compared.agrees:
                found.append(f"its numbers differ from the source's: {compared.reason}")
    if model._ahead is None or model._ahead.refusals:
        found.append("the plans that were written do not run")
    return tuple(dict.fromkeys(found))


def _kind(array: np.ndarray) -> str:
    kind = f"{array.dtype}[{', '.join(map(str, array.shape))}]"
    return kind if array.shape or array.dtype.kind == "f" else f"{kind} = {array}"
