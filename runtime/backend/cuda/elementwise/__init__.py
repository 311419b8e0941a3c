"""Element-wise formulas as one kernel: values, optimizers, random numbers.

In: a formula of symbols, its arrays and numbers.
Out: one launch that reads each array once and writes each result once.
Invariant: a formula is the operator's own, traced; half precision computes in float32.
"""
