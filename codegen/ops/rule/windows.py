"""Arguments of convolutions and pools: equal sizes of all axes as one number."""

from __future__ import annotations

from typing import Any

from burnish.codegen.ops.rule.expressions import paired


def alike(sizes: list[Any]) -> Any:
    """(3, 3) as 3: layers take both."""
    return sizes[0] if len(set(sizes)) == 1 else tuple(sizes)


def convolution(
    rank: int,
    *,
    auto_pad: str = "NOTSET",
    dilations: list[int] | None = None,
    group: int = 1,
    kernel_shape: list[int] | None = None,
    pads: list[int] | None = None,
    strides: list[int] | None = None,
) -> dict[str, Any]:
    """The options of a convolution over so many axes; its weight has the kernel's."""
    return {
        "stride": alike(strides or [1] * rank),
        "padding": padding(auto_pad, pads, rank),
        "dilation": alike(dilations or [1] * rank),
        "groups": group,
    }


def padding(auto_pad: str, pads: list[int] | None, rank: int) -> Any:
    """ONNX's begins-then-ends as an int, one number an axis, pairs, or a name."""
    if auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        return auto_pad.lower()
    if pads is None or auto_pad == "VALID" or not any(pads):
        return 0
    if pads[:rank] == pads[rank:]:
        return alike(pads[:rank])
    return tuple(paired(pads[:rank], pads[rank:]))
