"""Update rules: SGD, Adam and its relatives, RMSprop, Muon, L-BFGS.

In: `Optimizer`. Out: one class for each rule; element-wise rules also as programs of
the C library. Invariant: arguments and their defaults are PyTorch's, where PyTorch has
the rule.
"""
