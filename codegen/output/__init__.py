"""Files before they are written: header, storage of weights, ownership.

In: rendered text, weights and options. Out: `Generated`, the header, golden numbers,
and for an existing file whether it may be replaced or how it is merged.
Invariant: an edited file is never replaced unless the caller asks for it.
"""
