"""Following: run a training step eagerly and record its reads and writes."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from burnish._engine.pytree import leaves, mapped
from burnish.autodiff import Node, Variable, backward, recording
from burnish.backend.cuda.elementwise.scaling import Scale
from burnish.backend.cuda.graphs.live import Live
from burnish.capture.dependencies import Dependencies
from burnish.capture.where import refusal
from burnish.errors import CaptureError
from burnish.nn.adapters.reparameterize import Reparameterized
from burnish.nn.core.calling import forwarded
from burnish.nn.core.module import Module
from burnish.nn.core.param import Stored
from burnish.nn.norms.batch_norm import BatchNorm1d
from burnish.ops.normalization import batch_norm_train
from burnish.ops.sequences.attention import scaled_dot_product_attention
from burnish.optim.core.rounded import Rounded
from burnish.plan.cuda.stepping.attended import attention
from burnish.plan.cuda.stepping.deferred import Deferred
from burnish.plan.cuda.stepping.mixed import WHOLE, Mixed
from burnish.plan.cuda.stepping.normalized import Normalized, Twins, normalization
from burnish.plan.cuda.stepping.running import Running, later
from burnish.plan.cuda.stepping.scaled import scaled_backward
from burnish.plan.cuda.stepping.summed import Summed, row_normalized, summed
from burnish.tensor import Tensor


class Following(Dependencies):
    """Where a thread's calls go while a step is looked at.

    for_graph: the calls are those of a graph: what no graph can have raises
    CaptureError. Else it is noted in `why`, and the step continues. mixed: what rounds
    the arguments of products to half precision, if anything does. scale: what losses
    are multiplied by, if anything.
    """

    follows = is_step = False

    def __init__(
        self,
        for_graph: bool,
        mixed: Mixed | None = None,
        scale: Scale | None = None,
    ):
        super().__init__()
        self.for_graph, self.why = for_graph, ""
        self._mixed, self._scale = mixed, scale
        self._is_norm = False  # whether a module of batch norm runs
        self._changed: set[int] = set()  # where parameters' values were before
        self.uses_old_values = False
        """Whether values that parameters had are used after they got others."""
        self.assigned: dict[int, tuple[Stored, Any]] = {}
        self.states: list[tuple[Callable[[], Any], str, Any, Any]] = []
        self.rates: list[tuple[Any, Live]] = []
        self._made: list[weakref.ref[Any]] = []
        self._walked: set[int] = set()
        self._own: dict[int, weakref.ref[Any]] = {}
        self._twins, self._running = Twins(), Running()

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """In the `with` block this thread's calls are looked at."""
        recording.tape = self
        try:
            yield
        finally:
            recording.tape = None

    @contextlib.contextmanager
    def away(self) -> Iterator[None]:
        """In the `with` block this thread's calls are not looked at."""
        before, recording.tape = recording.tape, None
        try:
            yield
        finally:
            recording.tape = before

    # --- what the step does ---

    def call(
        self,
        function: Any,
        args: tuple[Any, ...],
        options: dict[str, Any],
        always: bool = False,
    ) -> Any:
        """`function(*args, **options)`, with its reads noted."""
        for each in leaves((args, options)):
            if isinstance(each, Stored):
                self.read(each)
            elif type(each) is Tensor:
                self._look(each)
                if not self._is_own(each):
                    self.note_array(each)
            elif type(each) is Summed:
                mapped(each.parts, self._look)
        args, options = mapped((args, options), _plain)
        args = self._twins.given(args)
        for each in args:
            if type(each) is Normalized and (joined := each.joined(function, args)):
                return self._joined(*joined)
        if (sum_ := self._summed(function, args)) is not None:
            return sum_
        if (moved := later(function, args, options, self.away)) is not None:
            self._note(moved)
            return moved
        with self.away():
            made: Any = None
            if self._mixed is not None:
                args, options = self._mixed.given(function, args, options)
                made = self._row_normalized(self._mixed, function, args, options)
            if function is batch_norm_train and self._is_norm:
                made = normalization(self.away, *args, **options)
            elif function is scaled_dot_product_attention:
                made = attention(*args, **options)
                if self._mixed is not None:
                    args = self._mixed.halves(args)
            if made is None:
                made = function(*args, **options)
        for each in leaves(made):
            if isinstance(each, Variable):
                self._note(each)
        return made

    def _joined(self, made: Variable, twin: Variable | None = None) -> Variable:
        """A norm's result, with its twin kept for another call."""
        self._note(made)
        is_half = self._mixed is None or made.dtype == self._mixed.dtype
        if twin is not None and is_half:  # others are rounded once for all calls
            self._twins.keep(made, twin)
        return made

    def _summed(self, function: Any, args: tuple[Any, ...]) -> Variable | None:
        """A sum that waits for a norm; None for any other call."""
        if self._mixed is None:
            return None
        made = summed(function, args, self._mixed.dtype, self.away)
        if made is not None:
            self._note(made)
        return made

    def _row_normalized(
        self, mixed: Mixed, function: Any, args: tuple[Any, ...], options: Any
    ) -> Variable | None:
        """A norm's result, with its copies in half precision; None for other calls."""
        found = row_normalized(function, args, options, mixed.dtype)
        if found is None:
            return None
        y, copies = found
        mixed.keep(y, y.data, copies)
        return y

    def keeps(self, function: Any) -> bool:
        """Whether a function that is made of operators is one call.

        All are, but for those whose operators compute in different precisions.
        """
        return self._mixed is None or function in WHOLE

    def enter(
        self, module: Module, args: tuple[Any, ...], options: dict[str, Any]
    ) -> Any:
        """The module's result."""
        outer = self._is_norm
        self._is_norm = type(module).forward is _BATCH_NORM
        try:
            return forwarded(module, args, options)
        finally:
            self._is_norm = outer

    def read(self, stored: Any) -> None:
        """A parameter or buffer is read; with one that is made of others, its parts."""
        if isinstance(stored, Reparameterized):
            self.note_formula(stored)
            for _, part in stored.parts():
                self.read(part)
        if isinstance(stored, Stored):
            self.stored[id(stored)] = stored

    def assign(self, stored: Stored, value: Any, dtype: Any) -> None:
        """A parameter or buffer gets another value."""
        with self.away():
            if id(stored) not in self.assigned:
                self.assigned[id(stored)] = (stored, stored.held)
            self.stored[id(stored)] = stored
            if stored.learns:
                self._changed.add(_memory(stored.held))
            if not self._running.takes(stored, value, dtype):
                stored.assign(value, dtype)
            if self._mixed is not None:
                self._mixed.forget(stored)

    def settle(self) -> None:
        """Compute what the step has assigned and nobody has read."""
        with self.away():
            self._running.settle()

    def settled(self, stored: Stored) -> Any:
        """The array of a buffer that holds settings, which are to stay."""
        with self.away():
            return self.note_array(stored)

    def backward(self, output: Variable, gradient: Any, create_graph: bool) -> Any:
        """The gradients of what the step has computed."""
        pending = [output.node]
        while pending:
            node: Node | None = pending.pop()
            if node is not None and id(node) not in self._walked:
                self._walked.add(id(node))
                pending += [parent and parent[0] for parent in node.parents]
        if self._changed:  # of values that parameters have had
            self.uses_old_values = True
        with self.away():
            mixed, scale = self._mixed, self._scale
            if mixed is None:
                found = backward(output, gradient, create_graph=create_graph)
            elif scale is None or create_graph:
                if scale is not None:
                    self.refuse("fp16 has no gradients of gradients")
                found = backward(output, gradient, create_graph=create_graph)
                mixed.widened(found)
            else:
                repeats = not self.for_graph
                found = scaled_backward(output, gradient, mixed, scale, repeats)
        self._made.append(weakref.ref(found))
        return found

    def rate(self, schedule: Any) -> Any:
        """A schedule's next rate, which each launch asks for anew."""
        with self.away():
            value = schedule.step()
        if type(value) is not float and getattr(value, "groups", None):
            self.refuse("groups of parameters have rates of their own")
            return value
        self.rates.append((schedule, Live(value)))
        return self.rates[-1][1]

    def remembered(self, states: Callable[[], Any], path: str, state: Any) -> None:
        """An optimizer's kernel has taken a step with the state of a parameter.

        states: gives what the optimizer remembers, by path.
        """
        self.states.append((states, path, states().get(path), state))

    def way(self, tensor: Variable) -> bool:
        """The truth of a tensor for an `if`, as without a capture."""
        with self.away():
            return bool(tensor)

    def rounds(self, tensor: Variable) -> int | None:
        """None: `range` reads a tensor as without a capture."""
        return None

    def refuse(self, why: str, what_to_do: str = "") -> None:
        """No graph can have this step: raises CaptureError where one is made."""
        message = refusal(why) + what_to_do
        if self.for_graph:
            raise CaptureError(message)
        self.why = self.why or message

    # --- results ---

    def result(self, item: Any) -> Any:
        """A result, as it is; notes what no graph can give."""
        if isinstance(item, Live):
            return float(item)
        if type(item) is Summed:
            mapped(item.parts, self._look)
        if isinstance(item, Deferred):
            item = item.whole()
        elif type(item) is Rounded:
            item = item.wrap(item.data, item.device)
        if type(item) is Tensor:
            self._look(item)
        if not isinstance(item, Variable):
            is_plain = isinstance(item, type) or not hasattr(item, "__dict__")
            if not is_plain or hasattr(item, "dtype"):
                self.refuse(f"its results hold a {type(item).__name__}, no tensor")
            return item
        if type(item) is not Tensor:
            self.refuse(f"its results hold a {type(item).__name__}; return a copy")
        elif item.node is not None and id(item.node) not in self._walked:
            self.refuse(
                "gradients of its result are for outside; call backward() in it"
            )
        if self._mixed is not None and isinstance(item, Variable):
            with self.away():
                return self._mixed.single(item.wrap(item.data, item.device))
        return item

    def look_at_assigned(self) -> None:
        """Note a parameter or buffer that has what another one had before."""
        for stored, _ in self.assigned.values():
            if _memory(stored.held) in self._changed:
                self.uses_old_values = True

    def leftovers(self, results: Any) -> None:
        """Note whether a tensor that is not a result is still referenced."""
        given = {id(each) for each in leaves(results)}
        for made in self._made:
            kept = made()
            if kept is not None and id(kept) not in given:
                kind = type(kept).__name__
                self.refuse(f"a {kind} is kept that is no result; return it")
                return

    def undo(self) -> None:
        """Let parameters, states and schedules be as before the step."""
        for stored, before in reversed([*self.assigned.values()]):
            stored.assign(before)
        for states, path, before, _ in reversed(self.states):
            if before is None:
                states().pop(path, None)
            else:
                states()[path] = before
        for schedule, _ in self.rates:
            schedule.count -= 1

    def _look(self, tensor: Variable) -> None:
        """Note a tensor that shares memory with what a parameter has had."""
        if self._changed and _memory(tensor.data) in self._changed:
            self.uses_old_values = True

    def _note(self, made: Variable) -> None:
        if not isinstance(made, Stored):
            self._made.append(weakref.ref(made))
            self._own[id(made)] = self._made[-1]

    def _is_own(self, tensor: Variable) -> bool:
        """Whether the step itself has made a tensor."""
        made = self._own.get(id(tensor))
        return made is not None and made() is tensor


_BATCH_NORM: Any = BatchNorm1d.forward


def _memory(array: Any) -> Any:
    """Where the allocation is that an array of a GPU is in; None for others."""
    mem = getattr(getattr(array, "data", None), "mem", None)
    return getattr(mem, "ptr", None)


def _plain(item: Any) -> Any:
    return float(item) if type(item) is Live else item
