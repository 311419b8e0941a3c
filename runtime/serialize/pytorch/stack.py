"""The stack, the marks and the memo of a pickle machine."""

from __future__ import annotations

import sys
from typing import Any

from burnish._files.budget import Budget
from burnish.serialize.pytorch.stream import Stream

SLOT, _MARK = 16, 48  # bytes that each of them takes


class Stack:
    """The stack of a pickle's opcodes; every item put there is counted."""

    def __init__(self, stream: Stream, budget: Budget):
        self.stream = stream
        self.budget = budget
        self.clear()

    def clear(self) -> None:
        """Begin another pickle."""
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: list[Any] = []
        self.most = 0  # how many values were ever on the stack

    def pop(self) -> Any:
        floor = self.marks[-1] if self.marks else 0
        if len(self.stack) <= floor:
            raise self.stream.damage("expected a value on the stack, got none")
        return self.stack.pop()

    def top(self) -> Any:
        value = self.pop()
        self.stack.append(value)
        return value

    def push(self, value: Any) -> None:
        """Put a value that was just made on the stack."""
        stack, taken = self.stack, sys.getsizeof(value)
        stack.append(value)
        if len(stack) > self.most:
            self.most += 1
            taken += SLOT
        self.budget.take(taken)

    def push_again(self, value: Any) -> None:
        """Put a value on the stack that is held elsewhere too."""
        self.stack.append(value)
        if len(self.stack) > self.most:
            self.most += 1
            self.budget.take(SLOT)

    def pop_mark(self) -> list[Any]:
        if not self.marks:
            raise self.stream.damage("expected a mark on the stack, got none")
        start = self.marks.pop()
        items = self.stack[start:]
        del self.stack[start:]
        return items

    def mark(self) -> None:
        self.budget.take(_MARK)
        self.marks.append(len(self.stack))

    def drop(self) -> None:
        if self.marks and self.marks[-1] == len(self.stack):
            self.marks.pop()
        else:
            self.pop()

    def twice(self) -> None:
        self.push_again(self.top())

    def put(self, index: int) -> None:
        value = self.top()
        if not 0 <= index <= len(self.stream.data):
            raise self.stream.damage(f"expected a place in the memo, got {index}")
        if index >= len(self.memo):
            self.budget.take(SLOT * (index + 1 - len(self.memo)))
            self.memo.extend([_NOTHING] * (index + 1 - len(self.memo)))
        self.memo[index] = value

    def get(self, index: int) -> None:
        value = self.memo[index] if 0 <= index < len(self.memo) else _NOTHING
        if value is _NOTHING:
            raise self.stream.damage(f"expected something in memo place {index}")
        self.push_again(value)

    def decimal(self) -> int:
        line = self.stream.line()
        if not line.isdigit() or len(line) > 18:
            raise self.stream.damage(f"expected a place in the memo, got {line[:20]!r}")
        return int(line)


_NOTHING = object()
