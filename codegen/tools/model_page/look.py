"""Inspect a model: generate and load its module, run it once, name its sizes."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np

from burnish.codegen.errors import UnsupportedError, UsageError, spelled
from burnish.codegen.feeds import described
from burnish.codegen.loaded import executed
from burnish.codegen.output.generated import Generated, Options
from burnish.codegen.pipeline import generate
from burnish.codegen.tools.model_page import reasons
from burnish.codegen.tools.model_page.boxes import Look, Operator
from burnish.codegen.tools.model_page.lines import Lines
from burnish.codegen.tools.model_page.observe import Pass, observed
from burnish.codegen.tools.model_page.sizes import Sizes, same_steps, second
from burnish.codegen.tools.model_page.tree import Tree
from burnish.codegen.tools.module_inputs import (
    SIZES,
    arrays,
    counts_a_batch,
    held_sizes,
    known,
    resized,
)
from burnish.codegen.weights.entries import Entry
from burnish.nn.core import tables
from burnish.serialize import Weights

COMPUTED = 256 * 1024 * 1024
"""Products of a model with more bytes of weights are left out, and their sizes kept."""


SECONDS = 30.0
"""A pass that takes longer is repeated without its products, and then given up."""


def look(
    path: str | Path,
    dims: Mapping[str, int] | None = None,
    inputs: Mapping[str, Path] | None = None,
) -> Look:
    """Everything that the page shows of a model file or folder.

    dims: sizes of open dimensions. inputs: NumPy files instead of random values. Raises
    ConversionError for what cannot be read, or UsageError for a size or an input that
    the model has not.
    """
    return examined(path, dims, inputs)[0]


def examined(
    path: str | Path,
    dims: Mapping[str, int] | None = None,
    inputs: Mapping[str, Path] | None = None,
    *,
    strict: bool = True,
) -> tuple[Look, dict[str, Entry]]:
    """A look at a model, and its weights by path.

    strict: whether a size or an input that the model has not is refused, or left out.
    """
    path, explained = Path(path), list[str]()
    dims, inputs = dims or {}, inputs or {}
    made = _generated(path, explained)
    entries = {entry.path: entry for entry in made.weights}
    notes = list(made.notes)
    with executed(made.text) as module:
        model = vars(module)["Model"]()
        computed = sum(entry.size for entry in made.weights) <= COMPUTED
        _fill(model, made, computed)
        if not strict:
            dims, inputs = known(model, dims, inputs)
        ran = _Ran.of(model, dims, inputs, computed, notes)
        tree = Tree(
            model, module.__name__, Lines(made.text), entries, ran.seen, ran.sizes
        )
        root = tree.box
    reasons.assign(root, explained)
    found = Look(
        path.resolve().name,
        made.inputs,
        made.name,
        made.text,
        root,
        ran.operators(),
        tuple(explained),
        ran.inputs,
        ran.sizes.sizes,
        tuple(notes),
    )
    return found, entries


def _fill(model: Any, made: Generated, computed: bool) -> None:
    """Load the weights; uncomputed ones become zeros that take no memory."""
    kinds = {path: t.dtype for path, t in model.named_tensors(remove_duplicate=False)}

    def value(entry: Entry) -> np.ndarray:
        if computed or not entry.trained:
            return entry.read()
        zero = np.zeros((), kinds.get(entry.path))
        return np.broadcast_to(zero, entry.weight.shape)

    state: Any = {entry.path: value(entry) for entry in made.weights}
    held = Weights(state, "the model", "arrays", metadata=made.metadata)
    model.load_state_dict(held)
    tables.restore(model, held)


def _generated(path: Path, explained: list[str]) -> Generated:
    """Generate the source, with methods to fill in for unsupported operators."""
    try:
        return generate(path, explain=explained.append)
    except UnsupportedError:
        explained.clear()
        options = Options(allow_unknown=True)
        return generate(path, options, explain=explained.append)


class _Ran:
    """One pass of a model, and the names of the sizes in it."""

    def __init__(self, inputs: str, seen: Pass, sizes: Sizes):
        self.inputs, self.seen, self.sizes = inputs, seen, sizes

    @classmethod
    def of(
        cls,
        model: Any,
        dims: Mapping[str, int],
        files: Mapping[str, Path],
        computed: bool,
        notes: list[str],
    ) -> _Ran:
        """With the first sizes that the model takes; else notes hear why not.

        Raises UsageError for dims and files that the model has not.
        """
        problem = ""
        for size in SIZES:
            try:
                given = arrays(model, files, dims, size)
            except UsageError:
                if dims or files:
                    raise
                problem = "nothing says what its inputs are"
                break
            try:
                seen = _pass(model, given, computed)
            except TimeoutError as error:
                less = spelled("dims={name: size}", "--dim NAME=SIZE")
                problem = f"{error}; set smaller sizes with {less}"
                break
            except Exception as error:  # whatever a model raises of a size
                problem = problem or f"{type(error).__name__}: {error}"
                continue
            shown = ", ".join(
                f"{name} {described(each)}" for name, each in given.items()
            )
            return cls(shown, seen, _named(model, given, seen))
        notes.append(
            f"shapes and costs are not known, the model did not run: {problem}"
        )
        return cls("", Pass(), Sizes(Pass(), {}, {}))

    def operators(self) -> tuple[Operator, ...]:
        """Those that cost most first."""
        found = [Operator(name, *each) for name, each in self.seen.operators.items()]
        return tuple(sorted(found, key=lambda o: (-o.macs, -o.result_bytes, o.name)))


def _pass(model: Any, given: Mapping[str, np.ndarray], computed: bool) -> Pass:
    """One pass; without its products where they take too long."""
    if computed:
        with contextlib.suppress(TimeoutError):
            return observed(model, given, seconds=SECONDS)
    return observed(model, given, products=False, seconds=SECONDS)


def _named(model: Any, given: Mapping[str, np.ndarray], base: Pass) -> Sizes:
    """Run once more for each open dimension, to see which axes follow it.

    All of these runs share the time limit of one; axes not seen by then keep their
    numbers.
    """
    sizes, until = held_sizes(model, given), monotonic() + SECONDS
    others = {}
    for name, usual in sizes.items():
        for other in second(usual, counts_a_batch(name)):
            try:
                changed, left = resized(model, given, name, other), until - monotonic()
                seen = observed(model, changed, products=False, seconds=left)
            except Exception:  # a size that the model does not take
                continue
            if same_steps(base, seen):
                others[name] = (other, seen)
                break
    return Sizes(base, sizes, others)
