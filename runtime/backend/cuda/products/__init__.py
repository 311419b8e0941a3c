"""Matrix products by cublasLt, with a bias and an activation in the same kernel.

In: one or two arrays, a bias, an activation, and where to write.
Out: the product, or None for arrays that cublasLt does not take.
Invariant: sums are in float32; the algorithm of a shape is asked for once.
"""
