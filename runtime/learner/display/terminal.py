"""Choose the default renderer of a run."""

from __future__ import annotations

import sys

from burnish.learner.display.renderer import LineRenderer, Renderer


def renderer_for_terminal() -> Renderer:
    """A live dashboard in a terminal where rich is installed, else lines of text."""
    if sys.stdout.isatty():
        try:
            from burnish.learner.display.dashboard import Dashboard
        except ImportError:
            pass
        else:
            return Dashboard()
    return LineRenderer()
