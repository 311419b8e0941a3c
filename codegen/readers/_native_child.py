"""The child process of `native.py`: calls ONNX's extension module, over a pipe.

Reads a marshalled request and a message, writes a byte ("+" or "-"), eight bytes of
length and the result or the exception's text. It starts in a few hundredths of a
second: it imports the extension and what Python's own start has imported already.
"""

from __future__ import annotations

import marshal
import os
import sys
from importlib.machinery import ExtensionFileLoader, ModuleSpec

TYPE_CHECKING = False
if TYPE_CHECKING:
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
    while True:
        try:
            about = marshal.load(requests)
        except EOFError:
            return
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


def _body(
    onnx: Any, kind: tuple[str, int, str], since: int, node: bytes, types: list[bytes]
) -> bytes:
    """The function body of one operator, which depends on its attributes and types."""
    schema = onnx.defs.get_schema(*kind)
    made: bytes = schema.get_context_dependent_function_with_opset_version(
        since, node, types
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
    loader = ExtensionFileLoader(_NAME, sys.argv[1])
    module = loader.create_module(ModuleSpec(_NAME, loader, origin=sys.argv[1]))
    loader.exec_module(module)
    serve(module)
