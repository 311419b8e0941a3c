"""onnxruntime's attention: with projections, over groups of heads, by positions.

In: a body's values and attributes. Out: ONNX's Attention and the nodes around it.
Invariant: scores, masks and caches mean what the operator's documentation says.
"""
