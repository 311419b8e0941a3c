"""Shared by all tests: peers that may be missing, and settings of hypothesis."""

from __future__ import annotations

import contextlib
import gc
import os
import re
import shutil
import signal
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import settings

from tests.harness import kept, ruff

# Products of small arrays: threads of BLAS would only wait for each other.
for library in ("OPENBLAS", "OMP", "MKL"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")

# Numbers and words in whatever source is imported would be drawn too: a change there
# would draw other examples, and each process would parse all of it. A Hypothesis that
# has no such function draws them.
with contextlib.suppress(ImportError):
    from hypothesis.internal.conjecture import providers

    providers.is_local_module_file = lambda _: False

settings.register_profile("burnish", deadline=None, print_blob=True)
# CI draws the same examples of the same tests each time; a plain run draws others.
settings.register_profile(
    "repeatable", settings.get_profile("burnish"), derandomize=True
)
settings.register_profile(
    "thorough", settings.get_profile("repeatable"), max_examples=500
)
settings.load_profile("burnish")


_BYTECODE: list[str] = []


def _without_waiting(_file: object) -> None:
    """What tests write need not outlive a power cut; the disk is not waited for."""


def pytest_configure(config: pytest.Config) -> None:
    """Ctrl-C interrupts, also where the shell that started this has it ignored.

    It does so for what it starts in the background, and programs inherit that.

    Where Python may write no bytecode, every process of a test would compile all that
    it imports (some 1,400 files for the generator): they share a folder for this run.
    """
    os.fsync = _without_waiting
    if hasattr(config, "cache"):
        with contextlib.suppress(OSError):  # tests need no cache
            folder = config.cache.mkdir("exports")
            kept.FOLDER = folder if os.access(folder, os.W_OK) else None
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if os.environ.get("PYTHONDONTWRITEBYTECODE"):
        if "PYTHONPYCACHEPREFIX" not in os.environ:
            _BYTECODE.append(tempfile.mkdtemp(prefix="__pycache__-"))
            os.environ["PYTHONPYCACHEPREFIX"] = _BYTECODE[0]
        del os.environ["PYTHONDONTWRITEBYTECODE"]


def pytest_unconfigure() -> None:
    """Remove this run's bytecode, and exports that have not been used for long."""
    kept.discard_old()
    for folder in _BYTECODE:
        shutil.rmtree(folder, ignore_errors=True)


_ALL_ORACLE = re.compile(r"^pytestmark = \[?\s*pytest\.mark\.oracle\b", re.MULTILINE)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out files of comparisons alone where none of them runs.

    They import their peers: seconds in each process.
    """
    is_test = collection_path.name.startswith("test_") and collection_path.is_file()
    if not is_test or "not oracle" not in config.getoption("markexpr").split(" and "):
        return None
    return bool(_ALL_ORACLE.search(collection_path.read_text("utf-8"))) or None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """`@pytest.mark.oracle("onnxruntime")` skips where that peer is not installed.

    Without an argument the peer is torch.
    """
    for item in items:
        for mark in item.iter_markers("oracle"):
            for peer in mark.args or ("torch",):
                if find_spec(peer) is None:
                    reason = f"{peer} is not installed: pip install '.[oracle]'"
                    item.add_marker(pytest.mark.skip(reason=reason))


def pytest_collection_finish() -> None:
    """Leave the objects of modules and collected tests out of garbage collection.

    Recording a training step collects garbage, which would visit them all each time.
    """
    gc.collect()
    gc.freeze()
    # It finds little, and took a twentieth of the time.
    gc.set_threshold(50_000, 20, 100)


@pytest.fixture(scope="module", autouse=True)
def _linted() -> Iterator[None]:
    """Format and lint at once what the module's tests have left for it."""
    yield
    ruff.lint_waiting()


@pytest.fixture(scope="session")
def torch() -> ModuleType:
    """PyTorch, or a skipped test."""
    reason = "torch is not installed: pip install '.[oracle]'"
    module: ModuleType = pytest.importorskip("torch", reason=reason)
    return module
