"""Template variables that several families share."""

from __future__ import annotations

from itertools import starmap
from typing import Any

from burnish.codegen.architectures.config import Config
from burnish.codegen.render.layout import WIDTH
from burnish.codegen.render.words import number

ACTIVATIONS = (
    "gelu",
    "gelu_new",
    "gelu_pytorch_tanh",
    "gelu_fast",
    "relu",
    "silu",
    "swish",
    "tanh",
    "sigmoid",
    "mish",
    "linear",
)
"""The supported values of `hidden_act`."""


def accepts(*names: str, axes: str = "batch, time", **others: str) -> str:
    """The `@nn.accepts` decorator of a forward; masks may have any dtype.

    others: specs of arguments that are neither ids nor masks.
    """
    specs = {n: f"{'any' if 'mask' in n else 'int64'}[{axes}]" for n in names}
    if "position_ids" in specs:
        specs["attention_mask"] = "any[batch, _]"  # reaches back as far as a cache
        specs["position_ids"] = "int64[_, time]"  # one row does for all
    words = [f'{n}="{s}"' for n, s in (specs | others).items()]
    if len(line := f"    @nn.accepts({', '.join(words)})") <= WIDTH:
        return line
    return "\n".join(["    @nn.accepts(", *(f"        {w}," for w in words), "    )"])


_TRUNK = "hidden_size num_hidden_layers num_attention_heads intermediate_size"


def trunk(config: Config, *defaults: int | None, keys: str = _TRUNK) -> dict[str, Any]:
    """The sizes of a stack of layers; keys: those of dim, depth, heads and hidden."""
    dims, depths, counts, widths = zip(keys.split(), defaults, strict=True)
    sizes = {
        "dim": config.size(*dims),
        "depth": config.depth(*depths),
        "heads": config.size(*counts),
        "hidden": config.size(*widths),
    }
    config.multiple(dims[0], sizes["dim"], sizes["heads"])
    return sizes


def drops(config: Config, sizes: dict[str, Any], **rates: float) -> dict[str, Any]:
    """Template variables of dropout; empty where the probability is 0.

    rates: the key of dropout, and that of attention's, with their defaults. Others than
    0 become arguments of the constructor, at the end of `sizes`; `drop`,
    `attention_drop` and `drops` are how they are passed on.
    """
    dropout, attention_dropout, *_ = *starmap(config.rate, rates.items()), 0.0
    if dropout:
        sizes["dropout"] = dropout
    if attention_dropout:
        sizes["attention_dropout"] = attention_dropout
    drop = ", dropout" if dropout else ""
    attention_drop = ", attention_dropout" if attention_dropout else ""
    return {
        "dropout": dropout,
        "attention_dropout": attention_dropout,
        "drop": drop,
        "attention_drop": attention_drop,
        "drops": drop + attention_drop,
    }


def brief(value: float) -> str:
    """A number as people write it: 4 for 4.0, nine digits of others."""
    rounded = float(f"{value:.9g}")
    return str(int(rounded)) if rounded == int(rounded) else number(rounded)
