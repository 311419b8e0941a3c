"""Words that several families hand to their templates."""

from __future__ import annotations


def accepts(*names: str, axes: str = "batch, time", **others: str) -> str:
    """The decorator that says what forward takes; masks may be of any dtype.

    others: specs of arguments that are neither ids nor masks.
    """
    specs = {n: f"{'any' if 'mask' in n else 'int64'}[{axes}]" for n in names}
    if "position_ids" in specs:
        specs["attention_mask"] = "any[batch, _]"  # reaches back as far as a cache
        specs["position_ids"] = "int64[_, time]"  # one row does for all
    lines = [f'        {n}="{s}",' for n, s in (specs | others).items()]
    return "\n".join(["    @nn.accepts(", *lines, "    )"])
