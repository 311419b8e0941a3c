"""Loading weights that do not fit a module as they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from burnish.lowbit import Packed
from burnish.lowbit.files import joined
from burnish.nn.core import record, tables
from burnish.nn.core.fit import Report, fit, is_float
from burnish.nn.core.module import Module
from burnish.nn.lowbit.input_quantizer import inputs_installed
from burnish.serialize import LazyTensor, Weights, open_weights
from burnish.serialize.files import Source
from burnish.store.filter import Filter
from burnish.store.frameworks import PYTORCH
from burnish.store.layout import Layout
from burnish.store.listing import listing
from burnish.store.names import Renaming, contiguous, renamer, unique
from burnish.store.places import Place, places
from burnish.store.precision import precision as precision_of


def load(
    module: Module,
    source: Source | Mapping[str, Any],
    *,
    top_level_key: str | None = None,
    rename: Renaming = (),
    only: Filter | None = None,
    layout: Layout = PYTORCH,
    contiguous_indices: bool | None = None,
    partial: bool = False,
    ignore_mismatched_sizes: bool = False,
    dequantize: bool = False,
    precision: Any = None,
    inert: bool = False,
    debug: bool = False,
) -> Report:
    r"""Give a module the values of a file or of tensors by name; say what was done.

    source: what `open_weights` takes, or a mapping (another module's `collect`).
    top_level_key: only tensors below it ("model.state_dict").
    rename: (regular expression, replacement) pairs, each in turn: `(r"^conv\.", "")`.
    only: a Filter; what it leaves out is neither loaded nor missed.
    layout: of the file: PYTORCH, BURN, KERAS, FLAX, or your own.
    contiguous_indices: count indices from 0 without gaps; None: if more names fit then.
    partial: names may be missing and unexpected. ignore_mismatched_sizes: values of
    another shape are passed over. dequantize: quantized tensors become float.
    precision: a dtype or Precision for floating-point values; None: the module's own.
    inert: read objects of unknown classes in a pickle as records that do nothing.
    debug: print each name, the name it gets, shape and dtype first.

    Raises RecordError, before anything is changed, with all that does not fit.
    """
    weights = _opened(source, inert)
    if top_level_key is not None:
        weights = weights.under(top_level_key)
    here = list(places(module))
    change = renamer(rename)
    names = unique(
        ((name, change(layout.spelled(name))) for name in weights), weights.where
    )
    names = _counted(names, here, layout, contiguous_indices, weights.where)
    if debug:
        print(listing(weights, {old: new for new, old in names.items()}))
    with inputs_installed(module, {new: weights[old] for new, old in names.items()}):
        here = list(places(module))
        state = dict(joined(_laid_out(names, weights, here, layout, dequantize)))
        if dequantize:
            state = {
                n: v.unpack() if type(v) is Packed else v for n, v in state.items()
            }
        report = _fit(module, here, state, only, keep_dtype=precision is not None)
        if ignore_mismatched_sizes:
            for path in [p for p, m in report.misfits.items() if m.what == "shape"]:
                del report.misfits[path]
                report.skipped.append(path)
        report.check(strict=not partial)
    _assign(report, here, precision)
    tables.restore(module, weights)
    return report


def _opened(source: Any, inert: bool) -> Weights:
    if isinstance(source, Weights):
        return source
    if isinstance(source, Mapping):
        return Weights(source, "weights", "mapping")
    return open_weights(source, inert)


def _counted(
    names: dict[str, str],
    here: list[Place],
    layout: Layout,
    wanted: bool | None,
    where: str,
) -> dict[str, str]:
    """`names` with indices without gaps, if that is wanted or fits better."""
    if wanted is False:
        return names
    new = contiguous(names)
    counted = unique(((names[name], new[name]) for name in names), where)
    if wanted:
        return counted
    known = {_theirs(place, layout) for place in here}
    return counted if len(known & counted.keys()) > len(known & names.keys()) else names


def _theirs(place: Place, layout: Layout) -> str:
    """The file's name of the tensor of this place."""
    above = place.path.removesuffix(place.attribute)
    return above + layout.name(place.layer, place.attribute)


def _laid_out(
    names: dict[str, str],
    weights: Weights,
    here: list[Place],
    layout: Layout,
    dequantize: bool,
) -> dict[str, Any]:
    """Values by our paths and in our layout; names without a place stay as they are."""
    state: dict[str, Any] = {}
    taken = set()
    for place in here:
        theirs = _theirs(place, layout)
        if theirs not in names:
            continue
        taken.add(theirs)
        value = weights[names[theirs]]
        lazy = isinstance(value, LazyTensor)
        if lazy and value.is_quantized and not dequantize:
            state[place.path] = value
            continue
        array = value.read() if lazy else value
        state[place.path] = layout.read(array, place.layer, place.attribute)
    state.update((name, weights[names[name]]) for name in names if name not in taken)
    return state


def _fit(
    module: Module,
    here: list[Place],
    state: dict[str, Any],
    only: Filter | None,
    keep_dtype: bool,
) -> Report:
    kind = type(module).__name__
    paths = [(place.path, place.item) for place in here]
    if only is None:
        return fit(kind, paths, state, keep_dtype)
    chosen = {name: value for name, value in state.items() if only(name, value)}
    left = [(path, item) for path, item in paths if only(path, item)]
    report = fit(kind, left, chosen, keep_dtype)
    report.skipped = [name for name in state if name not in chosen]
    return report


def _assign(report: Report, here: list[Place], wanted: Any) -> None:
    """Put the values where they belong; the report lets them go."""
    want = precision_of(wanted)
    layers = {id(place.item): place for place in here}
    values = []
    for item, array in report.values:
        if want is not None and not isinstance(array, Packed):
            place = layers[id(item)]
            dtype = want.of(place.layer)
            if dtype is not None and is_float(item.dtype):
                array = record.cast({place.path: array}, dtype)[place.path]
            else:
                array = array.astype(item.dtype, copy=False)
        values.append((item, array))
    for item, array in values:
        item.assign(array)
    report.values = []
