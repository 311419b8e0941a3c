"""Plans made ahead of time: read from a file beside a model's weights, checked and run.

    model = Model.from_file()      # NAME.plan.safetensors and NAME.kernels.so are used
    y = model(x)                   # by a plan, where there is one for such arguments
    print(explain(model))          # which plans there are, and why one does not run

`burnish generate --compiled` writes both files; `burnish.plan.store` knows how.
"""

from burnish.planned.model import Ahead, attach, explain

__all__ = ["Ahead", "attach", "explain"]
