"""Plans: a captured function as a table of records for compiled kernels.

    fast = burnish.compile(model)
    y = fast(x)             # model(x)'s numbers
    print(fast.plan(x))     # its steps
    print(fast.explain())   # what runs eagerly, and why

The way of a call: capture -> graph -> fold -> fuse -> lower (`plan.cpu`) -> run.
"""

from burnish.plan.compiled import Compiled, compile

__all__ = ["Compiled", "compile"]
