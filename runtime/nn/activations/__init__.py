"""Activations as layers: any shape in, the same shape out; GLU halves an axis."""
