"""Reductions along axes, and operators built on them: norms, softmax, cross entropy."""
