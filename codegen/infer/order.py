"""Recover the order of modules where the file sorts its names, as safetensors does.

A guess by names: what embeds first, what ends last, norms behind what they follow;
and by sizes: a layer that takes what no other gives moves to where it fits.
"""

from __future__ import annotations

import re

from burnish.codegen.infer.layers.chaining import in_chain
from burnish.codegen.infer.tree import Node, is_number

_STAGES = (
    (re.compile(r"(wpe|pos\w*|.*position\w*)$"), 2),
    (re.compile(r"(.*_)?(stem|patch_embed|embed\w*|emb|wte|tok\w*|inputs?\w*)$"), 1),
    (re.compile(r"encoder$"), 2),
    (re.compile(r"(ln_f|norm|.*final\w*|post\w*)$"), 4),
    (
        re.compile(
            r"(.*_)?(head\w*|fc|classifier|logits|lm_head|out_?conv|outc|pooler)$"
        ),
        5,
    ),
)
_MIDDLE = (
    (re.compile(r"(c_attn|q|k|v|q_proj|k_proj|v_proj|query|key|value)$"), 0),
    (re.compile(r"(gate\w*|up\w*|fc_?in|c_fc|w1|fc1|lin1|linear1|wi\w*)$"), 1),
    (re.compile(r".*act\w*$"), 2),
    (re.compile(r"(down\w*|fc_?out|w2|fc2|lin2|linear2|wo)$"), 3),
    (re.compile(r"(o|o_proj|c_proj|out|out_proj|proj|output|dense)$"), 4),
)
_COUNT = re.compile(r"(\d+)$")


def in_use_order(root: Node) -> None:
    """Sort every module's children as they are likely used, in place."""
    for node in root.walk():
        if not all(map(is_number, node.children)):
            ordered = sorted(node.children.values(), key=_place)
            node.children = {child.name: child for child in in_chain(ordered)}


def _place(node: Node) -> tuple[object, ...]:
    name = node.name.lower()
    stage = next((place for word, place in _STAGES if word.match(name)), 3)
    found = _COUNT.search(name)
    role = next((place for word, place in _MIDDLE if word.match(name)), 2)
    number = int(found[1]) if found and role == 2 else 0
    is_norm = all(t.ndim < 2 for t in node.tensors.values()) and bool(node.tensors)
    return stage, role, number, bool(node.children), is_norm, name
