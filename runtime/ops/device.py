"""Copies between devices."""

from __future__ import annotations

from typing import Any

from burnish.autodiff import Variable
from burnish.backend import Array, Device
from burnish.operator import composed, operator
from burnish.ops._shapes import plain


@composed
def to_device(x: Any, device: Device) -> Array:
    """x on another device; its gradient comes back to where x was."""
    moved: Any = moved_array(x, device=device)
    if isinstance(x, Variable):
        return moved.wrap(moved.data, device, moved.node, moved.index)
    return moved


@operator
def moved_array(x, *, device: Device) -> Array:
    """x's array on another device; a variable still says the old one."""
    return device.put(x)


@moved_array.vjp
def _(g, y, x, *, device):
    home = Device.of(plain(x))
    return to_device(g, device=home.autodiff() if device.is_autodiff else home)
