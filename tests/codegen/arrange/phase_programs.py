"""Rows of phases that change a program: its text before, and behind the phase."""

from __future__ import annotations

from burnish.codegen.names.authorship import SAYS_NOTHING


def line(count: int, scope: str) -> str:
    """Linear layers and tanh in turn, in scopes with their number."""
    weights = [
        f'weight w{n} "{scope.format(n)}.fc.weight": float32[4, 4]'
        for n in range(count)
    ]
    statements = [
        f"h{n}: float32[batch, 4] = nn.Linear(4, 4, bias=False, weight=w{n})(x{n})"
        f"  # {scope.format(n)}.fc\n"
        f"x{n + 1}: float32[batch, 4] = ops.tanh(h{n})  # {scope.format(n)}"
        for n in range(count)
    ]
    ends = ["input x0: float32[batch, 4]"], [f"return x{count}"]
    return "\n".join([*weights, *ends[0], *statements, *ends[1], OUTPUT])


def counted(count: int, path: str, flag: str) -> str:
    """Layers without scopes, and what the file says of their weights."""
    weights = [
        f'weight w{n} "{path.format(n)}": of s{n}(16, {flag}) float32[4, 4]'
        for n in range(count)
    ]
    statements = [
        f"x{n + 1}: float32[batch, 4] = nn.Linear(4, 4, bias=False, weight=w{n})(x{n})"
        for n in range(count)
    ]
    ends = ["input x0: float32[batch, 4]"], [f"return x{count}"]
    return "\n".join([*weights, *ends[0], *statements, *ends[1], OUTPUT])


OUTPUT = 'output "y": float32[batch, 4]'
JOINED = """
input x: float32[batch, 4]
t: float32[batch, 4] = ops.tanh(x)
a: float32[1, batch, 4] = x.unsqueeze(0)
b: float32[1, batch, 4] = t.unsqueeze({0})
unread: float32[batch, 4] = ops.exp(x)
y: float32[2, batch, 4] = ops.concat([a, b], axis=0)
return y
output "y": float32[2, batch, 4]
"""
CALLED = """
weight w "{0}.fc.weight": float32[4, 4]
weight v "{1}.fc.weight": float32[4, 4]
input x: float32[batch, 4]
h: float32[batch, 4] = nn.Linear(4, 4, bias=False, weight=w)(x)  # {0}.fc
t: float32[batch, 4] = ops.tanh(h)  # {0}
u: float32[batch, 4] = nn.Linear(4, 4, bias=False, weight={2})(t)  # {3}.fc
y: float32[batch, 4] = ops.tanh(u)  # {3}
return y
output "y": float32[batch, 4]
"""
READ_TWICE = """
weight a "snake.alpha": float32[4]
input x: float32[batch, 4]
h: float32[batch, 4] = (x * a)  # snake
t: float32[batch, 4] = ops.sin(h)  # snake
u: float32[batch, 4] = (t * a)  # snake{0}
y: float32[batch, 4] = {1}  # snake{0}
return y
output "y": float32[batch, 4]
"""
UNCALLED = """
weight a "{0}decoder.fc.weight": float32[4, 4]
weight b "{0}decoder.out.weight": float32[4, 4]
input x: float32[batch, 4]
h: float32[batch, 4] = nn.Linear(4, 4, bias=False, weight=a)(x)  # {1}decoder.fc
y: float32[batch, 4] = nn.Linear(4, 4, bias=False, weight=b)(h)  # {1}decoder.out
return y
output "y": float32[batch, 4]
"""
SHARED = """
weight a "layers.0.fc.weight": float32[4, 4]
weight b "layers.1.fc.weight": float32[4, 4]
input x: float32[batch, 4]
factor: float32[batch, 4] = ops.sigmoid(x){0}
h: float32[batch, 4] = nn.Linear(4, 4, bias=False, weight=a)(x)  # layers.0.fc
m: float32[batch, 4] = (h * factor)  # layers.0
u: float32[batch, 4] = nn.Linear(4, 4, bias=False, weight=b)(m)  # layers.1.fc
y: float32[batch, 4] = (u * {1})  # layers.1
return y
output "y": float32[batch, 4]
"""
EARLY = """
input x: float32[batch, 4]
size: host int64[] = x.shape[0]
many: host bool[] = (size > 2)
done: bool[], early: float32[batch, 4] = if many:
    a: float32[batch, 4] = ops.tanh(x)
    return Tensor(True, dtype='bool'), a
else:
    two: host bool[] = (size == 2)
    b: float32[batch, 4] = ops.exp(x)
    return Tensor({0}, dtype='bool'), b
y: float32[batch, 4] = if done:
    return early
else:
    return x
return y
output "y": float32[batch, 4]
"""
AGAIN = """
input x: float32[1, 4]
size: host int64[] = x.shape[0]
one: host bool[] = (size == 1)
y: float32[1, 4] = if one:
    again: host int64[] = x.shape[0]
    same: host bool[] = (again == {0})
    z: float32[1, 4] = if same:
        t: float32[1, 4] = ops.tanh(x)
        return t
    else:
        return x
    return z
else:
    return x
return y
output "y": float32[1, 4]
"""
PROGRAMS: list[tuple[str, str, str]] = [
    # a phase, a program before it, the program behind it
    (
        "thread_branches",
        EARLY.format("two"),
        """
        input x: float32[batch, 4]
        size: host int64[] = x.shape[0]
        many: host bool[] = (size > 2)
        y2 'y': float32[batch, 4] = if many:
            a: float32[batch, 4] = ops.tanh(x)
            return a
        else:
            two: host bool[] = (size == 2)
            b: float32[batch, 4] = ops.exp(x)
            y: float32[batch, 4] = if two:
                return b
            else:
                return x
            return y
        return y2
        output "y": float32[batch, 4]
        """,
    ),
    (
        "thread_branches",  # a flag that is computed from data stays a question
        EARLY.format("two").replace("Tensor(two, dtype='bool')", "ops.any(x)"),
        EARLY.format("two").replace("Tensor(two, dtype='bool')", "ops.any(x)"),
    ),
    (
        "thread_branches",
        AGAIN.format(1),
        """
        input x: float32[1, 4]
        size: host int64[] = x.shape[0]
        one: host bool[] = (size == 1)
        y: float32[1, 4] = if one:
            again: host int64[] = x.shape[0]
            same: host bool[] = (again == 1)
            t: float32[1, 4] = ops.tanh(x)
            return t
        else:
            return x
        return y
        output "y": float32[1, 4]
        """,
    ),
    ("thread_branches", AGAIN.format(2), AGAIN.format(2)),
    (
        "forget_counted_layers",
        counted(8, "linear_{}.w_0", "named"),
        counted(8, SAYS_NOTHING, "apart"),
    ),
    (
        "forget_counted_layers",  # an author counts as far as seven
        counted(7, "linear_{}.w_0", "named"),
        counted(7, "linear_{}.w_0", "named"),
    ),
    (
        "stack_tensors",
        JOINED.format(0),
        """
        input x: float32[batch, 4]
        t: float32[batch, 4] = ops.tanh(x)
        y: float32[2, batch, 4] = ops.stack([x, t], axis=0)
        return y
        output "y": float32[2, batch, 4]
        """,
    ),
    (
        "stack_tensors",  # the axes differ: nothing but dead code changes
        JOINED.format(1),
        JOINED.format(1).replace("unread: float32[batch, 4] = ops.exp(x)\n", ""),
    ),
    (
        "read_scopes",
        """
        input x: float32[batch, 4]
        h: float32[batch, 4] = ops.tanh(x)  # '':Model.blocks.0:Block
        y: float32[batch, 4] = ops.exp(h)  # blocks.1:Block
        return y
        output "y": float32[batch, 4]
        """,
        """
        input x: float32[batch, 4]
        h: float32[batch, 4] = ops.tanh(x)  # _:Model.blocks.0:Block
        y: float32[batch, 4] = ops.exp(h)  # blocks.1:Block
        return y
        output "y": float32[batch, 4]
        """,
    ),
    (
        "number_calls",
        CALLED.format("block", "block", "w", "block"),
        CALLED.format("block", "block", "w", "block#1"),
    ),
    (
        "number_calls",  # two modules
        CALLED.format("one", "two", "v", "two"),
        CALLED.format("one", "two", "v", "two"),
    ),
    (
        "number_calls",  # one that reads its parameter twice
        READ_TWICE.format("", "(x + u)"),
        READ_TWICE.format("", "(x + u)"),
    ),
    (
        "number_calls",
        READ_TWICE.format("", "ops.sin(u)"),
        READ_TWICE.format("#1", "ops.sin(u)"),
    ),
    (
        "add_uncalled_modules",
        UNCALLED.format("model.", ""),
        UNCALLED.format("model.", "model."),
    ),
    ("add_uncalled_modules", UNCALLED.format("", ""), UNCALLED.format("", "")),
    (
        "hoist_shared",
        SHARED.format("  # layers.0", "factor"),
        SHARED.format("", "factor"),
    ),
    (
        "hoist_shared",  # one module reads it
        SHARED.format("  # layers.0", "x"),
        SHARED.format("  # layers.0", "x"),
    ),
]
