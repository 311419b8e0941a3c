"""Building the library: by the first C compiler there is, into the user's cache.

A file's name is the hash of what it is made of: sources, flags, processor. It is loaded
only from a folder that is this user's alone, and if it is what was written there.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.resources
import importlib.util
import os
import platform
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from burnish.errors import KernelError
from burnish.kernels import records
from burnish.kernels.threads import num_threads

SOURCES = importlib.resources.files(__package__) / "source"  # in an archive as well
FLAGS = (
    "-std=gnu11",
    "-O3",
    "-fPIC",
    "-fvisibility=default",
    "-ffp-contract=fast",
    "-fno-math-errno",
    "-fno-trapping-math",
)
LIBRARIES = ("-lpthread", "-lm")
SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g", "-O1")

_SECONDS = 900  # that all files may take: a busy machine needs minutes
_BUILDING = "building-"  # how the folder of a build is named


def compilers() -> list[list[str]]:
    """The commands that may compile C here, best first; $CC before all others."""
    if own := os.environ.get("CC"):
        return [own.split()]
    found = [[name] for name in ("cc", "gcc", "clang") if shutil.which(name)]
    if shutil.which("zig"):
        found.append(["zig", "cc"])
    elif importlib.util.find_spec("ziglang"):
        found.append([sys.executable, "-m", "ziglang", "cc"])
    return found


def native() -> tuple[str, ...]:
    """The compiler options for this processor's instructions.

    Vectors of 8 are not tuned for its model: virtual machines may name one that had
    registers of half that width, for which GCC stores each vector in two halves.
    """
    if platform.machine().lower() in ("aarch64", "arm64"):
        return ("-mcpu=native",)
    facts = processor().split()
    is_of_eight = "avx2" in facts and "avx512f" not in facts
    return ("-march=native", "-mtune=generic") if is_of_eight else ("-march=native",)


@functools.cache
def processor() -> str:
    """A key of this machine's instruction set."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    facts = [
        line for line in lines if line.startswith(("flags", "Features", "model name"))
    ]
    return "\n".join([platform.machine(), platform.system(), *sorted(set(facts))])


@functools.cache
def sources() -> dict[str, str]:
    """The text of every file by its name, with the headers that are made here."""
    if not SOURCES.is_dir():
        raise KernelError("kernels: this copy of burnish has no sources to build")
    files = {
        file.name: file.read_text(encoding="utf-8")
        for file in sorted(SOURCES.iterdir(), key=lambda file: file.name)
        if file.name.endswith((".c", ".h"))
    }
    files |= {"records.h": records.header(), "table.h": records.table()}
    text = "\1".join(f"{name}\0{text}" for name, text in files.items())
    digest = hashlib.sha256(text.encode()).hexdigest()
    return files | {"identity.h": f'#pragma once\n#define IDENTITY "{digest}"\n'}


def folder() -> Path:
    """The folder where built libraries are kept. Raises KernelError without one."""
    try:
        home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    except RuntimeError as error:
        raise KernelError(
            "kernels: this user has no home folder to keep them in; set XDG_CACHE_HOME"
        ) from error
    return Path(home, "burnish", "kernels")


def file_name(flags: Sequence[str] = ()) -> str:
    """The name of the library that these flags give on this machine."""
    parts = [processor(), *FLAGS, *native(), *flags]
    parts += [f"{name}\0{text}" for name, text in sources().items()]
    digest = hashlib.sha256("\1".join(parts).encode()).hexdigest()
    return f"kernels-{digest[:24]}.so"


def found() -> Path | None:
    """The library as it was built before; None if there is none, or it is damaged."""
    file = folder() / file_name()
    try:
        _check_folder(file.parent)
        wanted = _digest_file(file).read_text()
        return file if _digest(file) == wanted else None
    except OSError:
        return None


def built(
    flags: Sequence[str] = (),
    to: Path | None = None,
    quiet: bool = False,
    anew: bool = True,
) -> Path:
    """Build it now and say so in one line; the file. Raises KernelError.

    One process builds in a folder at a time. flags: more of them. to: another folder
    than the user's cache. anew: also where another process has built it meanwhile.
    """
    commands = compilers()
    if not commands:
        raise KernelError(
            "kernels: there is no C compiler (cc, gcc, clang, zig) to build them with; "
            "pip install ziglang brings one"
        )
    place = to or folder()
    try:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        if to is None:
            _check_folder(place)
        with _locked(place):
            if not anew and (file := found()):
                return file
            if not quiet:
                line = f"burnish: building kernels for this machine: {place}"
                print(line, file=sys.stderr)
            reasons = []
            for command in commands:
                try:
                    return _build(command, flags, place)
                except KernelError as error:
                    reasons.append(str(error))
    except OSError as error:
        raise KernelError(
            f"kernels: {place} cannot be written: {error}; set XDG_CACHE_HOME "
            f"to a folder that can"
        ) from error
    raise KernelError("; ".join(reasons))


@contextlib.contextmanager
def _locked(place: Path) -> Iterator[None]:
    """Hold a folder's lock; without one where folders cannot be locked."""
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    opened = os.open(place, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # some network file systems
            fcntl.flock(opened, fcntl.LOCK_EX)
        yield
    finally:
        with contextlib.suppress(OSError):
            fcntl.flock(opened, fcntl.LOCK_UN)  # a forked process may hold it open
        os.close(opened)


def _build(command: list[str], flags: Sequence[str], place: Path) -> Path:
    from concurrent.futures import ThreadPoolExecutor

    target = place / file_name(flags)
    words = [*FLAGS, *native(), *flags]
    _sweep(place)
    with tempfile.TemporaryDirectory(prefix=_BUILDING, dir=place) as made:
        for name, text in sources().items():
            Path(made, name).write_text(text, encoding="utf-8")
        names = sorted(name for name in sources() if name.endswith(".c"))
        end = time.monotonic() + _SECONDS
        pool = ThreadPoolExecutor(num_threads())
        try:
            objects = [f"{name}.o" for name in names]
            compiled = [
                pool.submit(_run, command, [*words, "-c", name, "-o", to], made, end)
                for name, to in zip(names, objects, strict=True)
            ]
            for each in compiled:
                each.result()
        finally:
            pool.shutdown(cancel_futures=True)
        output = Path(made, "out.so")
        words += ["-shared", *objects, *LIBRARIES, "-o", output.name]
        _run(command, words, made, end)
        output.chmod(0o700)
        digest = Path(made, "digest")
        digest.write_text(_digest(output))
        os.replace(digest, _digest_file(target))
        os.replace(output, target)
    return target


def _sweep(place: Path) -> None:
    """Remove the folders of builds that were killed: older than a build may take."""
    for left in place.glob(f"{_BUILDING}*"):
        with contextlib.suppress(OSError):  # another process has removed it
            if left.stat().st_mtime < time.time() - _SECONDS:
                shutil.rmtree(left)


def _run(command: list[str], words: list[str], folder: str, end: float) -> None:
    """Compile or link to the last word, until `end` of the monotonic clock.

    Raises KernelError.
    """
    import subprocess  # which a browser has not

    compiler = " ".join(command)
    try:
        done = subprocess.run(
            [*command, *words],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=max(0.0, end - time.monotonic()),
        )
    except subprocess.TimeoutExpired as error:
        raise KernelError(
            f"kernels: {compiler} was stopped after {_SECONDS} s; set CC to a faster "
            f"compiler, or try again on a machine that is less busy"
        ) from error
    except OSError as error:
        raise KernelError(f"kernels: {compiler} cannot be run: {error}") from error
    if done.returncode or not Path(folder, words[-1]).exists():
        message = (done.stderr.strip().splitlines() or ["no message"])[0]
        raise KernelError(f"kernels: {compiler} could not build them: {message}")


def _check_folder(place: Path) -> None:
    """Raises KernelError for a folder that others may write to."""
    if os.name != "posix":
        return
    facts = place.stat()
    if facts.st_uid != os.getuid() or stat.S_IMODE(facts.st_mode) & 0o022:
        raise KernelError(
            f"kernels: expected {place} to be yours alone, others may write there; "
            f"chmod 700 it, or set XDG_CACHE_HOME"
        )


def _digest_file(file: Path) -> Path:
    return file.with_suffix(".sha256")


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()
