"""The child process of `native.py`: calls ONNX's extension module, over a pipe.

Reads a line of JSON and a message, writes a byte ("+" or "-"), eight bytes of length
and the result or the exception's text. Needs nothing but Python and the extension, so
that it starts in a few hundredths of a second.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import json
import os
import sys
from collections.abc import Callable
from typing import Any

try:
    import resource
except ImportError:  # not on Windows: there, only the caller's clock limits
    resource = None  # type: ignore[assignment]

_NAME = "onnx_cpp2py_export"


def serve(onnx: Any) -> None:
    """Answer calls until the caller closes the pipe."""
    calls: dict[str, Callable[..., bytes]] = {
        "infer_shapes": onnx.shape_inference.infer_shapes,
        "convert_version": onnx.version_converter.convert_version,
        "inline": onnx.inliner.inline_local_functions,
        "check": lambda *about: onnx.checker.check_model(*about) or b"",
        "body": lambda _, *about: _body(onnx, *about),
    }
    requests, replies = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # whatever C++ prints is no answer
    at_rest = _address_space()
    while line := requests.readline():
        about = json.loads(line)
        message = requests.read(about["size"])
        _limit(at_rest + about["memory"], about["seconds"])
        try:
            status, result = b"+", calls[about["call"]](message, *about["arguments"])
            if len(result) > about["answer"]:
                raise MemoryError
        except MemoryError:
            status, result = b"-", b"MemoryError"
        except Exception as error:
            status, result = b"-", f"{type(error).__name__}: {error}".encode()
        del message
        replies.write(status + len(result).to_bytes(8, "little"))
        replies.write(result)
        replies.flush()


def _body(onnx: Any, kind: list[Any], since: int, node: str, types: list[str]) -> bytes:
    """The function body of one operator, which depends on its attributes and types."""
    schema = onnx.defs.get_schema(*kind)
    made: bytes = schema.get_context_dependent_function_with_opset_version(
        since, bytes.fromhex(node), [bytes.fromhex(text) for text in types]
    )
    return made


def _address_space() -> int:
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[0]) * os.sysconf("SC_PAGESIZE")
    except OSError:
        return 1 << 28  # no Linux: an upper bound of what this process takes at rest


def _limit(memory: int, seconds: int) -> None:
    """Resource limits of one call, as far as the platform has them."""
    if resource is None:
        return
    used = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
    for kind, value in (
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_CPU, int(used) + 1 + seconds),
    ):
        try:
            most = resource.getrlimit(kind)[1]
            if most != resource.RLIM_INFINITY:
                value = min(value, most)
            resource.setrlimit(kind, (value, most))
        except (OSError, ValueError):
            continue


if __name__ == "__main__":
    loader = importlib.machinery.ExtensionFileLoader(_NAME, sys.argv[1])
    spec = importlib.util.spec_from_loader(_NAME, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    serve(module)
