"""What is written to disk, before it is: header, storage of weights, whose file it is.

In: rendered text, weights and options. Out: `Generated`, the header, golden numbers,
and for an existing file whether it may be replaced or how it is merged.
Invariant: a file that somebody changed is never replaced without being told to.
"""
