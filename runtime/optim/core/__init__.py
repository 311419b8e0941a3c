"""What all optimizers share: state by path, gradients, rates, clipping, groups.

In: modules, gradients by path, learning rates. Out: `Optimizer`, `GradientsParams`,
`ModuleOptimizer`, gradient clipping. Invariant: no update rule is imported here.
"""
