"""Data of the page: a tree of boxes, one for each module."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Flow:
    """A tensor that goes into a module or comes out of it: `x: float32[batch, 8]`."""

    name: str
    dtype: str
    shape: tuple[int | str, ...]

    def __str__(self) -> str:
        kind = f"{self.dtype}[{', '.join(map(str, self.shape))}]"
        return f"{self.name}: {kind}" if self.name else kind


@dataclass(frozen=True)
class Histogram:
    """How values are spread: `counts` of equal steps from `low` to `high`.

    values: how many were looked at, all of a small tensor. odd: those that are not
    finite, which count nowhere else.
    """

    low: float
    high: float
    mean: float
    deviation: float
    zeros: int
    odd: int
    values: int
    counts: tuple[int, ...]


@dataclass(frozen=True)
class Held:
    """A parameter or buffer that a module owns.

    shares: the path of an earlier tensor that it is the same object as.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    bytes: int
    trained: bool
    shares: str | None = None
    histogram: Histogram | None = None


@dataclass(frozen=True)
class Step:
    """A step of a module's forward: an operator, or a module by its path."""

    operator: str
    module: str
    output: str  #: of an operator


@dataclass(frozen=True)
class Span:
    """Lines of the source, the first is 1."""

    first: int
    last: int


@dataclass
class Box:
    """One module, or a list of modules.

    about: the text in its brackets when it is printed. lines: its class and where it
    is made and called. same_as: the path of an earlier box of the same
    module. calls, macs and result_bytes: of one pass, with the modules in it; steps: of
    its first call. reasons: what `generate --explain` says of it.
    """

    path: str
    name: str
    kind: str
    about: str = ""
    same_as: str | None = None
    lines: tuple[Span, ...] = ()
    tensors: list[Held] = field(default_factory=list)
    parameters: int = 0
    bytes: int = 0  #: of parameters and buffers
    calls: int = 0
    inputs: tuple[Flow, ...] = ()
    outputs: tuple[Flow, ...] = ()
    macs: int = 0
    result_bytes: int = 0
    steps: tuple[Step, ...] = ()
    more_steps: int = 0  #: left out of `steps`
    reasons: list[str] = field(default_factory=list)
    children: list[Box] = field(default_factory=list)

    def walk(self) -> Iterator[Box]:
        """The box and all below it, outer ones first."""
        yield self
        for child in self.children:
            yield from child.walk()


@dataclass(frozen=True)
class Operator:
    """Calls and cost of one operator of the runtime in one pass."""

    name: str
    calls: int
    macs: int
    result_bytes: int


@dataclass(frozen=True)
class Look:
    """The whole page; `--json` prints it.

    files: what it was read from. ran: the inputs of the pass that shapes and costs are
    of, "" where none could be made; sizes: what the names in shapes were in it. notes:
    what is not there, and why.
    """

    model: str
    files: tuple[Path, ...]
    title: str
    source: str
    root: Box
    operators: tuple[Operator, ...]
    explained: tuple[str, ...]
    ran: str
    sizes: dict[str, int]
    notes: tuple[str, ...]

    @property
    def boxes(self) -> dict[str, Box]:
        """By path."""
        return {box.path: box for box in self.root.walk()}
