"""The library as Python calls it."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path
from typing import Any

from burnish.errors import InputError, KernelError
from burnish.kernels import memory

_lock = threading.Lock()
_found: dict[str, Library | None] = {}
_opened: list[Library] = []


class Library:
    """A loaded library: `run` executes records, outside of the interpreter's lock;
    `release_memory` returns what it keeps of freed arrays to the system.

    identity: the digest of its sources, the records' layout among them. fits: whether
    this processor has the instructions that it was compiled to. width: of its vectors.
    rows: the most places of a convolution's tile, by its blocks of channels;
    window_rows: of one whose channels each have weights of their own.
    """

    def __init__(self, file: Path):
        import ctypes

        self.file = file
        try:
            loaded = ctypes.CDLL(str(file))
        except OSError as error:
            raise KernelError(f"kernels: {file} cannot be loaded: {error}") from error
        self.run: Any = loaded.run
        number, address = ctypes.c_int64, ctypes.c_void_p
        self.run.argtypes = [address, number, address, number]
        self.run.restype = None
        loaded.tile_rows.restype = loaded.vector_width.restype = number
        loaded.tile_rows.argtypes = [number]
        self.rows: list[int] = [loaded.tile_rows(i) for i in range(5)]
        self.width: int = loaded.vector_width()
        self.dots = False  # whether it sums products of bytes in single instructions
        self.bf16 = False  # whether it multiplies bfloat16
        try:
            held = ctypes.PyDLL(str(file))
            same = ctypes.PYFUNCTYPE(number, address)
            self.same: Any = same(("same_objects", held))
            guarded = ctypes.PYFUNCTYPE(number, address, address)
            self.run_if_same: Any = guarded(("run_if_same", held))
            on_arrays = ctypes.PYFUNCTYPE(
                number, address, address, ctypes.py_object, number, number
            )
            self.run_on_arrays: Any = on_arrays(("run_on_arrays", held))
            self.memory_handler: Any = loaded.memory_handler
            self.memory_handler.argtypes = [address]
            self.memory_handler.restype = address
            self.release_memory: Any = loaded.memory_release
            self.release_memory.argtypes, self.release_memory.restype = [], None
            loaded.library_identity.restype = ctypes.c_char_p
            loaded.processor_fits.restype = loaded.sums_bytes.restype = number
            loaded.multiplies_bf16.restype = loaded.window_rows.restype = number
            self.identity: str = loaded.library_identity().decode()
            self.fits = bool(loaded.processor_fits())
            self.dots = bool(loaded.sums_bytes())
            self.bf16 = bool(loaded.multiplies_bf16())
            self.window_rows: int = loaded.window_rows()
        except AttributeError as error:
            raise KernelError(f"kernels: {file} is of another release") from error


def library() -> Library | None:
    """The library for this machine, built if need be; None where it cannot be had.

    The environment's BURNISH_KERNELS may name the file of one, or "off": none.
    """
    with _lock:
        if "it" not in _found:
            _found["it"] = _load()
        return _found["it"]


def check_bf16(what: str) -> None:
    """Raise InputError, as `what`, where this machine has no kernels for bfloat16."""
    kernels = library()
    if kernels is None:
        raise InputError(
            f"{what}: precision 'bf16' needs kernels on a CPU, and there are none; "
            f"burnish kernels info says why"
        )
    if not kernels.bf16:
        raise InputError(
            f"{what}: precision 'bf16' needs a processor with the instructions "
            f"avx512_bf16, which this one, or the compiler of {kernels.file}, has not; "
            f"use 'fp32', or a GPU"
        )


def built_before() -> Library | None:
    """The library if it is loaded, or there without being built; else None.

    A library that a plan builds later is found from then on.
    """
    for known in ("it", "before"):  # without the lock, which every call would take
        if known in _found:
            return _found[known]
    with _lock:
        if "before" not in _found:
            _found["before"] = _load(build_it=False)
        return _found["before"]


def loaded() -> Library | None:
    """A library that is loaded already; None where none is."""
    return next((each for each in (*_found.values(), *_opened) if each), None)


def opened_once(file: Path, identity: str) -> Library:
    """The library of a file; the one that has this identity where it is open already.

    Each has threads of its own, so that a process with several models wants one. Raises
    KernelError for a file that cannot be loaded.
    """
    with _lock:
        for known in (*_found.values(), *_opened):
            if known is not None and known.identity == identity and known.fits:
                return known
        _opened.append(Library(file))
        return _opened[-1]


def _load(build_it: bool = True) -> Library | None:
    named = os.environ.get("BURNISH_KERNELS")
    if named == "off":
        return None
    try:
        from burnish.kernels import build

        file = Path(named) if named else build.found()
        if file is None and not build_it:
            return None
        made = Library(file or build.built(anew=False))
        memory.keep(made.memory_handler)
        return made
    except (KernelError, ImportError) as error:  # a browser has no ctypes
        if build_it:
            print(f"burnish: {error}; plans run operators one by one", file=sys.stderr)
        return None
