"""Random arrays from `burnish.rng`; a captured program draws new ones in each run."""

from __future__ import annotations

from burnish import rng
from burnish.steps import draw

keep_mask = draw(rng.keep_mask)
normal = draw(rng.normal)
uniform = draw(rng.uniform)
