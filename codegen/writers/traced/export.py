"""`export`: any module as an ONNX model."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
from pathlib import Path as FilePath
from typing import Any

import numpy as np
import onnx_ir as ir

import burnish
from burnish import searches
from burnish._engine.pytree import leaves, mapped
from burnish.autodiff import Variable
from burnish.capture.line import refs
from burnish.capture.ref import Ref
from burnish.capture.signature import FIXED, argument_names
from burnish.codegen.errors import ExportError, UsageError
from burnish.codegen.writers.traced import operators  # noqa: F401  # fills the table
from burnish.codegen.writers.traced.emitter import Emitter, data_type, opsets
from burnish.codegen.writers.traced.functions import (
    DOMAIN,
    Functions,
    asked_by,
    everyone,
)
from burnish.codegen.writers.traced.sizes import Size
from burnish.codegen.writers.traced.table import find
from burnish.codegen.writers.traced.tape import Done, Path, Recorded, everything
from burnish.codegen.writers.traced.ways import recorded, together
from burnish.nn.core.module import Module
from burnish.operator import Operator
from burnish.tensor import Tensor

Dynamic = Mapping[str, Mapping[int, str]]


@dataclasses.dataclass(frozen=True)
class Exported:
    """A module as an ONNX model, to be saved or looked at."""

    model: ir.Model

    def save(self, path: str | FilePath) -> None:
        """Write it; weights beyond what one file holds go to files beside it."""
        path = FilePath(path)
        held = sum(
            value.const_value.nbytes
            for value in self.model.graph.initializers.values()
            if value.const_value is not None
        )
        beside = f"{path.name}.data" if held > _ONE_FILE else None
        ir.save(self.model, path, external_data=beside)

    def to_bytes(self) -> bytes:
        """The file's bytes."""
        return bytes(ir.to_proto(self.model).SerializeToString(deterministic=True))


_ONE_FILE = 1_500_000_000


def export(
    module: Module,
    *examples: Any,
    dynamic: Dynamic | None = None,
    outputs: Sequence[str] | None = None,
    functions: bool = False,
) -> Exported:
    """Export `module(*examples)` as an ONNX model.

    examples: tensors or arrays, as the module is called; numbers among them are fixed.
    dynamic: names of the axes that may have any size, {"images": {0: "batch"}}; unless
    given, those that the module's `nn.accepts` names. outputs: names of the results.
    functions: every module inside becomes a function of the model, one for each class.

    Raises ExportError where there is no ONNX for what the module does, with the names
    of all such operators; CaptureError where it depends on values.
    """
    module = module.valid()
    given = [_example(module, each) for each in examples]
    inputs = _inputs(module, given)
    chosen = _accepted(module, inputs) if dynamic is None else _checked(dynamic, inputs)
    try:
        program = _program(module, given, inputs, chosen)
    except burnish.errors.CaptureError:
        _check_searches(module)
        raise
    _check(program.calls)
    return Exported(_model(module, program, inputs, chosen, outputs, functions))


def _example(module: Module, item: Any) -> Any:
    def tensors(each: Any) -> Any:
        if isinstance(each, (Variable, *FIXED)):
            return each
        return Tensor(each, device=module.device)

    return mapped(item, tensors)


def _inputs(module: Module, given: Sequence[Any]) -> dict[str, Tensor]:
    """The tensors among the arguments by name: "x", "state_0"."""
    names = argument_names(module)
    found: dict[str, Tensor] = {}
    for i, item in enumerate(given):
        name = names[i] if i < len(names) else f"input_{i}"
        parts = [each for each in leaves(item) if isinstance(each, Variable)]
        for k, part in enumerate(parts):
            found[name if part is item else f"{name}_{k}"] = part  # type: ignore[assignment]
    return found


def _accepted(module: Module, inputs: Mapping[str, Tensor]) -> Dynamic:
    """The axes that `nn.accepts` leaves free."""
    specs = getattr(module.forward, "inputs", {})
    found: dict[str, dict[int, str]] = {}
    for name, each in inputs.items():
        if name not in specs or specs[name].tail is not None:
            continue
        for axis, size in enumerate(specs[name].head):
            if not isinstance(size, int) and axis < len(each.shape):
                found.setdefault(name, {})[axis] = size or f"{name}_{axis}"
    return found


def _checked(dynamic: Dynamic, inputs: Mapping[str, Tensor]) -> Dynamic:
    found: dict[str, dict[int, str]] = {}
    for name, axes in dynamic.items():
        if name not in inputs:
            known = ", ".join(inputs)
            raise UsageError(f"export: dynamic names {name!r}, expected one of {known}")
        rank = len(inputs[name].shape)
        for axis, word in axes.items():
            if not -rank <= axis < rank:
                raise UsageError(
                    f"export: dynamic names axis {axis} of {name}, which has {rank}"
                )
            found.setdefault(name, {})[axis % rank] = word
    return found


# --- the program, at several sizes ---

#: How the second and third capture change every dynamic size: a sum or a product.
_CHANGES: tuple[tuple[Callable[[int, int], int], ...], ...] = (
    (lambda n, i: n + 1 + i, lambda n, i: n + 3 + 2 * i),
    (lambda n, i: n * (2 + i), lambda n, i: n * (3 + 2 * i)),
    (lambda n, i: n - 1 - i, lambda n, i: n - 2 - 2 * i),
)


def _program(
    module: Module,
    given: list[Any],
    inputs: Mapping[str, Tensor],
    dynamic: Dynamic,
) -> Recorded:
    """Record the module's calls, with sizes that follow the dynamic axes."""
    words = _sizes(inputs, dynamic)
    first = recorded(module, given)
    if not words:
        return together([first])
    failed: Exception | None = None
    for changes in _CHANGES:
        runs = [first]
        try:
            for change in changes:
                sizes = {w: change(n, i) for i, (w, n) in enumerate(words.items())}
                if min(sizes.values()) < 1:
                    break
                runs.append(recorded(module, _resized(given, inputs, dynamic, sizes)))
            if len(runs) == 1 + len(changes):
                return together(runs)
        except (
            burnish.errors.BurnishError,
            ExportError,
            ValueError,
            IndexError,
        ) as error:
            failed = failed or error
    named = ", ".join(f"{word} ({n} in the examples)" for word, n in words.items())
    raise ExportError(
        f"export: expected a module that takes other sizes of {named}, got: {failed}; "
        f"say which axes are dynamic, dynamic={{...}}, or none, dynamic={{}}"
    )


def _sizes(inputs: Mapping[str, Tensor], dynamic: Dynamic) -> dict[str, int]:
    """Every dynamic axis's name and its size in the examples."""
    found: dict[str, int] = {}
    for name, axes in dynamic.items():
        for axis, word in axes.items():
            n = inputs[name].shape[axis]
            if found.setdefault(word, n) != n:
                raise UsageError(
                    f"export: expected one size of {word!r}, the examples have "
                    f"{found[word]} and {n}"
                )
    return found


def _resized(
    given: list[Any],
    inputs: Mapping[str, Tensor],
    dynamic: Dynamic,
    sizes: Mapping[str, int],
) -> list[Any]:
    """The examples at other sizes, their elements repeated or left out."""
    names = {id(each): name for name, each in inputs.items()}

    def other(each: Any) -> Any:
        if not isinstance(each, Variable):
            return each
        array = each.data
        for axis, word in dynamic.get(names[id(each)], {}).items():
            places = np.arange(sizes[word]) % array.shape[axis]
            array = array.take(each.device.put(places), axis=axis)
        return Tensor(array, device=each.device)

    return [mapped(item, other) for item in given]


def _check(calls: Sequence[Done]) -> None:
    """ExportError that names everything without a way back."""
    missing: dict[str, set[str]] = {}
    for call in everything(calls):
        if find(call.function) is None:
            where = call.path[-1][0] if call.path else ""
            missing.setdefault(call.name, set()).add(where)
    if not missing:
        return
    lines = [
        f"  {name}"
        + (f", in {', '.join(sorted(filter(None, where))[:5])}" if any(where) else "")
        for name, where in sorted(missing.items())
    ]
    raise ExportError(
        "export: expected operators that ONNX has nodes for, these have none:\n"
        + "\n".join(lines)
    )


def _check_searches(module: Module) -> None:
    """ExportError where a module calls a search: its loop ends by what it finds."""
    for _, each in module.named_modules():
        kind = type(each)
        for name in inspect.unwrap(kind.forward).__code__.co_names:
            if name in searches.__all__:
                raise ExportError(
                    f"export: {kind.__name__}.forward calls {name}, for which ONNX has "
                    "no operator; export the decoder that it is given, or write tuned "
                    "weights back into the file of the search: burnish export"
                )


# --- the graph ---


def _model(
    module: Module,
    program: Recorded,
    inputs: Mapping[str, Tensor],
    dynamic: Dynamic,
    outputs: Sequence[str] | None,
    functions: bool,
) -> ir.Model:
    words = _words(program, inputs, dynamic)
    values = [
        _typed(ir.Value(name=name), ref, words)
        for name, ref in zip(inputs, program.arguments, strict=True)
    ]
    kind = type(module)
    emit = Emitter(values, f"{kind.__module__}.{kind.__qualname__}", functions)
    emit.arguments, emit.constants = program.arguments, program.constants
    for ref, value in zip(program.arguments, values, strict=True):
        emit.values[ref.place] = value
    for place, (name, stored) in program.stored.items():
        emit.values[place] = emit.stored(name, stored)
    emit.shared = _shared(program)
    emit.write = functools.partial(_write, emit, words)
    for call in program.calls:
        emit.write(call)
    emit.call = None
    results = _results(emit, program, outputs, words)
    _drop_unread(emit, results)
    made = Functions(emit, results)
    nodes = made.fold(emit.nodes, 1, "") if functions else emit.nodes
    used = {id(v) for v in asked_by(nodes)}
    graph = ir.Graph(
        values,
        results,
        nodes=nodes,
        initializers=[v for v in emit.initializers if id(v) in used],
        opset_imports=opsets(everyone(nodes)) | ({DOMAIN: 1} if made.made else {}),
        name=kind.__name__,
    )
    return ir.Model(
        graph,
        ir_version=10,
        functions=list(made.made.values()),
        producer_name="burnish",
        producer_version=burnish.__version__,
    )


def _shared(program: Recorded) -> dict[int, Path]:
    """For each constant the modules' calls that all its readers are in."""
    found: dict[int, Path] = {}
    for call in everything(program.calls):
        for ref in refs(call.given):
            if ref.place in program.constants:
                known = found.get(ref.place, call.path)
                same = takewhile(
                    lambda pair: pair[0] == pair[1], zip(known, call.path, strict=False)
                )
                found[ref.place] = tuple(level for level, _ in same)
    return found


def _drop_unread(emit: Emitter, results: Sequence[ir.Value]) -> None:
    """Dead code elimination: nodes without readers."""
    asked = {id(value) for value in results}
    for node in reversed(emit.nodes):
        if not any(made.uses() or id(made) in asked for made in node.outputs):
            for place in range(len(node.inputs)):
                node.replace_input_with(place, None)
            emit.nodes.remove(node)


def _words(
    program: Recorded, inputs: Mapping[str, Tensor], dynamic: Dynamic
) -> dict[Size, str]:
    """The names of dynamic sizes."""
    found: dict[Size, str] = {}
    for name, ref in zip(inputs, program.arguments, strict=True):
        for axis, word in dynamic.get(name, {}).items():
            size = ref.shape[axis]
            if isinstance(size, Size):
                found[size] = word
    return found


def _typed(value: ir.Value, ref: Ref, words: Mapping[Size, str]) -> ir.Value:
    value.shape = ir.Shape(
        [
            words.get(n) if isinstance(n, Size) else n if n is None else int(n)
            for n in ref.shape
        ]
    )
    value.type = ir.TensorType(data_type(ref.dtype))
    return value


def _write(emit: Emitter, words: Mapping[Size, str], call: Done) -> None:
    emit.call = call
    for ref in refs(call.given):  # in their order, whichever the writer asks for
        emit.value(ref)
    writer = find(call.function)
    assert writer is not None
    options = call.options
    if isinstance(call.function, Operator):
        options = {**call.function.defaults, **options}
    try:
        made = writer(emit, *call.args, **options)
    except TypeError as error:
        if error.__traceback__ is not None and error.__traceback__.tb_next is None:
            raise emit.cannot(f"it is called with other arguments ({error})") from error
        raise
    for ref, value in zip(
        (r for r in leaves(call.results)), leaves(made), strict=False
    ):
        if isinstance(ref, Ref) and value is not None:
            value = emit.value(value)
            if value.shape is None and value.producer() is not None:
                _typed(value, ref, words)
            emit.values[ref.place] = value


def _results(
    emit: Emitter,
    program: Recorded,
    names: Sequence[str] | None,
    words: Mapping[Size, str],
) -> list[ir.Value]:
    """The graph's outputs: distinct values with the requested names."""
    found = [each for each in leaves(program.results) if each is not None]
    names = names or _names(program.results, len(found))
    if len(names) != len(found):
        raise UsageError(f"export: expected {len(found)} names of outputs, got {names}")
    taken = {value.name for value in emit.inputs} | {v.name for v in emit.initializers}
    made: list[ir.Value] = []
    for name, item in zip(names, found, strict=True):
        value = emit.value(item)
        if (
            value.producer() is None
            or any(value is each for each in made)
            or (
                value.producer().op_type == "Constant"  # type: ignore[union-attr]
            )
        ):
            value = emit("Identity", value)
            if isinstance(item, Ref):
                _typed(value, item, words)
            else:
                value.shape = ir.Shape(np.shape(item))
                value.type = ir.TensorType(data_type(np.asarray(item).dtype))
        value.name = f"{name}_output" if name in taken else name
        made.append(value)
    return made


def _names(results: Any, count: int) -> list[str]:
    if isinstance(results, dict) and all(isinstance(r, Ref) for r in results.values()):
        return [re.sub(r"\W", "_", str(key)) for key in results]
    return ["output"] if count == 1 else [f"output_{i}" for i in range(count)]


__all__ = ["Exported", "export"]
