"""Weights: the tensors of a file by name, whatever kind of file it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from burnish._files.budget import Budget
from burnish._files.shown import close, shown
from burnish.errors import RecordError
from burnish.serialize.inert import Inert
from burnish.serialize.lazy import LazyTensor

_DEEPEST = 64
_LONGEST = 200  # characters of a key that is no text
_STEP, _TENSOR = 16, 150  # what a step, and a tensor's place, count as
_WALK = 3  # steps that walking into a container takes, beside its items


class Weights(Mapping[str, LazyTensor]):
    """A read-only mapping of names to tensors whose values are read when asked for.

    Names are paths through the file's containers, joined with dots: {"model": {"fc":
    [t]}} has "model.fc.0". Beside it: `tree`, the whole object, numbers and text too;
    `metadata`, safetensors' own; `kind`, what kind of file; `where`, the file; `files`,
    that and its shards.
    """

    def __init__(
        self,
        tensors: Mapping[str, LazyTensor],
        where: str,
        kind: str,
        tree: Any = None,
        metadata: Mapping[str, str] | None = None,
        shards: Sequence[str] = (),
    ):
        self._tensors = dict(tensors)
        self.where = where
        self.kind = kind
        self.tree = self._tensors if tree is None else tree
        self.metadata = dict(metadata or {})
        self.files = (where, *shards)

    def __getitem__(self, name: str) -> LazyTensor:
        try:
            return self._tensors[name]
        except KeyError:
            raise KeyError(self._unknown(name)) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)

    def __contains__(self, name: object) -> bool:
        return name in self._tensors

    @property
    def nbytes(self) -> int:
        """The bytes of all tensors; what shares memory counts each time."""
        return sum(tensor.nbytes for tensor in self.values())

    def under(self, key: str) -> Weights:
        """The tensors below a top-level key, named without it ("model.state_dict").

        Raises RecordError when there are none.
        """
        begin = f"{key}."
        found = {
            name.removeprefix(begin): tensor
            for name, tensor in self.items()
            if name.startswith(begin)
        }
        if not found:
            tops = dict.fromkeys(name.partition(".")[0] for name in self)
            raise RecordError(
                f"{self.where}: expected tensors below {key!r}, "
                f"found them below {', '.join(map(shown, list(tops)[:8])) or 'nothing'}"
            )
        tree, shards = _at(self.tree, key), self.files[1:]
        return Weights(found, self.where, self.kind, tree, self.metadata, shards)

    def _unknown(self, name: str) -> str:
        meant = f"; is {found!r} meant?" if (found := close(name, self)) else ""
        return f"{self.where}: no tensor {shown(name)}{meant}"

    def __repr__(self) -> str:
        return f"Weights({self.where!r}, {self.kind}, {len(self)} tensors)"


def flatten(tree: Any, budget: Budget) -> dict[str, LazyTensor]:
    """Every tensor in nested containers by its path. A tensor alone is "tensor".

    Of an inert module (`_parameters`, `_buffers`, `_modules`) the names are those of
    its state_dict. Raises RecordError when two have one name or nesting has no end.
    """
    if isinstance(tree, LazyTensor):
        return {"tensor": tree}
    step, take = budget.step, budget.take
    found: dict[str, LazyTensor] = {}
    above = {id(tree)}  # the containers that are being walked
    walks = [("", tree, _pairs(tree))]
    while walks:
        prefix, container, pairs = walks[-1]
        key, value = next(pairs, ("", _END))
        if value is _END:
            walks.pop()
            above.remove(id(container))
            continue
        if not isinstance(value, dict | list | tuple | Inert | LazyTensor):
            continue
        name = key if isinstance(key, str) else shown(key, _LONGEST)
        path = f"{prefix}.{name}" if prefix and name else prefix or name
        take(_STEP + len(path))
        if isinstance(value, LazyTensor):
            take(_TENSOR)
            if found.setdefault(path, value) is not value:
                raise RecordError(
                    f"{budget.where}: two tensors are called {path[:80]!r}"
                )
        elif id(value) not in above:  # else a cycle
            if len(walks) > _DEEPEST:
                raise RecordError(
                    f"{budget.where}: expected containers within containers "
                    f"{_DEEPEST} deep at most, got more"
                )
            step(_WALK + (0 if isinstance(value, Inert) else len(value)))
            above.add(id(value))
            walks.append((path, value, _pairs(value)))
    return found


_END = object()


def _pairs(value: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(value, dict):
        yield from value.items()
    elif isinstance(value, list | tuple):
        yield from enumerate(value)
    elif isinstance(value, Inert):
        yield from _attributes(value)


def _attributes(record: Inert) -> Iterator[tuple[str, Any]]:
    """An inert object's items; a container named "" passes its names upwards."""
    state = record.state
    if isinstance(state, dict) and {"_parameters", "_modules"} <= state.keys():
        for part in ("_parameters", "_buffers", "_modules"):
            yield "", state.get(part)
        return
    yield from (("", state), ("", record.items), ("args", record.args))


def _at(tree: Any, key: str) -> Any:
    """The item of the tree at a dotted path; keys may contain dots themselves."""
    if not key:
        return tree
    for place, item in _pairs(tree):
        name = place if isinstance(place, str) else shown(place, _LONGEST)
        if name == key or not name:
            return _at(item, "" if name else key)
        if key.startswith(f"{name}.") and (found := _at(item, key[len(name) + 1 :])):
            return found
    return None
