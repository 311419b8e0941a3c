"""Untie weights of several modules that an exporter merged because they were equal.

torch's exporters keep one of several equal initializers (fresh biases, say). The older
one writes `Identity` nodes that carry the names of the others: a copy under such a name
is a weight of its own, unless a module that is called again reads it. The newer one,
and both for transposed ones, leave no trace but the scopes: what modules of one list
read in the same place ("layers.0.norm", "layers.1.norm") was one weight each, and so
was what any modules read whose elements are all the same number: fresh biases and
scales, which `fresh` knows without scopes too. Simplifiers merge equal weights as well
and drop the scopes: the name of the bias beside a weight is of its layer then. What
each module computes from such a weight alone (`-exp(a)`) is merged with it. Tables,
too, are merged where some of a list's modules have equal ones. What the file itself
uses twice stays one, and so does what a name says is of a module that none of the
readers is in.
"""

from __future__ import annotations

import itertools
import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable

import onnx_ir as ir

from burnish.codegen.account import Account
from burnish.codegen.names import authorship
from burnish.codegen.ops import Trait, having
from burnish.codegen.passes import graph as g
from burnish.codegen.passes.weights.fresh import (
    Use,
    fresh_apart,
    is_matrix,
    matrices_beside,
    own_copy,
)
from burnish.codegen.program import level_names
from burnish.codegen.scopes import is_placed, scope_of
from burnish.codegen.weights import constants, origin

_Path = tuple[str, ...]

_PARAMETER = re.compile(r"[A-Za-z_]\w*(\.\w+)+")
#: What a layer's weight has beside it, and the other way round.
_BESIDE = re.compile(r"([A-Za-z_]\w*(?:\.\w+)+)\.(?:in_proj_)?(?:weight|bias)")
_COUNTED = re.compile(r"(val_|onnx::\w+_)\d+")
#: Values that torch's older exporter computed from weights, such as a folded norm.
_FOLDED = re.compile(r"onnx::\w+_\d+")
#: How the older exporter counts the calls of a module, behind its name.
_CALL = re.compile(r"_\d+")
#: Behind all that exporters count, and onnx-ir for the nodes that passes make.
_BEHIND = 1_000_000
#: Operators whose operands are weights, whatever the exporter calls them.
_WEIGHTED = having(Trait.PRODUCT | Trait.CONVOLUTION)
#: Operators that weights alone go through, such as `-exp(a)`.
_STEPS = having(Trait.ELEMENTWISE)


def untie_weights(model: ir.Model, account: Account) -> bool:
    """Undo what both of torch's exporters do to equal weights."""
    parameters = _parameters(model)
    changed = _by_names(model, account, parameters)
    changed |= _computed_apart(model, account)
    for value in list(model.graph.initializers.values()):
        changed |= fresh_apart(model, value, account)
        changed |= _by_scopes(model, value, account, parameters)
    return _tables_apart(model, account) or changed


def _by_scopes(
    model: ir.Model, value: ir.Value, account: Account, parameters: list[str]
) -> bool:
    """Give each module of a list its own copy of the weight that they all read.

    A module that is called again is one, also where the exporter counts its calls.
    """
    tensor, name = value.const_value, value.name or ""
    named = _PARAMETER.fullmatch(name) is not None or (
        "/" in name and authorship.is_tensorflows(name)
    )
    if tensor is None or not constants.trains(value) or value.is_graph_output():
        return False
    places: dict[_Path, list[Use]] = defaultdict(list)
    if _is_passed(value):
        return False
    for node, index in value.uses():
        if not named and not (_COUNTED.fullmatch(name) and node.op_type in _WEIGHTED):
            return False
        path = _path(node) or _layer_beside(node, index)
        again = (p for p in places if _is_called_again(p, path, parameters))
        places[next(again, path)].append((node, index))
    shapes = set(map(_without_numbers, places))
    if len(places) < 2 or (len(shapes) > 1 and not (named and _is_fresh(tensor))):
        return False
    if named and "." in name and not _is_a_readers(name, places):
        return False
    first, *others = places
    for place in others:
        own_copy(model, value, places[place], _renamed(model, name, first, place))
    account.did(f"weight that {len(places)} modules shared", name)
    return True


def _computed_apart(model: ir.Model, account: Account) -> bool:
    """Give each module of a list its own copy of a step that weights alone go through.

    The weights follow, once their readers are apart.
    """
    changed = False
    for node in list(model.graph):
        output = node.outputs[0]
        if node.op_type not in _STEPS or not all(map(constants.trains, node.inputs)):
            continue
        places = _by_path(output)
        shapes = set(map(_without_numbers, places))
        if len(places) < 2 or len(shapes) > 1:
            continue
        if any(uses[0][0].graph is not node.graph for uses in places.values()):
            continue  # modules within branches
        first, *others = places.values()
        if _path(node) not in places:
            if is_placed(node):  # by the author, outside of these modules
                continue
            g.named_like(node, first[0][0])
        for uses in others:
            reader = uses[0][0]
            kept, since = node.attributes.values(), node.version
            step = ir.Node("", node.op_type, node.inputs, kept, version=since)
            step.outputs[0].type, step.outputs[0].shape = output.type, output.shape
            g.before(reader, step)
            for each, index in uses:
                each.replace_input_with(index, step.outputs[0])
        account.did(f"step that {len(places)} modules shared", g.label(node))
        changed = True
    return changed


def _layer_beside(node: ir.Node, index: int) -> _Path:
    """The layer that the name of the weight or bias beside an operand is of."""
    beside = [value for i, value in enumerate(node.inputs) if i != index]
    readers = [user for user, _ in node.outputs[0].uses()]
    if node.op_type == "MatMul" and len(readers) == 1 and readers[0].op_type == "Add":
        beside += readers[0].inputs
    names = (v.name or "" for v in beside if v is not None and v.is_initializer())
    found = next(filter(None, map(_BESIDE.fullmatch, names)), None)
    return tuple(found[1].split(".")) if found else ()


def _is_a_readers(name: str, places: Iterable[_Path]) -> bool:
    """Whether the name says that one of these modules holds the weight, or its parts.

    "encoder.rel_embeddings.weight" was passed to the layers that read it.
    """
    owner = name.split(".")[:-1]
    for place in places:
        rest = iter(owner)
        if all(part in rest for part in place):
            return True
    return False


_Reader = tuple[_Path, str, int]
"""A module without its numbers, an operator in it, and which operand."""


def _tables_apart(model: ir.Model, account: Account) -> bool:
    """Give each module of a list its own table, where not all of them have the same.

    One that they all read was passed to them; of several, each module has its own,
    and the exporter has merged those that are equal.
    """
    tables: dict[_Reader, set[ir.Value]] = defaultdict(set)
    for value in model.graph.initializers.values():
        tensor = value.const_value
        if tensor is None or tensor.size < 2 or not tensor.dtype.is_floating_point():
            continue
        if not constants.trains(value) and not value.is_graph_output():
            for node, index in value.uses():
                tables[_reader(node, index)].add(value)
    changed = False
    shared = (value for values in tables.values() for value in values)
    for value in dict.fromkeys(shared):
        if any(len(tables[_reader(*use)]) < 2 for use in value.uses()):
            continue
        places = _by_path(value)
        for uses in list(places.values())[1:]:
            own_copy(model, value, uses, value.name, trains=False)
            changed = True
        if len(places) > 1:
            account.did(f"table that {len(places)} modules shared", value.name or "")
    return changed


def _reader(node: ir.Node, index: int) -> _Reader:
    return _without_numbers(_path(node)), node.op_type, index


def _without_numbers(path: _Path) -> _Path:
    return tuple("#" if part.isdigit() else part for part in path)


def _is_fresh(tensor: ir.TensorProtocol) -> bool:
    """Whether a vector's elements are one number, as before any training."""
    sizes = [size for size in tensor.shape.numpy() if size != 1]
    if len(sizes) != 1:
        return False
    values = tensor.numpy()
    return bool((values == values[0]).all())


def _renamed(model: ir.Model, name: str, first: _Path, place: _Path) -> str:
    """`layers.0.fc.weight` for another place; what was only counted counts on."""
    parts, taken = name.split("."), model.graph.initializers
    if tuple(parts[: len(first)]) == first:
        return ".".join((*place, *parts[len(first) :]))
    counted = _COUNTED.fullmatch(name)
    if counted is not None:
        numbers = (f"{counted[1]}{i}" for i in itertools.count(_BEHIND))
        return next(new for new in numbers if new not in taken)
    own = ".".join((*place, parts[-1]))
    return name if own in taken else own


def _is_read_again(weight: ir.Value, copy: ir.Value, parameters: list[str]) -> bool:
    """Whether a module that reads the weight is called again, and reads the copy then.

    The older exporter counts the calls, "fc" and "fc_1", and folds a matrix for each.
    parameters: the names of those that the file names, sorted.
    """
    first = [_path(node) for node, _ in weight.uses() if node.op_type != "Identity"]
    again = [_path(node) for node, _ in copy.uses()]
    return bool(again) and all(
        any(_is_called_again(one, other, parameters) for one in first)
        for other in again
    )


def _is_one_layers(weight: ir.Value, copy: ir.Value) -> bool:
    """Whether two equal weights are one, where no scope tells of their modules.

    Trained matrices are never equal by chance; a vector is of a matrix' layer.
    """
    readers = [node for value in (weight, copy) for node, _ in value.uses()]
    if any(_path(node) for node in readers if node.op_type != "Identity"):
        return False
    tensor = weight.const_value
    if tensor is not None and is_matrix(tensor):
        values = tensor.numpy()
        return not (values == values.flat[0]).all()
    return bool(matrices_beside(weight) & matrices_beside(copy))


def _is_passed(weight: ir.Value) -> bool:
    """Whether layers are applied to it: it is what they are called with, of no layer.

    A table of distances, say, through each layer's own projection.
    """
    uses = weight.uses()
    return bool(uses) and all(
        node.op_type in _WEIGHTED
        and index == 0
        and node.inputs[1] is not None
        and constants.trains(node.inputs[1])
        for node, index in uses
    )


def _is_called_again(one: _Path, other: _Path, parameters: list[str]) -> bool:
    """Whether the modules of two paths are one but for the counts of its calls.

    A module "fc_1" that holds a bias of its own is its author's.
    """
    if not one or len(one) != len(other):
        return False
    counted = [i for i, (a, b) in enumerate(zip(one, other, strict=True)) if a != b]
    if not all(_CALL.fullmatch(other[i].removeprefix(one[i])) for i in counted):
        return False
    return not counted or not _holds(".".join(other[: counted[0] + 1]), parameters)


def _holds(module: str, parameters: list[str]) -> bool:
    """Whether one of the sorted names is of a parameter in the module."""
    prefix = f"{module}."
    place = bisect_left(parameters, prefix)
    return place < len(parameters) and parameters[place].startswith(prefix)


def _parameters(model: ir.Model) -> list[str]:
    """The names of all parameters that an author named, sorted."""
    values = list(model.graph.initializers.values())
    values += [n.outputs[0] for n in g.all_nodes(model) if n.op_type == "Identity"]
    names = {value.name or "" for value in values}
    return sorted(name for name in names if _PARAMETER.fullmatch(name))


def _path(node: ir.Node) -> _Path:
    return level_names(scope_of(node))


def _by_path(value: ir.Value) -> dict[_Path, list[Use]]:
    """The uses of a value, by the modules that they are in."""
    places: dict[_Path, list[Use]] = defaultdict(list)
    for node, index in value.uses():
        places[_path(node)].append((node, index))
    return places


def _is_vectors(copy: ir.Node) -> bool:
    tensor = None if copy.inputs[0] is None else copy.inputs[0].const_value
    return tensor is None or not is_matrix(tensor)


def _by_names(model: ir.Model, account: Account, parameters: list[str]) -> bool:
    """Replace an Identity of a weight whose name is another weight's by that weight."""
    changed = False
    copies = g.nodes_of(model, "Identity")
    for node in sorted(copies, key=_is_vectors):  # its layer is known by its matrix
        weight, output = node.inputs[0], node.outputs[0]
        name = output.name or ""
        tensor = None if weight is None else weight.const_value
        trains = tensor is not None and constants.trains(weight)
        if weight is None or tensor is None or not trains or output.is_graph_output():
            continue
        is_folded = _FOLDED.fullmatch(name) and _FOLDED.fullmatch(weight.name or "")
        if not _PARAMETER.fullmatch(name) and not is_folded:
            continue
        if is_folded and _is_read_again(weight, output, parameters):
            continue
        if is_folded and (_is_passed(output) or _is_one_layers(weight, output)):
            changed |= g.forward(node, weight)
            continue
        copy = origin.copied(tensor, [origin.use(node, 0)])
        output.name = None
        value = g.initializer(model, output, copy, trains=True)
        value.name = copy.name = name
        ir.convenience.replace_all_uses_with(output, value)
        g.owner(node).remove(node, safe=True)
        account.did("weight merged with an equal one", name)
        changed = True
    return changed
