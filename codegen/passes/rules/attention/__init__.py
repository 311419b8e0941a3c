"""Fusion rules of attention: its product, masks, rotary positions.

In: the decomposed forms of exporters. Out: `Attention` and `RotaryEmbedding` nodes.
Invariant: a rule declines unless its constants and shapes prove it.
"""
