"""Learning-rate schedules: constant, decaying, cyclic, and composed of others.

In: the number of the step. Out: a learning rate, or rates by group. Invariant: no
optimizer is imported here.
"""
