"""Packages' names are imported when they are asked for, and are there before."""

import builtins
import subprocess
import sys
from importlib import import_module

import pytest

from burnish._engine.lazy import Names


def loaded(program: str) -> set[str]:
    """Modules of Burnish in a process of its own after some statements."""
    program += "\nimport sys; print(*(m for m in sys.modules if m[:8] == 'burnish.'))"
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_burnish_brings_no_operators_and_no_layers():
    names = loaded("import burnish")
    assert "burnish.tensor" in names
    apart = (
        *("nn.core", "nn.linear", "lowbit", "serialize", "plan", "ops._cpu.norm"),
        *("ops._gpu", "ops.arrays", "ops.elementwise", "ops.spatial"),
    )
    assert not [n for n in names if n.startswith(tuple(f"burnish.{a}" for a in apart))]


def test_a_layer_brings_its_own_modules_alone():
    names = loaded("from burnish import nn; nn.Linear(2, 3)")
    assert "burnish.nn.linear" in names
    assert not names & {"burnish.nn.recurrent.layers", "burnish.nn.losses.criterion"}


PACKAGES = ["burnish", "burnish.lowbit", "burnish.nn", "burnish.ops"]


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_is_listed_and_imported(package):
    program = f"import {package} as p; [getattr(p, name) for name in p.__all__]"
    loaded(f"{program}; assert set(p.__all__) <= set(dir(p))")
    loaded(f"from {package} import *")


@pytest.mark.parametrize("name", ["absent", "__absent__"])
@pytest.mark.parametrize("package", PACKAGES)
def test_a_name_that_is_not_there_is_a_missing_attribute(package, name):
    with pytest.raises(AttributeError, match=f"{package} has no '{name}'"):
        getattr(import_module(package), name)


OWN_KERNEL = """
import numpy as np
from burnish import ops
softmax, calls = ops.softmax, []

@softmax.on("numpy")
def mine(x, *, axis=-1):
    calls.append("value")
    return softmax.value(x, axis=axis)

@softmax.vjp("x", on="numpy")
def gradient(g, y, x, *, axis):
    calls.append("gradient")
    return NotImplemented

x = np.ones((64, 64), np.float32)
softmax.pull(x, softmax(x), (x,), {}, [True])
assert calls == ["value", "gradient"], calls
"""


def test_kernels_of_ones_own_stay_when_others_are_registered():
    assert "burnish.ops._cpu.rows" in loaded(OWN_KERNEL.strip())


def test_statements_within_the_block_import_nothing():
    package = {"__name__": "burnish.data", "__builtins__": __builtins__}
    lines = (
        "from burnish.nowhere import a as a",
        "from burnish._engine.lazy import Names as b",
    )
    package["names"] = Names(package, "c")
    exec("with names:\n    " + "\n    ".join(lines), package)
    assert package["__all__"] == ["a", "b", "c"]
    assert {"a", "b"} <= {*package["__dir__"]()} - package.keys()
    read = package["__getattr__"]
    assert read("b") is package["b"] is Names
    with pytest.raises(ModuleNotFoundError, match=r"burnish\.nowhere"):
        read("a")
    with pytest.raises(AttributeError, match=r"burnish\.data"):
        read("d")


def test_a_block_that_fails_leaves_imports_as_they_were():
    before = __import__
    with pytest.raises(ZeroDivisionError), Names({"__name__": "p"}):
        1 / 0  # noqa: B018
    assert __builtins__["__import__"] is before


def test_other_imports_go_on_while_a_block_is_open():
    with Names({"__name__": "p"}):
        assert __import__("json", fromlist=["dumps"]) is sys.modules["json"]
        assert __import__(name="json.decoder", level=0) is sys.modules["json"]


def test_blocks_that_threads_are_within_at_once_leave_imports_as_they_were():
    before = builtins.__import__
    first, second = Names({"__name__": "p"}), Names({"__name__": "q"})
    first.__enter__()
    second.__enter__()
    first.__exit__()
    assert builtins.__import__ is not before
    second.__exit__()
    assert builtins.__import__ is before
