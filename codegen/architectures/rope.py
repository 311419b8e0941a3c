"""Rotary positions: the configuration's ways to scale their wavelengths."""

from __future__ import annotations

import math
from typing import Any

from burnish.codegen.architectures.config import Config
from burnish.codegen.architectures.words import brief

_KINDS = ("default", "linear", "dynamic", "llama3", "yarn", "longrope")


def rope_values(
    config: Config, size: int, positions: int
) -> tuple[dict[str, Any], float]:
    """Template variables, and the fraction of each head that is rotated.

    size: of a head. Newer configurations say all of it in `rope_parameters`, older
    ones in `rope_theta`, `rope_scaling` and `partial_rotary_factor`.
    """
    new = config.inner("rope_parameters")
    old = config.inner("rope_scaling")
    given = new if new.values else old
    kind = given.raw("rope_type", given.raw("type", "default"))
    if kind == "su":  # what longrope was called first
        kind = "longrope"
    if kind not in _KINDS:
        given.refuse("rope_type", " or ".join(_KINDS), kind)
        kind = "default"
    given.read.update(("rope_type", "type"))
    share = new.number(
        "partial_rotary_factor", config.number("partial_rotary_factor", 1.0)
    )
    made = {
        "kind": kind,
        "theta": new.number("rope_theta", config.number("rope_theta", 10000.0)),
        "attention": "",
    }
    rotated = int(size * share)
    if rotated < 2 or rotated % 2:
        config.refuse("partial_rotary_factor", "an even part of every head", share)
        return made, 1.0
    scaling = {
        "linear": _stretched,
        "dynamic": _stretched,
        "llama3": _llama3,
        "yarn": _yarn,
        "longrope": _longrope,
    }
    if kind != "default":
        before = given.size(
            "original_max_position_embeddings",
            config.size("original_max_position_embeddings", positions),
        )
        made |= scaling[kind](given, rotated, positions, before, made["theta"])
    else:
        config.ignore("original_max_position_embeddings")
        given.ignore("factor", "original_max_position_embeddings")
    given.unread()
    return made, share


def _stretched(
    given: Config, size: int, positions: int, before: int, theta: float
) -> dict[str, Any]:
    return {"factor": given.number("factor", 1.0), "positions": positions}


def _llama3(
    given: Config, size: int, positions: int, before: int, theta: float
) -> dict[str, Any]:
    return {
        "factor": given.number("factor", 8.0),
        "low": given.number("low_freq_factor", 1.0),
        "high": given.number("high_freq_factor", 4.0),
        "context": before,
    }


def _yarn(
    given: Config, size: int, positions: int, before: int, theta: float
) -> dict[str, Any]:
    """Between two places of the features wavelengths go over to stretched ones."""
    factor = given.number("factor", positions / before)

    def place(turns: float) -> float:
        return size * math.log(before / (turns * 2 * math.pi)) / (2 * math.log(theta))

    low = place(given.number("beta_fast", 32.0) or 32.0)
    high = place(given.number("beta_slow", 1.0) or 1.0)
    if given.flag("truncate", True):
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, size - 1)
    if low == high:
        high += 0.001
    attention = f"0.1 * math.log({brief(factor)}) + 1" if factor > 1 else ""
    all_dim = given.number("mscale_all_dim", 0.0)
    one = given.number("mscale", 0.0)
    if one and all_dim:
        ratio = _magnitude(factor, one) / _magnitude(factor, all_dim)
        attention = brief(ratio) if ratio != 1 else ""
    return {
        "factor": factor,
        "low": low,
        "high": high,
        "attention": _given_attention(given, attention),
    }


def _given_attention(given: Config, otherwise: str) -> str:
    """The factor of cosines and sines as Python source; "" where it is 1."""
    factor = given.number("attention_factor", 0.0)
    return (brief(factor) if factor != 1 else "") if factor else otherwise


def _magnitude(factor: float, scale: float) -> float:
    return 1.0 if factor <= 1 else 0.1 * scale * math.log(factor) + 1.0


def _longrope(
    given: Config, size: int, positions: int, before: int, theta: float
) -> dict[str, Any]:
    factor = given.number("factor", positions / before)
    attention = ""
    if factor > 1:
        attention = f"math.sqrt(1 + math.log({brief(factor)}) / math.log({before}))"
    lists = {}
    for name in ("short", "long"):
        values = given.raw(f"{name}_factor", [])
        if not (isinstance(values, list) and len(values) == size // 2) or not all(
            type(value) in (int, float) for value in values
        ):
            given.refuse(f"{name}_factor", f"a list of {size // 2} numbers", values)
            values = []
        lists[name] = [float(value) for value in values]
    return {
        **lists,
        "context": before,
        "attention": _given_attention(given, attention),
    }
