"""Random arrays, as `burnish.rng` draws them; a captured program draws them anew."""

from __future__ import annotations

from burnish import rng
from burnish.steps import draw

keep_mask = draw(rng.keep_mask)
normal = draw(rng.normal)
uniform = draw(rng.uniform)
