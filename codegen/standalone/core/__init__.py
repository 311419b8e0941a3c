"""Minimal replacements of the runtime's engine and modules for single files.

Operators, layers and their helpers are the runtime's own source. The parts here are
smaller forms of what records gradients, moves between devices, and reads and writes
files of every kind. They are never imported: their text is.
"""
