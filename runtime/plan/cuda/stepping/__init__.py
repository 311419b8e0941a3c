"""A step of training as one CUDA graph.

In: a step of training, its modules, optimizers and arguments.
Out: a plan that replays the step, with parameters and state in place.
Invariant: an exception while a step is followed leaves the state as before.
"""
