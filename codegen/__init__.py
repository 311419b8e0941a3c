"""Burnish's generator: model files in, Python source out."""
