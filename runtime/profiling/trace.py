"""A trace file: the Trace Event Format, which chrome://tracing and Perfetto open.

https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

from burnish._files.atomic import atomic_write
from burnish.profiling.rows import label
from burnish.profiling.spans import Span


def save(spans: Sequence[Span], path: str | os.PathLike[str]) -> None:
    """Write one complete event a span, its times in microseconds."""
    events: list[dict[str, Any]] = [
        {
            "ph": "M",
            "pid": 0,
            "tid": 0,
            "name": "process_name",
            "args": {"name": "burnish"},
        }
    ]
    for span in spans:
        events.append(
            {
                "ph": "X",
                "pid": 0,
                "tid": 0,
                "name": _name(span),
                "cat": span.kind,
                "ts": span.start / 1000,  # microseconds, as "dur"
                "dur": span.duration / 1000,
                "args": {
                    "arguments" if span.kind != "module" else "class": span.detail,
                    "bytes of results": span.allocated,
                },
            }
        )
    with atomic_write(path) as file:
        file.write(json.dumps({"traceEvents": events}).encode())


def _name(span: Span) -> str:
    return label(span) or span.detail
