"""Run ONNX's C++ (shape inference, conversion, inlining) in a limited child process.

It materialises what a few bytes of a file ask for, and can crash. So it runs in a
process of its own, where address space and time are limited by the message's size: what
goes wrong there is a NativeError here. The process starts with the first call, in a few
hundredths of a second, and lives as long as this one.
"""

from __future__ import annotations

import atexit
import importlib.util
import marshal
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import onnx

MEGABYTE = 1 << 20
#: Memory limit of a call: bytes for each byte of the message, and on top of that.
TIMES, FLOOR = 10, 20 * MEGABYTE
#: Limit of an answer, likewise: the caller makes objects of it.
_ANSWER_TIMES, _ANSWER_FLOOR = 4, MEGABYTE // 4
#: Inlining copies bodies, so its answer may be so many times longer.
_COPIES = 32
#: Seconds of processor time on top of one for each megabyte.
SECONDS = 2
#: The clock's limit is so much larger: a busy machine is no reason to stop.
_PATIENCE = 20
#: Exit codes of a process that its own limit, or this one's clock, has ended.
_OUT_OF_TIME = (-9, -24)
_CHILD = Path(__file__).with_name("_native_child.py")


class NativeError(Exception):
    """ONNX's C++ refused a message."""


class LimitError(NativeError):
    """ONNX's C++ exceeded its limits, or crashed."""


def infer_shapes(message: Any, *, data_prop: bool, strict: bool = False) -> Any:
    """The ModelProto with types and shapes filled in, as far as they can be known.

    strict: an operator's error is NativeError.
    """
    result = _ask("infer_shapes", message, strict, strict, data_prop)
    return onnx.ModelProto.FromString(result)


def convert_version(message: Any, opset: int) -> Any:
    """The ModelProto at another opset of the default domain."""
    return onnx.ModelProto.FromString(_ask("convert_version", message, opset))


def inline_functions(message: Any) -> Any:
    """The ModelProto without local functions; those of other opsets are converted."""
    return onnx.ModelProto.FromString(_ask("inline", message, True, times=_COPIES))


def complaint(message: Any) -> str:
    """The error of ONNX's checker or strict inference on a ModelProto, or ""."""
    try:
        _ask("check", message, True, False, False)
        _ask("infer_shapes", message, True, True, True)
    except NativeError as error:
        return " ".join(str(error).split())[:300]
    return ""


def function_body(
    kind: tuple[str, int, str], since: int, node: bytes, types: list[bytes]
) -> bytes:
    """The FunctionProto that defines an operator for these attributes and types.

    kind: operator, opset and domain; since: the body's own version.
    """
    return _ask("body", onnx.ModelProto(), kind, since, node, types)


class _Process:
    """A child that answers one call at a time."""

    def __init__(self) -> None:
        spec = importlib.util.find_spec("onnx.onnx_cpp2py_export")
        if spec is None or spec.origin is None or not sys.executable:
            raise NativeError("onnx has no compiled part here")
        self.owner = os.getpid()
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(_CHILD), spec.origin],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def ask(self, about: dict[str, Any], message: bytes) -> bytes:
        """The answer; NativeError when there is none."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        late = threading.Timer(about["seconds"] * _PATIENCE, self.process.kill)
        late.start()
        try:
            self.process.stdin.write(marshal.dumps(about) + message)
            self.process.stdin.flush()
            status = self.process.stdout.read(1)
            size = int.from_bytes(self.process.stdout.read(8), "little")
            result = self.process.stdout.read(size)
        except BrokenPipeError:
            status = b""
        finally:
            late.cancel()
        if status == b"+":
            return result
        if status == b"-":
            text = result.decode(errors="replace")
            if text != "MemoryError":
                raise NativeError(text)
            limit = about["memory"] // MEGABYTE
            raise LimitError(f"it would take more than {limit} MiB")
        self.close()
        code = self.process.returncode
        raise LimitError(
            f"it took more than {about['seconds']} s"
            if code in _OUT_OF_TIME
            else f"onnx ended with exit code {code}"
        )

    def close(self) -> None:
        """End the child."""
        if self.owner == os.getpid():
            self.process.kill()
            self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except BrokenPipeError:  # what was buffered for a child that has ended
                    continue


_lock = threading.Lock()
_running: list[_Process] = []


def _ask(call: str, message: Any, *arguments: Any, times: int = _ANSWER_TIMES) -> bytes:
    data = message.SerializeToString()
    about = {
        "call": call,
        "arguments": arguments,
        "size": len(data),
        "memory": (TIMES + times) * len(data) + FLOOR,
        "answer": times * len(data) + _ANSWER_FLOOR,
        "seconds": SECONDS + len(data) // MEGABYTE,
    }
    with _lock:
        if _running and _running[0].owner != os.getpid():
            _running.pop().close()  # a fork of the process that asked before
        if not _running:
            try:
                _running.append(_Process())
            except OSError as error:
                raise NativeError(f"no process can be started: {error}") from None
        try:
            return _running[0].ask(about, data)
        except NativeError:
            if _running[0].process.returncode is not None:
                _running.clear()
            raise


@atexit.register
def _close() -> None:
    while _running:
        _running.pop().close()
