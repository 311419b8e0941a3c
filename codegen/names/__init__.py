"""Names: which ones an author gave, and how any becomes a Python identifier.

In: text of a model file. Out: an `Identifier`, or the verdict of who made a name.
Invariant: text of a model file reaches source unquoted as an `Identifier` only.
"""
