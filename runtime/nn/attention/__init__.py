"""Attention, transformers, and their masks, positions and key-value caches."""
