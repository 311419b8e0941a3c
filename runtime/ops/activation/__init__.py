"""Activations by form: linear in pieces, smooth, along an axis; dropout."""
