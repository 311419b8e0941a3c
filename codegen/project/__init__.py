"""A project's models: tables in its pyproject.toml, modules that a build generates.

tables    [[tool.burnish.model]] as a validated configuration
update    the modules of a project, brought up to date
status    what `burnish check` says of them
watch     waits until a file changes
starting  `burnish init`: writes the tables
hatch     a build hook of hatchling
command   a sub-command of setuptools' build
wrapper   a PEP 517 backend around another one
archive   source distributions with the models and without what is generated
"""
