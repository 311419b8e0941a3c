"""Convolutions and pooling: tiles, packed weights, and what replaces a direct sum."""
