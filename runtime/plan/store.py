"""Writing plans to a file: see `burnish.planned.file` for its format."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from burnish.capture.late import Late
from burnish.capture.line import Line, refs
from burnish.capture.ref import Ref
from burnish.capture.signature import argument_names
from burnish.kernels import library
from burnish.kernels.records import WORDS
from burnish.nn.core.module import Module
from burnish.nn.core.param import Stored
from burnish.operator import Operator
from burnish.plan.branches import Branches
from burnish.plan.compiled import Compiled, Unplanned
from burnish.plan.lowering import Segment
from burnish.plan.plan import Plan
from burnish.planned import words
from burnish.planned.file import ALIGNED, KEY, VERSION
from burnish.planned.ready import callables
from burnish.planned.space import ARENA, Fetch
from burnish.serialize import SEAL, open_weights, write_stream
from burnish.serialize.header import layout
from burnish.tensor import Tensor


class Unstorable(Exception):
    """A model whose plan cannot be in a file; `reasons` says why."""

    def __init__(self, reasons: list[str]):
        self.reasons = reasons
        super().__init__("; ".join(reasons))


def write(
    path: Path,
    model: Module,
    calls: Sequence[Sequence[Tensor]],
    weights: Path,
    metadata: Mapping[str, str] | None = None,
) -> list[tuple[str, str]]:
    """Plan a model for calls like these, and write the plans.

    Returns what runs eagerly between records, and why. They are for `library()`.

    model: of a class in a file, loaded from `weights`. Raises Unstorable where a call
    cannot be planned, or what runs between its records cannot be written down, and
    where there is no library of kernels here.
    """
    kernels = library()
    if kernels is None:
        raise Unstorable(["there are no kernels; burnish kernels info says why"])
    source = Path(inspect.getfile(type(model)))
    with weights.open("rb") as file:
        head = file.read(8)
        head += file.read(int.from_bytes(head, "little"))
    constants = _Constants()
    tensors: dict[str, Any] = {
        "source": _bytes(source.read_bytes()),
        "weights": _bytes(head),
    }
    plans, eager = [], []
    for number, args in enumerate(calls):
        plan = _planned(model, args)
        try:
            described, slots = _Written(plan, model, constants).described()
            kinds = _kinds(plan, args)
        except words.Unwritable as error:
            raise Unstorable([f"a file has no word for {error}"]) from None
        eager += [(node.label, why) for node, why in plan.eager]
        plans.append({**kinds, **described, "given": plan.arguments})
        records = plan.memory.records.view(np.int64).reshape(-1, WORDS)
        tensors |= {f"{number}.records": records, f"{number}.slots": slots}
    page = {
        "version": VERSION,
        "library": kernels.identity,
        "width": kernels.width,
        "class": type(model).__qualname__,
        "names": argument_names(model),
        "size": weights.stat().st_size,
        "lends": _lends(model, weights),
        "plans": plans,
    }
    texts = {**(metadata or {}), KEY: json.dumps(page, separators=(",", ":"))}
    _put(path, tensors, constants, texts)
    return eager


def _planned(model: Module, args: Sequence[Tensor]) -> Plan:
    """The plan of a call; raises Unstorable where there is none."""
    found = Compiled(model).planned(*args)
    if isinstance(found, Plan) and found.program.has_effects:
        raise Unstorable(["it draws random numbers, or assigns parameters or buffers"])
    if isinstance(found, Plan):
        return found
    why = found.why if isinstance(found, Unplanned) else "it is not for a CPU"
    if isinstance(found, Branches):
        why = f"it branches on computed values: {found.summary}"
    raise Unstorable([why])


def _kinds(plan: Plan, args: Sequence[Tensor]) -> dict[str, Any]:
    """The arguments' kinds, and which of them have a place in the program."""
    fixed = [plan.by_value and not a.shape and a.dtype.kind in "biu" for a in args]
    return {
        "kinds": [
            (words.dtype_word(a.dtype), a.shape, a.data.item() if is_fixed else None)
            for a, is_fixed in zip(args, fixed, strict=True)
        ],
        "takes": [i for i, is_fixed in enumerate(fixed) if not is_fixed],
    }


def _lends(model: Module, weights: Path) -> bool:
    """Whether a file has the values of every parameter under the parameter's path."""
    held = open_weights(weights)
    named = {path: item for path, item in model.named_tensors() if item.persistent}
    return named.keys() == set(held) and all(
        held[path].shape == item.shape and item.scheme is None
        for path, item in named.items()
    )


class _Written:
    """One plan in the words of a file."""

    def __init__(self, plan: Plan, model: Module, constants: _Constants):
        self._plan, self._constants = plan, constants
        self._paths = {id(item): path for path, item in model.named_tensors()}
        self._names = {
            _key(function): name
            for name, function in callables().items()
            if not isinstance(function, Operator)
        }
        self._held: dict[int, str] = {}
        self._reasons: list[str] = []

    def described(self) -> tuple[dict[str, Any], Any]:
        """The plan's metadata, and its table of slots."""
        plan = self._plan
        segments = [row for each in plan.segments for row in self._segment(each)]
        described = {
            "arena": plan.memory.arena,
            "outside": plan.outside,
            "faults": plan.faults,
            "fetched": [_fetch(each) for each in plan.results],
            "segments": segments,
            "results": self._encoded(plan.program.results, "its results"),
            "held": [*self._held.items()],
            "folded": [
                (
                    *(place, self._constants.start(array), array.shape),
                    words.dtype_word(array.dtype),
                )
                for place, array in plan.known.items()
            ],
        }
        if self._reasons:
            raise Unstorable([*dict.fromkeys(self._reasons)])
        return described, self._slots()

    def _slots(self) -> Any:
        plan = self._plan
        slots = np.full((plan.memory.slots, 2), -1, np.int64)
        slots[:, 1] = 0
        slots[ARENA, 1] = plan.memory.arena
        for slot, size in plan.sizes.items():
            slots[slot, 1] = size
        for slot, array in plan.constants.items():
            slots[slot] = self._constants.start(array), max(array.nbytes, 1)
        return slots

    def _segment(self, segment: Segment) -> Iterator[Any]:
        node = segment.node
        if node is None:
            yield segment.first, segment.behind
            return
        for number, line in enumerate(node.lines):
            first, last = number == 0, number == len(node.lines) - 1
            row = self._call(line, f"{node.label} eagerly ({segment.why})")
            fetched = [_fetch(each) for each in segment.fetched] if first else []
            yield [*row, fetched, segment.given if last else []]

    def _call(self, line: Line, where: str) -> list[Any]:
        call, function = line.call, line.function
        name = function.name if isinstance(function, Operator) else ""
        name = name or self._names.get(_key(function), "")
        if name not in callables():
            self._reasons.append(f"{where}: a file has no word for what it calls")
        made = refs(call.results)
        return [
            name,
            self._encoded(call.args, where),
            self._encoded(call.options, where),
            [(ref.place, ref.shape) for ref in made],
        ]

    def _encoded(self, value: Any, where: str) -> Any:
        try:
            return words.encoded(value, self._place)
        except words.Unwritable as error:
            self._reasons.append(f"{where}: a file has no word for {error}")
            return None

    def _place(self, item: Any) -> int | None:
        """The number of a place; parameters and buffers are noted with their paths."""
        if isinstance(item, Late):
            raise words.Unwritable(f"what {item.function.__name__} makes of tensors")
        if not isinstance(item, Ref):
            return None
        fixed = self._plan.program.fixed.get(item.place)
        if fixed is not None:
            if not isinstance(fixed, Stored) or id(fixed) not in self._paths:
                raise words.Unwritable("a tensor from outside of the model")
            self._held[item.place] = self._paths[id(fixed)]
        return item.place


def _key(function: Any) -> tuple[str, str]:
    return function.__module__, function.__qualname__


def _fetch(fetch: Fetch) -> tuple[Any, ...]:
    return (*fetch[:4], words.dtype_word(np.dtype(fetch.dtype)))


class _Constants:
    """The bytes of packed arrays, each content once, at places that are aligned."""

    def __init__(self) -> None:
        self.arrays: list[Any] = []
        self.size = 0
        self._known: dict[bytes, int] = {}

    def start(self, array: Any) -> int:
        """The offset of an array's bytes; it is added if need be."""
        held = np.ascontiguousarray(array)
        digest = hashlib.sha256(held.data).digest() + held.nbytes.to_bytes(8, "little")
        if digest not in self._known:
            self._known[digest] = self.size
            self.arrays.append(held)
            self.size += -(-max(held.nbytes, 1) // ALIGNED) * ALIGNED
        return self._known[digest]

    def chunks(self) -> Iterator[bytes]:
        for array in self.arrays:
            data = array.tobytes()
            yield data.ljust(-(-max(len(data), 1) // ALIGNED) * ALIGNED, b"\0")


def _bytes(data: bytes) -> Any:
    return np.frombuffer(data, np.uint8)


def _put(
    path: Path,
    tensors: dict[str, Any],
    constants: _Constants,
    metadata: dict[str, str],
) -> None:
    """Write the file; constants keep their alignment."""
    for gap in range(0, 8 * ALIGNED, 8):
        size = (constants.size,)
        rows = [(n, _code(a), a.shape) for n, a in tensors.items()]
        rows += [("constants", "U8", size), ("0.gap", "I64", (gap // 8,))]
        text = {**metadata, SEAL: "0" * 64}
        head, entries = layout(rows, text, f"{path}")
        if (len(head) + entries["constants"].start) % ALIGNED == 0:
            break
    else:
        raise AssertionError("no gap aligns the constants")
    stream = [(n, a.dtype, a.shape, a) for n, a in tensors.items()]
    stream.append(("0.gap", np.dtype(np.int64), (gap // 8,), bytes(gap)))
    stream.append(("constants", np.dtype(np.uint8), size, constants.chunks))
    write_stream(path, stream, metadata, seal=SEAL)


def _code(array: Any) -> str:
    return {"int64": "I64", "uint8": "U8"}[array.dtype.name]


__all__ = ["Unstorable", "write"]
