"""Minimal replacements of the runtime's engine and modules for single files.

In: nothing; these files are never imported. Out: their text, for `standalone`.
Invariant: operators, layers and helpers are the runtime's own source; only recording,
devices and files of every kind have smaller forms here.
"""
