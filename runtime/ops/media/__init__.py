"""Operators on boxes in images, picture files, signals and text."""
