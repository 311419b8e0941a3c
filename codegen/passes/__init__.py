"""Passes over the Graph, and their order."""
