"""Control flow: repeated statements become loops, equal conditions are tested once.

In: a block. Out: the block with a loop, or the same one where nothing repeats.
Invariant: the loop computes what the statements computed, in their order.
`turns` makes a loop of candidates for its iterations, whoever found them: `statements`
by tandem repeats over the same modules, `members` by the order of a list's items.
`jump_threading` puts an If into the branches of the one that decides it.
"""
