"""What installed packages bring: modules by entry points, and templates.

In: a group of entry points, or a template's name. Out: modules imported once, or the
Jinja template, a user's before ours.
Invariant: nothing else loads templates or looks for entry points.
"""
