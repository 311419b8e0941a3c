"""A page on which one draws a digit: python -m burnish.models.mnist.web."""
