"""Loop rerolling: statements that repeat become a loop.

In: a block. Out: the block with loops, or None where nothing repeats.
Invariant: the loop computes what the statements computed, in their order.
"""
