"""The layout of axes: fewer transposes and views, channels on axis 1.

In: a Graph. Out: a Graph with operators on other axes.
Invariant: inputs and outputs of the model keep their layout.
"""
