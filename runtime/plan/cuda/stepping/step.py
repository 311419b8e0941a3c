"""StepPlan: a step of training as one CUDA graph.

Its first call runs eagerly; what it reads, assigns and draws is noted. The second is
captured: gradients, optimizers and running statistics too. Parameters and buffers that
it assigns have a `Home`, which the graph writes to. What Python works out for each
step, rates and the keys of random numbers, the host uploads before each launch.
"""

from __future__ import annotations

import gc
import operator
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from burnish import rng
from burnish._engine.pytree import leaves, mapped
from burnish.autodiff import Variable
from burnish.backend.cuda.elementwise import skips
from burnish.backend.cuda.elementwise.casts import copy_all
from burnish.backend.cuda.elementwise.scaling import Scale
from burnish.backend.cuda.graphs import graphs, live
from burnish.backend.cuda.graphs.live import Live
from burnish.capture import CaptureError
from burnish.capture.reach import Reach
from burnish.capture.watch import Before, Watch, called, check_items, held
from burnish.nn.core.param import Stored, version
from burnish.plan.arguments import (
    are_read,
    as_live,
    cells,
    give_back,
    numbers_in,
    paired,
)
from burnish.plan.cuda.plan import copied
from burnish.plan.cuda.stepping.following import Following
from burnish.plan.cuda.stepping.home import Home
from burnish.plan.cuda.stepping.mixed import Mixed
from burnish.plan.cuda.units.half import half_dtype


class StepPlan:
    """The CUDA graph of a training function's calls, for arguments of one kind.

    why: why calls run eagerly; "" where they do not. homes: of all plans of the
    function, by the `id` of what they are for.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        room: graphs.Room,
        homes: dict[int, Home],
        by_value: bool,
    ):
        self._function, self._room, self._homes = function, room, homes
        reach = Reach(function)
        self._modules, self._containers = reach.modules, reach.containers
        self.by_value = by_value  # whether numbers of the call are part of it
        self.why = ""
        self.reads_numbers = by_value
        self._is_noted = self._uses_old_values = False
        self._assigned: list[Stored] = []
        self._rounds: list[tuple[Stored, bool]] = []  # to half precision, in each step
        self._changed: list[Home] = []
        self._graph: Any = None

    @property
    def summary(self) -> str:
        """Its parts, in words."""
        if self._graph is None:
            return "one eager call; the next one is captured"
        size = sum(home.array.nbytes for home in self._changed)
        return (
            f"one CUDA graph, {graphs.launches(self._graph)} launches, "
            f"{self._room.precision}; {len(self._changed)} parameters and buffers, "
            f"{size / 1e6:.2f} MB, that it changes"
        )

    def __call__(self, args: Any, options: Any) -> Any:
        """The function's results; its effects happen as in a plain call."""
        if not self._is_noted:
            return self._first(args, options)
        items = leaves((args, options))
        given = [item for item in items if isinstance(item, Variable)]
        numbers = numbers_in(items)
        try:
            if not (self._is_current() and self._counted(numbers)):
                self._capture(args, options, given)
        except CaptureError as error:
            if self._is_noted:
                self.why, self._graph = str(error), None
                return self._function(*args, **options)
            return self._first(args, options)
        return self._launched(given)

    # --- the first call ---

    def _precision(self) -> tuple[Mixed | None, Any]:
        """What rounds a step's products, and what scales its losses; None for none."""
        room = self._room
        dtype = half_dtype(room.precision)
        if dtype is not None and room.precision == "fp16" and room.scale is None:
            room.scale = Scale()
        return None if dtype is None else Mixed(dtype), room.scale

    def _first(self, args: Any, options: Any) -> Any:
        mixed, scale = self._precision()
        skips.settle()
        noted = Following(False, mixed, scale)
        before, counted = self._before(), cells(self._function)
        own_args, own_options = mapped((args, options), as_live)
        pairs = paired((args, options), (own_args, own_options))
        containers = held(self._function, own_args, own_options)
        with self._room.computing(), noted.running():
            try:
                made = self._function(*own_args, **own_options)
                noted.settle()
            finally:
                give_back(pairs)
        results = mapped(made, noted.result)
        del made
        gc.collect()
        noted.leftovers(results)
        for given in leaves((args, options)):
            if isinstance(given, Variable) and given.node is not None:
                noted.refuse("it is given a tensor that needs a gradient")
        if counted != cells(self._function):
            noted.refuse("it counts in a variable of its own; give it as an argument")
        try:
            before.check()
            check_items(containers)
        except CaptureError as error:
            noted.why = noted.why or str(error)
        self.reads_numbers |= are_read((own_args, own_options))
        self._read_of_schedules(noted)
        self.why = noted.why
        noted.look_at_assigned()
        self._assigned = [stored for stored, _ in noted.assigned.values()]
        self._uses_old_values = noted.uses_old_values
        self._rounds = [] if mixed is None else [*mixed.parameters.values()]
        self._is_noted = True
        return results

    def _before(self) -> Before:
        """What the function reaches, as it is before it runs."""
        return Before(self._modules, self._containers)

    def _read_of_schedules(self, noted: Following) -> None:
        if any(rate.is_read for _, rate in noted.rates):
            noted.refuse("a schedule's rate is computed with in Python")

    # --- the capture ---

    def _capture(self, args: Any, options: Any, given: list[Any]) -> None:
        """Make the graph; nothing of it is computed yet."""
        room, self._graph = self._room, None
        skips.settle()
        with room.building(), room.computing():
            numbers = live.Numbers()
            for stored in self._assigned:
                if id(stored) not in self._homes:
                    self._homes[id(stored)] = Home(stored, room)
            self._changed = [self._homes[id(stored)] for stored in self._assigned]
            for home in self._changed:
                home.take_up()
            with room.allocating():
                inputs = [copied(tensor) for tensor in given]
            rest = iter(inputs)
            own_args, own_options = mapped(
                (args, options),
                lambda item: (
                    next(rest) if isinstance(item, Variable) else as_live(item)
                ),
            )
            mixed, scale = self._precision()
            following, results = Following(True, mixed, scale), None

            if not self._uses_old_values:
                numbers.own = frozenset(h.array.data.ptr for h in self._changed)
            if scale is not None:
                numbers.skips = scale.skips

            def work() -> None:
                nonlocal results
                if scale is not None:
                    scale.begin()
                if mixed is not None:
                    with following.away():
                        mixed.prepare(self._rounds)
                made = called(self._function, own_args, own_options)
                results = mapped(made, following.result)
                following.settle()
                with following.away():
                    news = [(home.array, home.item.data) for home in self._changed]
                    copy_all([(y, x) for y, x in news if x is not y], scale)
                if scale is not None:
                    scale.end()

            state, before = rng.state(), self._before()
            try:
                self._settle(following)
                with following.running(), live.kept_in(numbers):
                    graph = room.captured(work)
                gc.collect()
                following.leftovers(results)
                self._check(following, (own_args, own_options))
                before.check()
            except Exception as error:  # the plain call says it, or can do it
                before.restore()
                following.undo()
                rng.restore(state)
                raise CaptureError(_message(error)) from None
        self._inputs = [tensor.data for tensor in inputs]
        self._numbers, self._results, self._graph = numbers, results, graph
        self._lives = [i for i in leaves((own_args, own_options)) if type(i) is Live]
        self._rates = following.rates
        self._states = [(held, path, now) for held, path, _, now in following.states]
        changed = {id(home.item) for home in self._changed}
        self._sources = [s for i, s in following.stored.items() if i not in changed]
        self._seen = [version(source) for source in self._sources]
        self._read = [array for _, array in following.seen.values()]  # by the graph
        self._watch = Watch(following, self._modules)  # type: ignore[arg-type]
        for home in self._changed:
            home.lend()

    def _settle(self, following: Following) -> None:
        """Let everything that is changed be read from its home."""
        for home in self._changed:
            following.assigned[id(home.item)] = (home.item, home.item.held)
            home.item.assign(home.array)

    def _check(self, following: Following, given: Any) -> None:
        if following.uses_old_values and not self._uses_old_values:
            raise CaptureError("it uses values that parameters had before a step")
        if len(following.assigned) != len(self._changed):
            raise CaptureError("it assigns other parameters or buffers than at first")
        if are_read(given) and not self.reads_numbers:
            raise CaptureError("it computes with a number that it did not use at first")
        self._read_of_schedules(following)

    # --- a launch ---

    def _is_current(self) -> bool:
        """Whether there is a graph, and what it reads is where it was.

        Raises CaptureError for a module that is not what it was.
        """
        if self._graph is None:
            return False
        if not all(map(operator.is_, map(version, self._sources), self._seen)):
            return False
        try:
            for held, path, now in self._states:
                _adopt(held(), path, now)
            self._watch.check()
        except CaptureError:
            self._graph, self._is_noted = None, False
            raise
        return True

    def _counted(self, numbers: tuple[float, ...]) -> bool:
        """Count the step, as Python does; False, and not, where it is another one.

        A rule may do other things in some steps than in others.
        """
        if self._room.scale is not None:
            self._room.scale.skips.look()
        for each, number in zip(self._lives, numbers, strict=True):
            each.value = number
        for schedule, rate in self._rates:
            rate.value = schedule.step()
        for _, _, state in self._states:
            state["step"] += 1
        if all(check() for check in self._numbers.checks):
            return True
        for schedule, _ in self._rates:
            schedule.count -= 1
        for _, _, state in self._states:
            state["step"] -= 1
        return False

    def _launched(self, given: list[Any]) -> Any:
        with self._room.running():
            for home in self._changed:
                home.take_up()
            for target, tensor in zip(self._inputs, given, strict=True):
                graphs.copied_into(target, tensor.data)
            self._numbers.upload()
            self._graph.launch()
            if self._room.scale is not None:
                states = [state for _, _, state in self._states]
                self._room.scale.skips.launched(states)
            for home in self._changed:
                home.lend()
            return mapped(self._results, _beside)


def _adopt(states: Any, path: str, now: Any) -> None:
    """Have a parameter's state be the one that the graph's launches count in.

    Another plan of the optimizer, and plain calls, leave a state of their own with the
    same arrays. Raises CaptureError for others.
    """
    held = states.get(path)
    if held is now:
        return
    skips.settle()
    arrays = [key for key in now if key != "step"]
    if held is None or any(held.get(key) is not now[key] for key in arrays):
        raise CaptureError("an optimizer's state is another one")
    now["step"], states[path] = held["step"], now


def _beside(item: Any) -> Any:
    """A tensor with the same values in memory of its own; anything else as it is."""
    return copied(item) if isinstance(item, Variable) else item


def _message(error: Exception) -> str:
    """The error that stopped a capture, and the operator's line that raised it."""
    message = (str(error) or repr(error)).splitlines()[0]
    frames = traceback.extract_tb(error.__traceback__)
    inside = [frame for frame in frames if "/ops/" in frame.filename]
    if not inside or isinstance(error, CaptureError):
        return message
    return f"{Path(inside[-1].filename).name}:{inside[-1].lineno}: {message}"
