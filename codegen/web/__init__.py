"""A page that runs a generated model in a browser: `burnish generate --web`.

In: the source as it is written, and the weights beside it. Out: a folder that any
server of files can serve: index.html, worker.js, app.py, model.zip; Pyodide runs it.
Invariant: NumPy is all that it needs there.
"""
