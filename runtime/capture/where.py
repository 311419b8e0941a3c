"""The place in a program's source where a capture stopped, and why."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType

_THROUGH = (
    "burnish._engine.arguments",
    "burnish.autodiff",
    "burnish.capture",
    "burnish.checkpointing",
    "burnish.distributions",
    "burnish.lowbit",
    "burnish.methods",
    "burnish.nn.attention.cache",
    "burnish.nn.core.param",
    "burnish.nn.adapters.reparameterize",
    "burnish._engine.pytree",
    "burnish.operator",
    "burnish.ops",
    "burnish.optim",
    "burnish.plan",
    "burnish.rng",
    "burnish.steps",
    "burnish.tensor",
    "contextlib",
    "numpy",
)
_SPELLED = {"__float__": "float()", "__bool__": "bool()", "__int__": "int()"}


def refusal(why: str) -> str:
    """A message that names the line, and the layer, that asked for it."""
    frame: FrameType | None = sys._getframe(1)
    how = ""
    while frame is not None and _is_passed(frame):
        name = frame.f_code.co_name
        if frame.f_globals["__name__"].startswith(
            ("burnish.tensor", "burnish.methods")
        ):
            how = f" by {_SPELLED.get(name, f'{name}()')}"
        frame = frame.f_back
    if frame is None:
        return f"capture: {why}{how}"
    code = frame.f_code
    place = f"{Path(code.co_filename).name}:{frame.f_lineno}"
    return f"capture: {place}, in {code.co_qualname}: {why}{how}"


def user_frame(frame: FrameType | None) -> FrameType | None:
    """The innermost frame from this one on that asks for a call, not carries it out."""
    while frame is not None and _is_passed(frame):
        frame = frame.f_back
    return frame


def _is_passed(frame: FrameType) -> bool:
    """Whether a frame belongs to what carries a call out, not to who asked for it."""
    return frame.f_globals.get("__name__", "").startswith(_THROUGH)
