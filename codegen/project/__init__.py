"""A project's models: tables in its pyproject.toml, modules that a build generates.

In: [[tool.burnish.model]] tables. Out: modules brought up to date, or their status.
Invariant: a module whose model file, options and source agree is not written again.
"""
