"""Name values: one rolling variable, roles for values that live beside it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from itertools import chain, repeat
from operator import contains

from burnish.codegen.arrange.analysis.shape_contracts import symbol
from burnish.codegen.names.authorship import is_hint
from burnish.codegen.names.identifier import Identifier, free
from burnish.codegen.ops import role_names
from burnish.codegen.program import (
    Assign,
    Attribute,
    Block,
    Call,
    Expression,
    If,
    Literal,
    Loop,
    Method,
    ModuleCall,
    SelfAttr,
    Statement,
    Subscript,
    Value,
    defined,
    last_uses,
    reads,
    values_in,
)

_LETTERS = ("x", "y", "z", "u", "v", "w")
_PLAIN = frozenset(
    {"conv", "bn", "norm", "relu", "act", "fc", "linear", "dense", "layer", "dropout"}
    | {"pool", "downsample", "self"}
)
#: Angles are named by `roles`, and only where rotary positions read them.
_ROLES = {k: word for k, word in role_names().items() if word not in ("cos", "sin")}


def named(
    inputs: list[Value],
    block: Block,
    keep_inputs: bool = False,
    roles: Mapping[Value, str] | None = None,
    types: Mapping[Value, str] | None = None,
) -> dict[Value, str]:
    """A name for every input and every value of a block.

    keep_inputs: inputs have the file's names, and no value takes over such a name.
    roles: names of values whose place in the model says what they are. types: of
    values, where a name is to have one type throughout.
    """
    namer, taken = _Namer(roles or {}, types or {}), set[str]()
    for value in inputs:
        namer.input(value, keep_inputs, len(inputs), taken)
        taken.add(namer.names[value])
    namer.block(block, frozenset())
    return namer.names


def input_names(inputs: list[Value]) -> dict[Value, str]:
    """The parameters of the model's `forward`: the file's names."""
    return named(inputs, Block([], []), keep_inputs=True)


class _Namer:
    def __init__(self, roles: Mapping[Value, str], types: Mapping[Value, str]) -> None:
        self.roles = roles
        self.types = types
        self.kept = set(roles.values())
        self.names: dict[Value, str] = {}
        self.by_type: dict[str, set[str]] = {}
        self.fixed: set[str] = set()

    def input(self, value: Value, keep: bool, count: int, taken: set[str]) -> None:
        """Name a parameter; `taken` are the names of those before it."""
        if keep:
            name: str = free(Identifier.variable(value.hint), taken)
            self.fixed.add(name)
        elif is_hint(value.hint) and (count > 1 or value.host):
            name = free(Identifier.variable(value.hint), taken)
            self.fixed.add(name)
        elif value.host:
            name = _first_free(["size"], taken)
        elif value in self.roles:
            name = _first_free([self.roles[value]], taken)
            self.kept.add(name)
        elif value.dtype == "bool" and taken:
            name = _first_free(["mask"], taken)
        else:
            name = _first_free(_LETTERS, taken)
        self._give(value, name)

    # --- blocks ---

    def block(self, block: Block, outer: frozenset[str]) -> None:
        """Name the block's definitions; names in `outer` are taken."""
        last = last_uses(block)
        own = {t for s in block.statements for t in s.targets}
        held = _Held(last)
        held.add((v for v in last if v in self.names), self.names)
        for place, statement in enumerate(block.statements):
            live = _Either(held.after(place), outer)
            dying = [
                v
                for v in _operands(statement)
                if last.get(v, -1) <= place
                and v in self.names
                and (v in own or not outer)
                and self.names[v] not in live
            ]
            if isinstance(statement, Assign):
                if len(statement.targets) > 1:
                    unread = [t for t in statement.targets if t not in last]
                    for target in unread:
                        self._give(target, "_")
                self._assign(statement, live, dying)
            elif isinstance(statement, If):
                self._if(statement, live)
            elif isinstance(statement, Loop):
                self._loop(statement, live, dying)
            held.add(statement.targets, self.names)

    def _assign(self, statement: Assign, live: _Either, dying: list[Value]) -> None:
        own = set[str]()
        for target in statement.targets:
            if target in self.names:
                own.add(self.names[target])
                continue
            single = len(statement.targets) == 1
            others = self._of_other_types(target)
            free_now = [v for v in dying if self.names[v] not in others]
            taken = _Either(live, own, others, self.fixed)
            name = self._name(target, statement.expression, taken, free_now, single)
            self._give(target, name)
            own.add(name)

    def _of_other_types(self, target: Value) -> _Either:
        """The names of values whose type is not this one's."""
        kind = self.types.get(target)
        if kind is None:
            return _Either()
        others = (names for own, names in self.by_type.items() if own != kind)
        return _Either(*others)

    def _give(self, value: Value, name: str) -> None:
        self.names[value] = name
        if (kind := self.types.get(value)) is not None:
            self.by_type.setdefault(kind, set()).add(name)

    def _name(
        self,
        target: Value,
        expression: Expression,
        taken: _Either,
        dying: list[Value],
        rolls: bool,
    ) -> str:
        if target.host:
            wanted = size_name(expression) or _hinted(target) or "size"
            return free(Identifier.variable(wanted), taken)
        role = self.roles.get(target)
        if role is not None and role not in taken:
            return role
        rolling = [self.names[v] for v in dying if not v.host]
        rolling = [n for n in rolling if n not in self.fixed and n not in self.kept]
        if rolls and rolling:
            return "x" if "x" in rolling else rolling[0]
        if "x" not in taken and rolls:
            return "x"
        wanted = _hinted(target) or _role(expression) or ""
        if wanted:
            return free(Identifier.variable(wanted), taken)
        return _first_free(_LETTERS, taken)

    # --- control flow ---

    def _inside(self, statement: Statement) -> frozenset[str]:
        """The names of outer values that a statement's blocks read."""
        return frozenset(
            self.names[value]
            for block in statement.blocks()
            for value in reads(block)
            if value in self.names
        )

    def _if(self, statement: If, live: _Either) -> None:
        inside = self._inside(statement)
        taken = {*live, *inside, *self.fixed}
        for target in statement.targets:
            given = self.names.get(target)  # as what a block around it results in
            if given is not None and given not in inside:
                taken.add(given)
                continue
            wanted = _hinted(target)
            name = (
                free(Identifier.variable(wanted), taken)
                if wanted
                else self._handed_on(statement, target, live)
                or _first_free(_LETTERS, taken)
            )
            self._give(target, name)
            taken.add(name)
        for block in statement.blocks():
            own = set(defined(block))
            for result, target in zip(block.results, statement.targets, strict=True):
                once = block.results.count(result) == 1
                if isinstance(result, Value) and result in own and once:
                    self._give(result, self.names.get(result, self.names[target]))
            self.block(block, frozenset(taken))

    def _handed_on(self, statement: If, target: Value, live: _Either) -> str | None:
        """The name of the value that a branch returns unchanged, where it is free."""
        place = statement.targets.index(target)
        ends = [block.results[place] for block in statement.blocks()]
        for end in ends:
            if not isinstance(end, Value) or end not in self.names:
                continue
            name = self.names[end]
            if name in live or name in self.fixed or len(statement.targets) > 1:
                continue
            if all(_is_done(end, block) for block in statement.blocks()):
                return name
        return None

    def _loop(self, statement: Loop, live: _Either, dying: list[Value]) -> None:
        beside = dict(statement.beside)
        heads = (
            statement.items,
            *beside.values(),
            statement.count,
            statement.condition,
        )
        read = {
            self.names[value]
            for value in values_in(head for head in heads if head is not None)
            if value in self.names
        }  # the head is evaluated when the carried values have their names already
        inside = self._inside(statement) | self.fixed
        taken = {*live, *inside, *read}
        reusable: dict[Expression, str] = {v: self.names[v] for v in dying}
        rounds = zip(
            statement.carried, statement.initial, statement.targets, strict=False
        )
        for value, start, target in rounds:
            forced = self.names.get(target)
            if forced is not None and forced not in inside | read:
                name = forced  # the loop outside carries this name
            elif start in reusable and reusable[start] not in inside:
                name = reusable[start]
            else:
                own = Identifier.variable(_hinted(value) or _LETTERS[0])
                letters = own in taken or own in _LETTERS
                name = _first_free(_LETTERS, taken) if letters else own
            self._give(value, name)
            taken.add(name)
            inside |= {name}
        given = [(statement.index, "i"), *((item, "i") for item in beside)]
        for extra, wanted in [*given, (statement.going, "going")]:
            if extra is not None:
                name = free(Identifier.variable(_hinted(extra) or wanted), taken)
                self._give(extra, name)
                taken.add(name)
        targets = list(statement.targets)
        for target, carried in zip(targets, statement.carried, strict=False):
            self._give(target, self.names[carried])
        for target in targets[len(statement.carried) :]:
            name = free(Identifier.variable(_hinted(target) or "collected"), taken)
            self._give(target, name)
            taken.add(name)
        self._force_results(statement)
        self.block(statement.body, frozenset(taken))

    def _force_results(self, statement: Loop) -> None:
        """A carried value's next one takes its name where the old one is done with."""
        body, last = statement.body, last_uses(statement.body)
        made = {t: i for i, s in enumerate(body.statements) for t in s.targets}
        offset = 1 if statement.going is not None else 0
        results = body.results[offset : offset + len(statement.carried)]
        for carried, result in zip(statement.carried, results, strict=True):
            if not isinstance(result, Value) or result not in made:
                continue
            if results.count(result) == 1 and last.get(carried, -1) <= made[result]:
                self._give(result, self.names.get(result, self.names[carried]))


class _Either:
    """The union of several sets of names, without a copy; none that is empty by now."""

    def __init__(self, *sets: Collection[str]):
        self.sets: list[Collection[str]] = []
        for names in sets:
            if isinstance(names, _Either):
                self.sets += names.sets
            elif names:
                self.sets.append(names)

    def __contains__(self, name: object) -> bool:
        return any(map(contains, self.sets, repeat(name)))

    def __iter__(self) -> Iterator[str]:
        return chain.from_iterable(self.sets)

    def __len__(self) -> int:
        return sum(map(len, self.sets))


class _Held:
    """The names of live values within a block."""

    def __init__(self, last: Mapping[Value, int]):
        self.last = last
        self.names: Counter[str] = Counter()
        self.ends: dict[int, list[str]] = defaultdict(list)
        self.known: dict[Value, str] = {}

    def add(self, values: Iterable[Value], names: Mapping[Value, str]) -> None:
        for value in values:
            if value in self.last and self.known.get(value) != names[value]:
                self.known[value] = names[value]
                self.names[names[value]] += 1
                self.ends[self.last[value]].append(names[value])

    def after(self, place: int) -> Collection[str]:
        """Liveness of names: those read after a position; queried in order."""
        for name in self.ends.pop(place, ()):
            self.names[name] -= 1
            if not self.names[name]:
                del self.names[name]
        return self.names


def _is_done(value: Value, block: Block) -> bool:
    """Whether a block reads a value no more once its one result is there."""
    made = {t: i for i, s in enumerate(block.statements) for t in s.targets}
    result = block.results[0]
    if not isinstance(result, Value) or result not in made:
        return True
    read = [i for i, s in enumerate(block.statements) if value in set(reads(s))]
    return not read or read[-1] <= made[result]


def _first_free(names: Iterable[str], taken: Container[str]) -> str:
    names = list(names)
    for name in names:
        if name not in taken:
            return name
    return free(Identifier(names[0]), taken)


def _operands(statement: Statement) -> list[Value]:
    """The operands of a statement, without tensors that it reads only the shape of."""
    found: dict[Value, None] = {}

    def look(expression: Expression) -> None:
        if isinstance(expression, Attribute):
            return
        if isinstance(expression, Value):
            found[expression] = None
        for child in expression.children():
            look(child)

    for expression in statement.expressions():
        look(expression)
    return list(found)


def _hinted(value: Value) -> str | None:
    return value.hint if is_hint(value.hint) else None


def _role(expression: Expression) -> str | None:
    """A name by what computes the value: the module's, or the function's result."""
    match expression:
        case ModuleCall(target=SelfAttr(path=(*_, int()))):
            return None  # "layers" is no name for what one of them gives
        case ModuleCall(target=SelfAttr(path=path)):
            last = next((p for p in reversed(path) if isinstance(p, str)), "")
            return last if last.isalpha() and last not in _PLAIN else None
        case Call(function=function):
            return _ROLES.get(function)
        case Method(target=target):
            return _role(target)
    return None


_AXES = {
    2: ("batch",),
    3: ("batch", "time"),
    4: ("batch", "channels", "height", "width"),
    5: ("batch", "channels", "depth", "height", "width"),
}
"""The usual names of a tensor's axes, by their number."""


def size_name(expression: Expression) -> str | None:
    """The name of `x.shape[i]`: the file's, where it can be written, or the axis's."""
    size = symbol(expression)
    if size and size.isidentifier() and is_hint(size):
        return size
    match expression:
        case Subscript(
            target=Attribute(target=Value() as of, name="shape"),
            keys=(Literal(value=int() as axis),),
        ):
            roles = _AXES.get(of.rank or 0, ())
            return roles[axis] if 0 <= axis < len(roles) else None
    return None
