"""A pickle machine that runs nothing.

It knows the opcodes of protocols 0 to 5. A name in the stream is looked up in a table
of constructors (`known.py`); whatever is not there becomes an `Inert` record, and the
caller decides whether those are wanted. Nothing is imported and nothing is called that
is not in the table.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sized
from typing import Any, cast

from burnish._files.budget import Budget
from burnish.errors import RecordError
from burnish.serialize.inert import Inert, Name
from burnish.serialize.lazy import LazyTensor
from burnish.serialize.pytorch.records import Constructor, Refused
from burnish.serialize.pytorch.stack import SLOT, Stack
from burnish.serialize.pytorch.stream import LITERALS, Stream, text

_ITEM, _MADE = 100, 160  # bytes that each of them takes
# A step is 256 values of a table looked at, or four kilobytes compared.
_COLLIDING, _COMPARED = 8, 12
_MISFIT = (
    TypeError,
    ValueError,
    LookupError,
    AttributeError,
    ArithmeticError,
)


class Machine(Stack):
    """Runs pickles of one file, one after another, from `stream`.

    find: the constructor of a qualified name, or None.
    persistent: the object of a persistent id: a storage of the file.
    """

    def __init__(
        self,
        stream: Stream,
        budget: Budget,
        find: Callable[[str], Any],
        persistent: Callable[[Any], Any] | None = None,
    ):
        super().__init__(stream, budget)
        self.find = find
        self.persistent = persistent
        self.unknown: dict[str, None] = {}

    def load(self) -> Any:
        """The object of the next pickle. Raises RecordError when it is damaged."""
        self.clear()
        stream = self.stream
        while True:
            code = stream.byte()
            if literal := LITERALS.get(code):
                self.push(literal(stream))
            elif code == _STOP:
                return self.pop()
            elif action := _ACTIONS.get(code):
                action(self)
            else:
                raise stream.damage(f"expected an opcode of pickle, got {code:#04x}")

    # --- containers ---

    def make_tuple(self, count: int) -> None:
        items = [self.pop() for _ in range(count)]
        self.push(tuple(reversed(items)))

    def make_dict(self) -> None:
        items, made = self.pop_mark(), dict[Any, Any]()
        self.fill(made, items)
        self.push_again(made)

    def make_frozen(self) -> None:
        items, made = self.pop_mark(), set[Any]()
        for item in items:
            made.add(self.key(item, made))
        self.push(frozenset(made))

    def append(self, items: list[Any]) -> None:
        into = self.top()
        self.budget.take(SLOT * len(items))
        if type(into) is list or type(into) is Inert:
            into.extend(items)
        elif type(into) is set:
            self.budget.take(_ITEM * len(items))
            for item in items:
                into.add(self.key(item, into))
        else:
            raise self.stream.damage(f"expected a list, got {_kind(into)}")

    def append_one(self) -> None:
        item = self.pop()
        self.append([item])

    def fill(self, into: Any, items: list[Any]) -> None:
        if len(items) % 2 or type(into) not in (dict, Inert):
            raise self.stream.damage(
                f"expected pairs for a dict, got {len(items)} values for {_kind(into)}"
            )
        self.budget.take(_ITEM * (len(items) // 2))
        held = into.items or () if type(into) is Inert else into
        for place in range(0, len(items), 2):
            into[self.key(items[place], held)] = items[place + 1]

    def set_items(self) -> None:
        items = self.pop_mark()
        self.fill(self.top(), items)

    def set_one(self) -> None:
        value, key = self.pop(), self.pop()
        self.fill(self.top(), [key, value])

    def key(self, value: Any, into: Sized = ()) -> Hashable:
        """A key for `into`: text, numbers, or a tuple of those.

        Numbers are bounded, and those that could be chosen so that all of them meet in
        the table are counted as if they did.
        """
        kind = type(value)
        if kind is int and 0 <= value < 2 * len(into) + 8:
            return cast(int, value)  # its own place in the table
        if kind in (str, bytes):
            if len(value) >> _COMPARED:
                self.budget.step(len(value) >> _COMPARED)
            return cast(Hashable, value)
        inside = value if kind is tuple else (value,)
        limit = 1 << 63 if inside is not value else 1 << 20
        self.budget.step(len(inside))
        for part in inside:
            number = type(part) in (int, float)
            if number and (part == part and abs(part) >= limit):
                raise self.stream.damage("expected a key, got a very large number")
            if not number and not isinstance(part, _KEYS):
                raise self.stream.damage(f"expected a key, got {_kind(part)}")
        if not _scattered(inside, len(into)):
            self.budget.step(len(into) >> _COLLIDING)
        return cast(Hashable, value)

    # --- names and the objects made of them ---

    def name(self, module: Any, name: Any) -> None:
        if not isinstance(module, str) or not isinstance(name, str):
            raise self.stream.damage("expected a name in two strings")
        full = f"{module}.{name}"
        found = self.find(full)
        if found is None:
            found = Name(full)
            self.budget.take(_MADE + len(full))
        self.push_again(found)

    def name_lines(self) -> None:
        lines = self.stream.line(), self.stream.line()
        self.name(*(text(line, self.stream) for line in lines))

    def name_of_stack(self) -> None:
        name, module = self.pop(), self.pop()
        self.name(module, name)

    def make(self, maker: Any, args: Any, options: Any = None) -> None:
        self.budget.take(_MADE)
        if type(args) is not tuple:
            raise self.stream.damage(f"expected a tuple, got {_kind(args)}")
        if isinstance(maker, Constructor) and not options:
            self.push(self.made(maker, args))
        elif isinstance(maker, Name | Inert | Constructor):
            self.unknown[maker.name] = None
            self.stack.append(Inert(maker.name, args, options or None))
        else:
            raise self.stream.damage(f"expected something to call, got {_kind(maker)}")

    def made(self, maker: Constructor, args: tuple[Any, ...]) -> Any:
        try:
            return maker.make(self, *args)
        except RecordError:
            raise
        except Refused as problem:
            raise self.stream.damage(f"{maker.name}: {problem}") from None
        except _MISFIT as error:
            raise self.stream.damage(
                f"{maker.name}: arguments that do not fit it: {_message(error)}"
            ) from None

    def reduce(self) -> None:
        args, maker = self.pop(), self.pop()
        self.make(maker, args)

    def reduce_with_options(self) -> None:
        options, args, maker = self.pop(), self.pop(), self.pop()
        if type(options) is not dict:
            raise self.stream.damage(f"expected a dict, got {_kind(options)}")
        self.make(maker, args, options)

    def instance(self) -> None:
        """INST: a name in two lines, the arguments above the mark."""
        args = self.pop_mark()
        self.name_lines()
        self.make(self.pop(), tuple(args))

    def instance_of_stack(self) -> None:
        """OBJ: the class and the arguments above the mark."""
        maker, *args = self.pop_mark() or [None]
        self.make(maker, tuple(args))

    def build(self) -> None:
        """Give the object below its state; attributes of containers are left out."""
        state, into = self.pop(), self.top()
        if isinstance(into, Inert):
            into.state = state
        elif hasattr(into, "build"):
            try:
                into.build(self, state)
            except RecordError:
                raise
            except Refused as problem:
                raise self.stream.damage(str(problem)) from None
            except _MISFIT as error:
                raise self.stream.damage(
                    f"{_kind(into)}: a state that does not fit: {_message(error)}"
                ) from None
        elif not isinstance(into, dict | list | set | LazyTensor):
            raise self.stream.damage(f"expected an object, got {_kind(into)}")

    def stored(self, key: Any) -> None:
        if self.persistent is None:
            raise self.stream.damage("expected no storage here, got one")
        self.budget.take(_MADE)
        try:
            self.stack.append(self.persistent(key))
        except RecordError:
            raise
        except Refused as problem:
            raise self.stream.damage(str(problem)) from None
        except _MISFIT:
            raise self.stream.damage("expected a storage, got another id") from None

    def refuse(self, what: str) -> None:
        raise self.stream.damage(f"expected plain data, got {what}")


def _scattered(key: tuple[Any, ...], count: int) -> bool:
    """Whether keys like this one cannot be chosen so that they meet in a table."""
    for part in key:
        if isinstance(part, Name | LazyTensor) or (type(part) in (str, bytes) and part):
            return True  # hashed by its place in memory, or with a secret
    (one,) = key if len(key) == 1 else (0.0,)
    return type(one) is int and 0 <= one < 2 * count + 8  # its own place


_KEYS = (str, bytes, bool, type(None), Inert, Name, Constructor, LazyTensor)
_STOP = ord(".")


def _kind(value: Any) -> str:
    return value.name[:80] if isinstance(value, Name) else type(value).__name__


def _message(error: Exception) -> str:
    """An error's message; its kind where it only names a value of the file."""
    text = error.args[0] if error.args and not isinstance(error, KeyError) else None
    return text[:200] if isinstance(text, str) else type(error).__name__


_ACTIONS: dict[int, Callable[[Machine], Any]] = {
    ord("("): Machine.mark,
    ord("0"): Machine.drop,
    ord("1"): Machine.pop_mark,
    ord("2"): Machine.twice,
    ord("P"): lambda m: m.stored(text(m.stream.line(), m.stream)),
    ord("Q"): lambda m: m.stored(m.pop()),
    ord("R"): Machine.reduce,
    ord("a"): Machine.append_one,
    ord("b"): Machine.build,
    ord("c"): Machine.name_lines,
    ord("d"): Machine.make_dict,
    ord("e"): lambda m: m.append(m.pop_mark()),
    ord("g"): lambda m: m.get(m.decimal()),
    ord("h"): lambda m: m.get(m.stream.byte()),
    ord("i"): Machine.instance,
    ord("j"): lambda m: m.get(m.stream.number(4)),
    ord("l"): lambda m: m.push(m.pop_mark()),
    ord("o"): Machine.instance_of_stack,
    ord("p"): lambda m: m.put(m.decimal()),
    ord("q"): lambda m: m.put(m.stream.byte()),
    ord("r"): lambda m: m.put(m.stream.number(4)),
    ord("s"): Machine.set_one,
    ord("t"): lambda m: m.push(tuple(m.pop_mark())),
    ord("u"): Machine.set_items,
    0x80: lambda m: m.stream.byte(),  # PROTO: every opcode is known in any
    0x81: Machine.reduce,  # NEWOBJ: the class is called all the same
    0x82: lambda m: m.refuse("an extension of copyreg"),
    0x83: lambda m: m.refuse("an extension of copyreg"),
    0x84: lambda m: m.refuse("an extension of copyreg"),
    0x85: lambda m: m.make_tuple(1),
    0x86: lambda m: m.make_tuple(2),
    0x87: lambda m: m.make_tuple(3),
    0x90: lambda m: m.append(m.pop_mark()),
    0x91: Machine.make_frozen,
    0x92: Machine.reduce_with_options,
    0x93: Machine.name_of_stack,
    0x94: lambda m: m.put(len(m.memo)),
    0x95: lambda m: m.stream.number(8),  # FRAME: a hint for buffering
    0x97: lambda m: m.refuse("a buffer outside of the pickle"),
    0x98: lambda m: m.refuse("a buffer outside of the pickle"),
}
