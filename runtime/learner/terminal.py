"""Which renderer a run has when none is given."""

from __future__ import annotations

from burnish.learner.renderer import LineRenderer, Renderer


def renderer_for_terminal() -> Renderer:
    """Lines of text."""
    return LineRenderer()
