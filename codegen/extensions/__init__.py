"""Plugins: modules and templates that installed packages register as entry points.

In: a group of entry points, or a template's name. Out: modules imported once, or the
Jinja template, a user's before ours.
Invariant: nothing else loads templates or looks for entry points.
"""
