"""Normalisation as layers, by statistics of the batch or within one example."""
