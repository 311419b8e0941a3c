"""Work in a process of its own, measured and limited: `Limited(...)` as a context.

A server imports the generator once and forks for each piece of work, so that one costs
a few hundredths of a second. What it reports: the outcome, the growth of resident
memory over a process that does nothing (its children's too), seconds of processor time,
and files that appeared outside of the folder it was given.
"""

from __future__ import annotations

import atexit
import importlib
import json
import os
import resource
import subprocess
import sys
import time
import traceback
from pathlib import Path
from typing import Any

MEGABYTE = 1 << 20
ADDRESS_SPACE = 4096 * MEGABYTE  # whatever grows past this is ended by force
SECONDS = 20
FILES = 128
#: Audit events of which a reader has no need, with the arguments to show.
_WRITES = ("os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.link", "os.symlink")
_RUNS = ("os.system", "os.exec", "socket.connect", "pty.spawn")


class Limited:
    """A server that runs `module:function(*arguments)` in forks of itself."""

    def __init__(self, *modules: str, address_space: int = ADDRESS_SPACE):
        self.process = subprocess.Popen(
            [sys.executable, "-m", __name__, str(address_space), *modules],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Limited:
        self.rest = self.run("tests.harness.limited:_nothing", folder="/nonexistent")
        return self

    def __exit__(self, *_: object) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.stdout.close()
        assert self.process.wait(SECONDS) == 0

    def run(self, function: str, *arguments: Any, folder: str | Path) -> dict[str, Any]:
        """The result: outcome, text, megabytes, seconds and watched."""
        pipes = self.process.stdin, self.process.stdout
        assert pipes[0] is not None
        assert pipes[1] is not None
        pipes[0].write(json.dumps([function, arguments, str(folder)]) + "\n")
        pipes[0].flush()
        line = pipes[1].readline()
        assert line, "the server has ended"
        report: dict[str, Any] = json.loads(line)
        if hasattr(self, "rest"):
            report["megabytes"] -= self.rest["megabytes"]
        return report


def _nothing() -> None:
    return None


class Watch:
    """Attempts of the interpreter to write outside of a folder, or to run a program."""

    def __init__(self, folder: str):
        self.folder = os.path.realpath(folder)
        self.seen: list[str] = []
        sys.addaudithook(self.hear)

    def hear(self, event: str, args: tuple[Any, ...]) -> None:
        if event == "open" and isinstance(args[0], str | bytes):
            flags = args[2] if isinstance(args[2], int) else 0
            if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
                self._note(event, args[0])
        elif event in _WRITES:
            self._note(event, args[0])
        elif event in _RUNS:
            self.seen.append(event)

    def _note(self, event: str, path: Any) -> None:
        path = os.fsdecode(path) if isinstance(path, str | bytes) else str(path)
        inside = os.path.realpath(path).startswith((self.folder, "/dev/null"))
        if not inside and "__pycache__" not in path:
            self.seen.append(f"{event} {path}")


def _attempt(function: str, arguments: list[Any], folder: str) -> dict[str, Any]:
    """In the fork: what the function returns or raises, in words."""
    module, _, name = function.partition(":")
    watch = Watch(folder)
    try:
        text = str(getattr(importlib.import_module(module), name)(*arguments))
        outcome = "done"
    except BaseException as error:
        outcome = type(error).__name__
        text = str(error)
        if os.environ.get("TRACE"):
            text += "".join(traceback.format_exception(error))
    return {"outcome": outcome, "text": text[:4000], "watched": watch.seen[:5]}


def _peaks_of_children() -> int:
    """Kilobytes that the children of this process have held at most, all together."""
    me = os.getpid()
    peak = 0
    for pid in Path(f"/proc/{me}/task/{me}/children").read_text().split():
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM"):
                peak += int(line.split()[1])
    return peak


def _forked(work: list[Any], address_space: int) -> dict[str, Any]:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        resource.setrlimit(resource.RLIMIT_AS, (address_space, address_space))
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, FILES))
        report = _attempt(*work)
        inner = _peaks_of_children()
        atexit._run_exitfuncs()  # so that the time of its own children is counted
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        report["inner"] = [inner, used.ru_utime + used.ru_stime]
        with os.fdopen(writing, "w") as pipe:
            json.dump(report, pipe)
        os._exit(0)
    os.close(writing)
    start = time.monotonic()
    with os.fdopen(reading) as pipe:
        text = pipe.read()
    status, used = os.wait4(child, 0)[1:]
    code = os.waitstatus_to_exitcode(status)
    report = json.loads(text) if text else {"outcome": f"exit {code}", "text": ""}
    inner, seconds = report.pop("inner", (0, 0.0))
    report["megabytes"] = (used.ru_maxrss + inner) / 1024
    report["seconds"] = used.ru_utime + used.ru_stime + seconds
    report["clock"] = time.monotonic() - start
    return report


if __name__ == "__main__":
    for name in sys.argv[2:]:
        importlib.import_module(name)
    for line in sys.stdin:
        print(json.dumps(_forked(json.loads(line), int(sys.argv[1]))), flush=True)
