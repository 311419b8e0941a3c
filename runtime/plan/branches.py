"""Branches: plans of a function that chooses what to do by computed values.

A tree: each node has the plan of what happens up to the next question (`if x > 0`,
`x.item()`), and a child for each answer that came so far. A run goes from its root to a
leaf. An answer that is new is captured along with all that follows from it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from burnish import rng
from burnish.capture import CaptureError, Program, record
from burnish.capture.branching import BranchTape, Question, Stretch, part
from burnish.capture.line import refs
from burnish.capture.step import changes
from burnish.capture.watch import Watch
from burnish.nn.core.param import Stored
from burnish.plan.plan import Plan
from burnish.plan.quick import Checked
from burnish.planned.space import Fault

_MOST_NODES = 256
"""Plans of one tree; a call that needs another one runs eagerly."""

_MOST_QUESTIONS = 64
"""Questions of one call; with more of them it runs eagerly."""

_MOST_ANSWERS, _MOST_FLOATS = 32, 4
"""Answers to one question that are planned; a float is seldom the same again."""

_GROWTHS = 3
"""Captures in one call: kernels may answer otherwise than the capture's operators."""

_OTHERWISE = "kernels answer otherwise than operators"


class Unknown(Exception):
    """A run has met an answer that nothing is planned for."""

    def __init__(self, answers: list[Any]):
        self.answers = answers


@dataclasses.dataclass(frozen=True, slots=True)
class Node:
    """What happens between two questions; never changed, since a run may be in it.

    inputs: the places of the values that `run` takes, in order. gives: the places of
    those that it returns, by place. needs: all places that this node and those below
    take from before. calls: names and places, to tell whether a capture is alike.
    plan: None where there are no calls. question: None at the end of a path, where
    `run` returns the results. children: by answer; a text says why what follows an
    answer runs eagerly.
    """

    program: Program
    plan: Plan | None
    run: Callable[[list[Any]], Any]
    inputs: list[int]
    gives: frozenset[int]
    needs: frozenset[int]
    calls: list[Any]
    question: Question | None
    children: dict[Any, Node | str]

    @property
    def below(self) -> Iterator[Node]:
        """This node and all that follow."""
        yield self
        for child in self.children.values():
            if isinstance(child, Node):
                yield from child.below


class Branches:
    """The plans of a function of tensors for arguments of one kind.

    function: called with the tensors `given` alone. plan_of: makes a program's plan.
    why: why calls run eagerly; "" where they do not. Raises CaptureError where the
    function asks for more than numbers, or does not ask at all.
    """

    by_value = False

    def __init__(
        self,
        function: Callable[..., Any],
        given: list[Any],
        plan_of: Callable[[Program], Plan],
    ):
        self._function, self._plan_of, self.why = function, plan_of, ""
        self._name = getattr(function, "__name__", type(function).__name__)
        self._lock = threading.RLock()
        self._runs = self._misses = 0
        self._root = self._grown(None, given, ())
        if self._root.question is None:
            raise CaptureError(f"{self._name} does not branch")
        self.program = self._root.program

    @property
    def nodes(self) -> list[Node]:
        """All nodes, each before its children."""
        return [*self._root.below]

    @property
    def steps(self) -> list[Any]:
        """The records of all plans."""
        return [step for node in self.nodes if node.plan for step in node.plan.steps]

    @property
    def eager(self) -> list[tuple[Any, str]]:
        """The nodes of plans that run eagerly, and why."""
        return [each for node in self.nodes if node.plan for each in node.plan.eager]

    @property
    def refused(self) -> list[str]:
        """Answers behind which calls run eagerly, and why."""
        return [
            f"{node.question.where}; where it is {answer}, the call runs eagerly: {why}"
            for node in self.nodes
            for answer, why in node.children.items()
            if node.question and isinstance(why, str)
        ]

    @property
    def summary(self) -> str:
        """Its size in words, and the questions."""
        asked = {n.question.where: None for n in self.nodes if n.question}
        paths = sum(node.question is None for node in self.nodes)
        head = f"{len(self.steps)} records in {len(self.nodes)} plans, {paths} paths"
        return "; ".join([head, *asked])

    def checked(self, given: Sequence[Any]) -> Any:
        """The results; raises CaptureError where a module is not what it was.

        Raises Fault where the plain call is due; nothing has been changed then.
        """
        if self.why:
            raise Fault(self.why)
        for _ in range(_GROWTHS):
            run = self._undone if self._has_effects else self._run
            try:
                made = run(given)
            except Unknown as unknown:
                self._grow(given, unknown.answers)
            else:
                self._runs += 1
                return made
        raise Fault(_OTHERWISE)

    __call__ = checked

    def way(self, given: Sequence[Any]) -> list[tuple[Node, list[Any]]]:
        """The nodes that such a call passes, and what each is given."""
        if self.why:
            raise Fault(self.why)
        for _ in range(_GROWTHS):
            passed: list[tuple[Node, list[Any]]] = []
            try:
                with undone(self._assigned):
                    self._run(given, passed)
            except Unknown as unknown:
                self._grow(given, unknown.answers)
            else:
                return passed
        raise Fault(_OTHERWISE)

    def _run(self, given: Sequence[Any], passed: list[Any] | None = None) -> Any:
        """The results; raises Unknown where no node follows.

        passed: is given the nodes on the way, and what each takes.
        """
        node, values = self._root, dict(enumerate(given))
        answers: list[Any] = []
        while True:
            taken = [values[place] for place in node.inputs]
            if passed is not None:
                passed.append((node, taken))
            made = node.run(taken)
            question = node.question
            if question is None:
                return made
            values.update(made)
            answers.append(question.answer(values[question.ref.place]))
            child = node.children.get(question.key(answers[-1]))
            if child is None:
                raise Unknown(answers)
            if isinstance(child, str):
                raise Fault(child)
            node = child

    def _undone(self, given: Sequence[Any]) -> Any:
        """As `_run`; where it raises, draws and buffers are as before it."""
        restore = _restorer(self._assigned)
        try:
            return self._run(given)
        except BaseException:
            restore()
            raise

    # --- how it grows ---

    def _grow(self, given: Sequence[Any], answers: list[Any]) -> None:
        """Add what follows from answers; raises Fault where that runs eagerly."""
        with self._lock:
            node = self._root
            for answer in answers[:-1]:
                assert node.question is not None
                child = node.children.get(node.question.key(answer))
                if not isinstance(child, Node):
                    raise Fault(child)
                node = child
            assert node.question is not None
            key = node.question.key(answers[-1])
            if key in node.children:
                return  # another thread was here
            if self._is_full(node, answers[-1]):
                self._misses += 1
                if self._misses > self._runs:
                    self.why = f"{node.question.where}, and is seldom the same"
                raise Fault(f"{node.question.where}, in too many ways")
            try:
                self._root = self._grown(self._root, given, answers)
            except CaptureError as error:
                node.children[key] = str(error)
                raise Fault(str(error)) from error

    def _is_full(self, node: Node, answer: Any) -> bool:
        most = _MOST_FLOATS if isinstance(answer, float) else _MOST_ANSWERS
        return len(node.children) >= most or len(self.nodes) >= _MOST_NODES

    def _grown(
        self, root: Node | None, given: Sequence[Any], answers: Sequence[Any]
    ) -> Node:
        """The tree with a capture of the function in it, under these answers."""
        tape = BranchTape(answers, _MOST_QUESTIONS)
        _, modules, results = record(tape, self._function, tuple(given), {})
        path = [*tape.path(results)]
        root = self._joined(root, path, tape, Watch(tape, modules))
        programs = [node.program for node in root.below]
        self._has_effects = any(program.has_effects for program in programs)
        self._assigned = assigned(programs)
        return root

    def _joined(
        self, old: Node | None, path: list[Stretch], tape: BranchTape, watch: Watch
    ) -> Node:
        """A node with a path's first stretch, and the rest of the path below it."""
        here, rest = path[0], path[1:]
        calls = [
            (
                getattr(call.function, "__name__", ""),
                [r.place for r in refs(call.results)],
            )
            for call in here.calls
        ]
        children: dict[Any, Node | str] = {}
        if old is not None:
            children = dict(old.children)
            if old.calls != calls or (old.question is None) != (not rest):
                raise CaptureError("its calls differ though its values do not")
        made = {ref.place: ref for call in here.calls for ref in refs(call.results)}
        wanted: set[int] = set()
        results = here.results
        if here.question is not None:
            key = here.question.key(here.answer)
            child = children.get(key)
            below = child if isinstance(child, Node) else None
            children[key] = self._joined(below, rest, tape, watch)
            nodes = [each for each in children.values() if isinstance(each, Node)]
            wanted = {here.question.ref.place}.union(*(each.needs for each in nodes))
            results = {place: made[place] for place in sorted(wanted & made.keys())}
        gives, needs = frozenset(wanted & made.keys()), frozenset(wanted - made.keys())
        if old is not None and gives <= old.gives:
            needs |= old.needs
            return dataclasses.replace(old, children=children, needs=needs)
        program, inputs = part(self._name, here.calls, results, tape, watch)
        plan = self._plan_of(program) if program.lines else None
        return Node(
            program,
            plan,
            Checked(plan) if plan is not None and plan.steps else _unplanned(program),
            inputs,
            gives,
            needs | frozenset(inputs),
            calls,
            here.question,
            children,
        )


def _unplanned(program: Program) -> Callable[[list[Any]], Any]:
    """Runs of a program no call of which has a kernel, or that has no calls.

    The modules were looked at before: without calls nothing else is read.
    """
    is_checked = not program.lines and program.looks is not None

    def run(given: list[Any]) -> Any:
        if not is_checked:
            program.check()
        values = program.values(given)
        for line in program.lines:
            line.run(values)
        return program.filled(values)

    return run


def assigned(programs: list[Program]) -> list[Stored]:
    """The parameters and buffers that programs give new values, each once."""
    items: list[Any] = [
        program.fixed[place]
        for program in programs
        for line in program.lines
        for place in changes(line.call)
    ]
    return [*{id(item): item for item in items}.values()]


@contextlib.contextmanager
def undone(items: list[Stored]) -> Iterator[None]:
    """At the end of the `with` block draws and these items are as before it."""
    restore = _restorer(items)
    try:
        yield
    finally:
        restore()


def _restorer(items: list[Stored]) -> Callable[[], None]:
    """A function that makes draws and these items what they are now."""
    state, before = rng.state(), [(item, item.held) for item in items]

    def restore() -> None:
        rng.restore(state)
        for item, held in before:
            item.assign(held)

    return restore
