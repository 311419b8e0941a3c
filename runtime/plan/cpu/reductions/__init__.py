"""Reductions along axes, and what is made of them: norms, softmax, cross entropy."""
